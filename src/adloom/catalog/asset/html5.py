"""HTML5 creatives: a zip with an index.html, unpacked within bounds.

No name leaves the folder, and nothing is believed of what the archive says about sizes: bytes are counted as they are
unpacked.
"""

import io
import re
import stat
import zipfile
from typing import Final

from adloom.catalog.asset.model import AssetRefusedError, AssetTooLargeError, check_size

FILES_MAX: Final = 200
INDEX: Final = "index.html"
# What a creative may have, and how it is served.
MIMES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "mp4": "video/mp4",
}
_NAME: Final = re.compile(r"[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,99}(?:/[A-Za-z0-9_@-][A-Za-z0-9._@-]{0,99}){0,5}")
_SIZE: Final = re.compile(
    r"<meta\s[^>]*name\s*=\s*[\"']ad\.size[\"'][^>]*content\s*=\s*[\"']\s*width\s*=\s*(\d{1,5})\s*,\s*height\s*=\s*(\d{1,5})",
    re.IGNORECASE,
)
# Left by programs that make archives.
_LEFT_OVERS: Final = re.compile(r"(^|/)(__MACOSX/.*|\.DS_Store|Thumbs\.db|desktop\.ini)$")

Unpacked = list[tuple[str, bytes]]


def unpack_creative(data: bytes, *, bytes_max: int) -> tuple[Unpacked, tuple[int, int] | None]:
    """Return the files of an archive, index.html first, and the size that it says; raises AssetRefusedError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = _unpack(archive, bytes_max)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise AssetRefusedError(f"The zip cannot be read: {error}.") from error
    files = _strip_folder(files)
    index = next((content for name, content in files if name == INDEX), None)
    if index is None:
        raise AssetRefusedError("The zip has no index.html at its top. Pack the files so that it has one.")
    files.sort(key=lambda one: (one[0] != INDEX, one[0]))
    found = _SIZE.search(index.decode("utf-8", errors="replace"))
    return files, check_size(int(found[1]), int(found[2])) if found else None


def _unpack(archive: zipfile.ZipFile, bytes_max: int) -> Unpacked:
    members = [one for one in archive.infolist() if not one.is_dir() and not _LEFT_OVERS.search(one.filename)]
    if len(members) > FILES_MAX:
        raise AssetRefusedError(f"The zip has {len(members)} files; it may have {FILES_MAX}.")
    files: Unpacked = []
    left = bytes_max
    for member in members:
        name = member.filename
        _check_member(member)
        with archive.open(member) as file:
            content = file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise AssetTooLargeError(f"The zip has more than {bytes_max:,} bytes when it is unpacked.")
        files.append((name, content))
    names = [name.lower() for name, _ in files]
    if len(set(names)) < len(names):
        raise AssetRefusedError("The zip has two files of one name.")
    return files


def _check_member(member: zipfile.ZipInfo) -> None:
    name = member.filename
    if stat.S_ISLNK(member.external_attr >> 16):
        raise AssetRefusedError(f"The zip has a link, {name!r}. Pack the file itself.")
    if not _NAME.fullmatch(name) or ".." in name:
        raise AssetRefusedError(
            f"The zip has a file {name!r}. Names may have letters, digits, dots, hyphens and underscores, "
            "in at most five folders."
        )
    if get_extension(name) not in MIMES:
        raise AssetRefusedError(f"The zip has a file {name!r}. It may have {', '.join(sorted(MIMES))}.")


def _strip_folder(files: Unpacked) -> Unpacked:
    """Take out the one folder that everything is in, if it is so."""
    folders = {name.partition("/")[0] for name, _ in files}
    if len(folders) != 1 or any("/" not in name for name, _ in files):
        return files
    return [(name.partition("/")[2], content) for name, content in files]


def get_extension(name: str) -> str:
    return name.rpartition(".")[2].lower()
