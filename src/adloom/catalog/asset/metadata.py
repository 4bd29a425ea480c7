"""Takes out of pictures what is not seen: place and maker, comments, what lies after their end.

Nothing is encoded again: the pixels stay as they were, bit by bit. Of what cameras write only the orientation is kept,
because browsers turn the picture by it; and colour profiles. What is not known to be needed is left out.
"""

# pure

import re
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Final

from adloom.catalog.asset.model import GIF, JPEG, PNG, WEBP, AssetRefusedError, AssetType

UPRIGHT: Final = 1
ORIENTATION: Final = 0x0112
ORIENTATIONS: Final = range(1, 9)
CANNOT_BE_READ: Final = "The parts of the picture cannot be read. Save it again."

# JPEG: markers.
_START: Final = b"\xff\xd8"
_END: Final = 0xD9
_SCAN: Final = 0xDA
_APPLICATIONS: Final = range(0xE0, 0xF0)
_COMMENT: Final = 0xFE
_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD8)})
_KEPT_APPLICATIONS: Final = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
_AFTER_SCAN: Final = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
# PNG: chunks.
_SIGNATURE_BYTES: Final = 8
_KEPT_CHUNKS: Final = frozenset(
    b"IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB bKGD pHYs cICP mDCV cLLI acTL fcTL fdAT".split()
)
# WebP: chunks, and the flags that announce them.
_RIFF_BYTES: Final = 12
_KEPT_RIFF: Final = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"})
_HAS_EXIF, _HAS_XMP = 0x08, 0x04
# GIF: blocks.
_IMAGE, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B
_GRAPHIC_CONTROL, _APPLICATION = 0xF9, 0xFF
_KEPT_GIF: Final = (b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")
_GIF_HEAD_BYTES: Final = 13
_IMAGE_BYTES: Final = 10


def strip_metadata(data: bytes, kind: AssetType, orientation: int) -> bytes:
    """Return a picture that was decoded before without its metadata; raises AssetRefusedError."""
    try:
        return _STRIPPERS[kind](data, orientation if orientation in ORIENTATIONS else UPRIGHT)
    except (IndexError, struct.error, ValueError) as error:
        raise AssetRefusedError(CANNOT_BE_READ) from error


def _strip_jpeg(data: bytes, orientation: int) -> bytes:
    kept, place = [_START], 2
    if orientation != UPRIGHT:
        exif = b"Exif\0\0" + _write_orientation(orientation)
        kept.append(b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif)
    while place < len(data):
        if data[place] != 0xFF:  # noqa: PLR2004 - a marker begins with it
            raise AssetRefusedError(CANNOT_BE_READ)
        marker = data[place + 1]
        if marker == _END:
            break
        if marker == 0xFF or marker in _ALONE:  # noqa: PLR2004 - a byte that fills
            place += 1 if marker == 0xFF else 2  # noqa: PLR2004
            continue
        end = place + 2 + struct.unpack_from(">H", data, place + 2)[0]
        if marker == _SCAN:
            after = _AFTER_SCAN.search(data, end)
            end = after.start() if after else len(data)
        if _is_kept_segment(marker, data[place + 4 : end]):
            kept.append(data[place:end])
        place = end
    return b"".join([*kept, b"\xff", bytes([_END])])


def _is_kept_segment(marker: int, content: bytes) -> bool:
    if marker not in _APPLICATIONS:
        return marker != _COMMENT
    name = _KEPT_APPLICATIONS.get(marker)
    return name is not None and content.startswith(name)


def _strip_png(data: bytes, orientation: int) -> bytes:
    kept, place = [data[:_SIGNATURE_BYTES]], _SIGNATURE_BYTES
    while True:
        size, name = struct.unpack_from(">I4s", data, place)
        end = place + 12 + size
        if end > len(data):
            raise AssetRefusedError(CANNOT_BE_READ)
        if name in _KEPT_CHUNKS:
            kept.append(data[place:end])
        if name == b"IHDR" and orientation != UPRIGHT:
            exif = b"eXIf" + _write_orientation(orientation)
            kept.append(struct.pack(">I", len(exif) - 4) + exif + struct.pack(">I", zlib.crc32(exif)))
        if name == b"IEND":
            return b"".join(kept)
        place = end


def _strip_webp(data: bytes, orientation: int) -> bytes:
    kept: list[bytes] = []
    last = min(len(data), 8 + struct.unpack_from("<I", data, 4)[0])
    place = _RIFF_BYTES
    has_flags = False
    while place + 8 <= last:
        name, size = struct.unpack_from("<4sI", data, place)
        content = data[place + 8 : place + 8 + size]
        if name == b"VP8X":
            has_flags = True
            flags = content[0] & ~(_HAS_EXIF | _HAS_XMP) | (_HAS_EXIF if orientation != UPRIGHT else 0)
            content = bytes([flags]) + content[1:]
        if name in _KEPT_RIFF:
            kept.append(_write_riff(name, content))
        place += 8 + size + size % 2
    if has_flags and orientation != UPRIGHT:
        kept.append(_write_riff(b"EXIF", _write_orientation(orientation)))
    body = b"".join(kept)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def _write_riff(name: bytes, content: bytes) -> bytes:
    return struct.pack("<4sI", name, len(content)) + content + bytes(len(content) % 2)


def _strip_gif(data: bytes, _orientation: int) -> bytes:
    place = _GIF_HEAD_BYTES + _count_colours(data[10])
    kept = [data[:place]]
    while data[place] != _TRAILER:
        start = place
        if data[place] == _IMAGE:
            place += _IMAGE_BYTES + _count_colours(data[place + 9]) + 1
            is_kept = True
        elif data[place] == _EXTENSION:
            label = data[place + 1]
            is_kept = label == _GRAPHIC_CONTROL or (
                label == _APPLICATION and data[place + 3 : place + 14] in _KEPT_GIF
            )
            place += 2
        else:
            raise AssetRefusedError(CANNOT_BE_READ)
        while data[place]:
            place += 1 + data[place]
        place += 1
        if is_kept:
            kept.append(data[start:place])
    return b"".join([*kept, bytes([_TRAILER])])


def _count_colours(flags: int) -> int:
    """Return the bytes of a colour table."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _write_orientation(orientation: int) -> bytes:
    """Write the shortest TIFF that says how to turn a picture."""
    entry = struct.pack(">HHIHH", ORIENTATION, 3, 1, orientation, 0)
    return b"MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4)


_STRIPPERS: Final[Mapping[AssetType, Callable[[bytes, int], bytes]]] = {
    JPEG: _strip_jpeg,
    PNG: _strip_png,
    WEBP: _strip_webp,
    GIF: _strip_gif,
}
