"""From the bytes of an upload to the files that are stored: the type is what the bytes say, never the name."""

import hashlib
from typing import Final

import msgspec

from adloom.catalog.asset.html5 import MIMES, get_extension, unpack_creative
from adloom.catalog.asset.model import (
    GIF,
    HTML5,
    JPEG,
    MP4,
    PNG,
    SVG,
    WEBP,
    AssetFile,
    AssetKind,
    AssetRefusedError,
    AssetTooLargeError,
    AssetType,
    PreparedAsset,
)
from adloom.catalog.asset.mp4 import blank_metadata, read_video_size
from adloom.catalog.asset.raster import read_picture
from adloom.catalog.asset.svg import sanitize_svg
from adloom.runtime.files.place import AssetSettings

UNKNOWN: Final = "The file is none of JPEG, PNG, WebP, GIF, SVG, MP4 or a zip with an HTML5 creative."
SVG_LOOKED_AT: Final = 4_096


def detect_type(data: bytes) -> AssetType:
    """Return the type of a file by its first bytes; raises AssetRefusedError."""
    beginnings = (
        (b"\xff\xd8\xff", JPEG),
        (b"\x89PNG\r\n\x1a\n", PNG),
        (b"GIF87a", GIF),
        (b"GIF89a", GIF),
        (b"PK\x03\x04", HTML5),
    )
    found = next((kind for beginning, kind in beginnings if data.startswith(beginning)), None)
    if found is not None:
        return found
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return WEBP
    if data[4:8] == b"ftyp":
        return MP4
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"<svg" in data[:SVG_LOOKED_AT]:
        return SVG
    raise AssetRefusedError(UNKNOWN)


def prepare_asset(data: bytes, settings: AssetSettings) -> PreparedAsset:
    """Check an upload and make all that is stored of it; takes up to a second of a processor."""
    found = detect_type(data)
    bytes_max = get_bytes_max(found.kind, settings)
    if len(data) > bytes_max:
        raise AssetTooLargeError(f"The {found.kind} has {len(data):,} bytes; it may have {bytes_max:,}.")
    if found is HTML5:
        return _prepare_creative(data, bytes_max)
    if found is SVG:
        data, size = sanitize_svg(data)
        return _build(data, found, size)
    if found is MP4:
        return _build(blank_metadata(data), found, read_video_size(data))
    picture = read_picture(data, found)
    asset = _build(picture.data, found, picture.size)
    smaller = {screen: _name_file(small, WEBP) for screen, small in picture.versions.items()}
    return msgspec.structs.replace(
        asset,
        files=(*asset.files, *smaller.values()),
        variants={screen: file.key for screen, file in smaller.items()},
    )


def get_bytes_max(kind: AssetKind, settings: AssetSettings) -> int:
    return {
        AssetKind.IMAGE: settings.image_bytes_max,
        AssetKind.VIDEO: settings.video_bytes_max,
        AssetKind.HTML: settings.html_bytes_max,
    }[kind]


def name_asset_key(sha256: str, rest: str) -> str:
    """Return where a file lies: below a folder of the first digits, so that none has too many."""
    return f"{sha256[:2]}/{sha256}{rest}"


def _build(data: bytes, kind: AssetType, size: tuple[int, int]) -> PreparedAsset:
    file = _name_file(data, kind)
    return PreparedAsset(
        sha256=hashlib.sha256(data).hexdigest(),
        kind=kind.kind,
        mime=kind.mime,
        width=size[0],
        height=size[1],
        files=(file,),
    )


def _name_file(data: bytes, kind: AssetType) -> AssetFile:
    return AssetFile(name_asset_key(hashlib.sha256(data).hexdigest(), f".{kind.extension}"), data, kind.mime)


def _prepare_creative(data: bytes, bytes_max: int) -> PreparedAsset:
    unpacked, size = unpack_creative(data, bytes_max=bytes_max)
    sha256 = hashlib.sha256(data).hexdigest()
    return PreparedAsset(
        sha256=sha256,
        kind=AssetKind.HTML,
        mime=HTML5.mime,
        width=size and size[0],
        height=size and size[1],
        files=tuple(
            AssetFile(name_asset_key(sha256, f"/{name}"), content, MIMES[get_extension(name)])
            for name, content in unpacked
        ),
    )
