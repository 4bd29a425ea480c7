"""Small files of every kind, for tests of uploads."""

import io
import struct
import zipfile

from PIL import Image

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20"/></svg>'
INDEX = b'<html><head><meta name="ad.size" content="width=300,height=250"></head><body>Hi</body></html>'


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
