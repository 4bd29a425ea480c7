"""Small files of every kind, for tests of uploads."""

import io
import struct
import zipfile
from typing import Any, cast

from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20"/></svg>'
INDEX = b'<html><head><meta name="ad.size" content="width=300,height=250"></head><body>Hi</body></html>'
PROFILE = ImageCms.ImageCmsProfile(cast("Any", ImageCms).createProfile("sRGB")).tobytes()
SECRET = b"47.3769N 8.5417E"


def a_picture(kind: str = "PNG", width: int = 40, height: int = 30, *, is_noisy: bool = False) -> bytes:
    written = io.BytesIO()
    picture = Image.new("RGB", (width, height), (200, 80, 40))
    if is_noisy:
        picture = Image.effect_noise((width, height), 60).convert("RGB")
    picture.save(written, kind)
    return written.getvalue()


def a_box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), kind) + content


def a_video(width: int = 640, height: int = 360) -> bytes:
    header = bytes(76) + struct.pack(">II", width << 16, height << 16)
    tracks = a_box(b"trak", a_box(b"tkhd", bytes(84))) + a_box(b"trak", a_box(b"tkhd", header))
    return a_box(b"ftyp", b"isom0000") + a_box(b"mdat", bytes(5_000)) + a_box(b"moov", tracks)


def a_zip(files: dict[str, bytes] | None = None) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (files if files is not None else {"index.html": INDEX, "js/a.js": b"1"}).items():
            archive.writestr(name, content)
    return written.getvalue()


def with_secrets(kind: str, orientation: int, width: int = 40, *, is_noisy: bool = False) -> bytes:
    """Return a picture with a place in everything that its format has room for."""
    exif = Image.Exif()
    if orientation != 1:
        exif[0x0112] = orientation
    exif[0x010E] = SECRET.decode()  # The description; the place is in a directory of its own.
    exif.get_ifd(0x8825)[29] = SECRET.decode()
    picture = Image.open(io.BytesIO(a_picture("PNG", width, 30, is_noisy=is_noisy)))
    more: dict[str, Any] = {"exif": exif.tobytes(), "xmp": b"<x>%b</x>" % SECRET, "comment": SECRET}
    if kind == "PNG":
        texts = PngInfo()
        texts.add_text("Where", SECRET.decode())
        texts.add_itxt("XML:com.adobe.xmp", SECRET.decode())
        more = {"exif": exif.tobytes(), "pnginfo": texts}
    written = io.BytesIO()
    picture.save(written, kind, icc_profile=PROFILE, **more)
    return written.getvalue() + SECRET * (kind in {"JPEG", "PNG", "GIF"})
