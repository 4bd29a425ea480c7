"""HTML5 creatives: a zip with an index.html, unpacked within bounds.

No name leaves the folder, and nothing is believed of what the archive says about sizes: bytes are counted as they are
unpacked.
"""

import io
import re
import stat
import zipfile
from collections.abc import Sequence
from typing import Final

from adloom.catalog.asset.model import AssetRefusedError, AssetTooLargeError, check_size
from adloom.core.errors import AdloomError

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
# The size is said at the beginning of a page. Every repetition has a bound: a page may be made to take long.
_HEAD_BYTES: Final = 65_536
_META: Final = re.compile(r"<meta\b[^<>]{0,500}>", re.IGNORECASE)
_SIZE_NAME: Final = re.compile(r"\bname\s{0,9}=\s{0,9}[\"']ad\.size[\"']", re.IGNORECASE)
_SIZE: Final = re.compile(
    r"\bcontent\s{0,9}=\s{0,9}[\"']\s{0,9}width\s{0,9}=\s{0,9}(\d{1,5})\s{0,9},\s{0,9}height\s{0,9}=\s{0,9}(\d{1,5})",
    re.IGNORECASE,
)
# Left by programs that make archives.
_LEFT_OVER_FOLDER: Final = "__MACOSX"
_LEFT_OVERS: Final = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
# Others unpack a member at once, however few bytes are asked for.
_PACKED_BY: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})

Unpacked = list[tuple[str, bytes]]


def unpack_creative(data: bytes, *, bytes_max: int) -> tuple[Unpacked, tuple[int, int] | None]:
    """Return the files of an archive, index.html first, and the size that it says; raises AssetRefusedError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = _unpack(archive, bytes_max)
    except AdloomError:
        raise
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise AssetRefusedError(f"The zip cannot be read: {error}.") from error
    except Exception as error:  # A damaged archive fails in more ways than the library names.
        raise AssetRefusedError("The zip cannot be read. Pack it again.") from error
    files = _strip_folder(files)
    index = next((content for name, content in files if name == INDEX), None)
    if index is None:
        raise AssetRefusedError("The zip has no index.html at its top. Pack the files so that it has one.")
    files.sort(key=lambda one: (one[0] != INDEX, one[0]))
    return files, _find_size(index)


def _find_size(index: bytes) -> tuple[int, int] | None:
    for meta in _META.finditer(index[:_HEAD_BYTES].decode("utf-8", errors="replace")):
        if _SIZE_NAME.search(meta[0]) and (found := _SIZE.search(meta[0])):
            return check_size(int(found[1]), int(found[2]))
    return None


def _unpack(archive: zipfile.ZipFile, bytes_max: int) -> Unpacked:
    members = [one for one in archive.infolist() if not one.is_dir() and not _is_left_over(one.filename)]
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
    _check_names([name.lower() for name, _ in files])
    return files


def _is_left_over(name: str) -> bool:
    *folders, last = name.split("/")
    return last in _LEFT_OVERS or _LEFT_OVER_FOLDER in folders


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise AssetRefusedError("The zip has two files of one name.")
    folders = {name[: slash.start()] for name in names for slash in re.finditer("/", name)}
    if both := folders.intersection(names):
        raise AssetRefusedError(f"The zip has a file and a folder of one name, {min(both)!r}. Rename one.")


def _check_member(member: zipfile.ZipInfo) -> None:
    name = member.filename
    if stat.S_ISLNK(member.external_attr >> 16):
        raise AssetRefusedError(f"The zip has a link, {name!r}. Pack the file itself.")
    if not _NAME.fullmatch(name) or ".." in name:
        raise AssetRefusedError(
            f"The zip has a file {name!r}. Names may have letters, digits, dots, hyphens and underscores, "
            "in at most five folders."
        )
    if member.compress_type not in _PACKED_BY:
        raise AssetRefusedError(
            f"The zip has a file {name!r} that is packed in an unusual way. Pack it with Deflate, as most programs do."
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
