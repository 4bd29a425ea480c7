"""How a file is answered: which of its bytes, and with which headers."""

# pure

import re
from typing import Final

import msgspec

IMMUTABLE: Final = b"public, max-age=31536000, immutable"
# What may be at the address of one file, and in the folder of an HTML5 creative.
SINGLE: Final = {
    "jpg": b"image/jpeg",
    "png": b"image/png",
    "webp": b"image/webp",
    "gif": b"image/gif",
    "svg": b"image/svg+xml",
    "mp4": b"video/mp4",
}
IN_CREATIVE: Final = {
    **SINGLE,
    "jpeg": b"image/jpeg",
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "json": b"application/json",
    "txt": b"text/plain; charset=utf-8",
    "woff": b"font/woff",
    "woff2": b"font/woff2",
}
# A drawing that is opened by itself runs and loads nothing.
DRAWING_POLICY: Final = b"default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
# A creative runs without rights, wherever it is opened, and loads only what came with it, from its own folder: with the
# whole of our origin it could ask for the ads of others in the visitor's name, and report events of them. It says
# nothing of who may frame it: not even a star lets a frame without rights do so, such as that of a preview.
CREATIVE_POLICY: Final = (
    b"sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox; "
    b"default-src %b data: blob: 'unsafe-inline' 'unsafe-eval'; base-uri 'none'; form-action 'none'"
)
_PATH: Final = re.compile(r"([0-9a-f]{64})(?:\.([a-z0-9]{3,4})|(/[A-Za-z0-9_@-][A-Za-z0-9._@/-]{0,600}))")
_RANGE: Final = re.compile(rb"bytes=(\d{0,15})-(\d{0,15})")

Headers = list[tuple[bytes, bytes]]


class FileAddress(msgspec.Struct, frozen=True):
    """What an address names: the key in the store, the bytes' hash, and the media type."""

    key: str
    sha256: str
    mime: bytes
    is_creative: bool

    @property
    def etag(self) -> bytes:
        # Files of a creative are as unchanging as the archive that they came in.
        return b'"%b"' % self.sha256.encode()


class ByteRange(msgspec.Struct, frozen=True):
    """A part of a file; the last byte is included."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


def parse_address(path: str) -> FileAddress | None:
    """Parse what follows `/p/`; None where nothing can be there."""
    found = _PATH.fullmatch(path)
    if found is None or ".." in path or "//" in path:
        return None
    sha256, extension, inside = found.groups()
    types = IN_CREATIVE if inside else SINGLE
    mime = types.get(extension or path.rpartition(".")[2].lower())
    if mime is None:
        return None
    return FileAddress(f"{sha256[:2]}/{path}", sha256, mime, bool(inside))


def parse_range(text: bytes | None, size: int) -> ByteRange | None:
    """Parse a Range header with one range; None stands for the whole file, as for what cannot be understood.

    Raises ValueError for a range that is not in the file.
    """
    found = _RANGE.fullmatch(text.strip()) if text else None
    if found is None or found.group() == b"bytes=-":
        return None
    first, last = found.groups()
    if not first:
        count = min(int(last), size)
        if not count:
            raise ValueError("no bytes")
        return ByteRange(size - count, size - 1)
    begin, end = int(first), min(int(last), size - 1) if last else size - 1
    if last and int(last) < begin:
        return None
    if begin >= size:
        raise ValueError("after the end")
    return ByteRange(begin, end)


def matches_etag(header: bytes | None, etag: bytes) -> bool:
    """Whether an If-None-Match names what we have."""
    if header is None:
        return False
    names = [one.strip().removeprefix(b"W/") for one in header.split(b",")]
    return etag in names or b"*" in names


def build_headers(address: FileAddress, *, files_url: str) -> Headers:
    """Return the headers of every answer about a file; `files_url` is the address of all files, with its last slash."""
    headers = [
        (b"content-type", address.mime),
        (b"cache-control", IMMUTABLE),
        (b"etag", address.etag),
        (b"accept-ranges", b"bytes"),
        (b"access-control-allow-origin", b"*"),
        (b"cross-origin-resource-policy", b"cross-origin"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    ]
    if address.mime == SINGLE["svg"]:
        headers.append((b"content-security-policy", DRAWING_POLICY))
    elif address.is_creative:
        own = f"{files_url}{address.sha256}/".encode()
        headers.append((b"content-security-policy", CREATIVE_POLICY % own))
    return headers
