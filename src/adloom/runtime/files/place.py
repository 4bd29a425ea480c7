"""`ADLOOM_ASSETS_URL`: which folder or bucket has the uploaded files, and how it is opened; and their settings."""

import contextlib
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

import msgspec

from adloom.core.clock import Clock
from adloom.core.setting import Secret, SecretValueError, SettingsError, Variable, parse_within
from adloom.runtime.files.signing import StoreKey
from adloom.runtime.files.store import FileStore, FolderStore, OpenFile, make_folders
from adloom.runtime.installation import find_default_data_directory

FILE_BYTES_MAX: Final = 512 * 1024
BYTES_MAX: Final = 64 * 2**20
VARIABLE: Final = "ADLOOM_ASSETS_URL"
FOLDER_NAME: Final = "assets"
REGION_DEFAULT: Final = "us-east-1"
EXPECTED: Final = (
    "is not an address of files: expected file:///a/folder, or "
    "s3://KEY:SECRET@host/bucket/prefix?region=eu-central-1 (and &tls=off for a store without https)."
)


class _FileInMemory:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    async def read(self, first: int, count: int) -> AsyncGenerator[bytes]:
        yield self._data[first : first + count]


class CachedFiles:
    """Another store, with its small files in memory; beyond the bound those go that were not read the longest."""

    def __init__(self, files: FileStore, *, bytes_max: int = BYTES_MAX) -> None:
        self._files = files
        self._bytes_max = bytes_max
        self._known: dict[str, bytes] = {}  # Least recently used first.
        self._size = 0

    async def write(self, key: str, data: bytes, content_type: str) -> None:
        await self._files.write(key, data, content_type)

    @contextlib.asynccontextmanager
    async def open(self, key: str) -> AsyncGenerator[OpenFile | None]:
        data = self._known.pop(key, None)
        if data is not None:
            self._known[key] = data
            yield _FileInMemory(data)
            return
        async with self._files.open(key) as file:
            if file is None or file.size > FILE_BYTES_MAX:
                yield file
                return
            data = b"".join([part async for part in file.read(0, file.size)]) if file.size else b""
        self._keep(key, data)
        yield _FileInMemory(data)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._files.delete(keys)

    def _keep(self, key: str, data: bytes) -> None:
        self._size += len(data) - len(self._known.pop(key, b""))
        self._known[key] = data
        while self._size > self._bytes_max:
            self._size -= len(self._known.pop(next(iter(self._known))))


def parse_files_url(text: str) -> Secret:
    """Check an address; it may carry a key, so it is a secret."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # Read here: a wrong one raises only then.
    except ValueError:
        raise SecretValueError(EXPECTED) from None
    is_folder = parts.scheme == "file" and parts.path.startswith("/") and not parts.netloc
    is_bucket = (
        parts.scheme == "s3"
        and bool(parts.hostname and parts.username and parts.password)
        and bool(parts.path.strip("/"))
    )
    if not is_folder and not is_bucket:
        raise SecretValueError(EXPECTED)
    return Secret(text)


def choose_default_files_url(variables: Mapping[str, str]) -> Secret:
    return write_folder_url(find_default_data_directory(variables, is_root=os.geteuid() == 0) / FOLDER_NAME)


def write_folder_url(folder: Path) -> Secret:
    return Secret(f"file://{quote(str(folder))}")


def find_folder(url: str) -> Path | None:
    """Return the folder of an address; None for a bucket."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def make_files_folder(url: str) -> Path | None:
    """Make the folder, if it is one; SettingsError where that cannot be."""
    folder = find_folder(url)
    if folder is not None:
        try:
            make_folders(folder, within=folder)
        except OSError as error:
            raise SettingsError(
                f"{VARIABLE} is 'file://{folder}': expected a folder that this user can make and write ({error.strerror})."
            ) from error
    return folder


@contextlib.asynccontextmanager
async def open_files(url: str, clock: Clock, *, is_cached: bool = False) -> AsyncGenerator[FileStore]:
    """Open the store of an address; nothing is connected before it is used. Small files of a bucket may be cached."""
    folder = find_folder(url)
    if folder is not None:
        yield FolderStore(folder)
        return
    from adloom.runtime.files.s3 import StorePlace, open_s3  # noqa: PLC0415 - delivery seldom needs a client

    parts = urlsplit(url)
    options = parse_qs(parts.query)
    bucket, _, prefix = parts.path.strip("/").partition("/")
    scheme = "http" if options.get("tls") == ["off"] else "https"
    port = f":{parts.port}" if parts.port else ""
    place = StorePlace(
        origin=f"{scheme}://{parts.hostname}{port}",
        bucket=bucket,
        prefix=f"{prefix.rstrip('/')}/" if prefix else "",
        key=StoreKey(
            access=unquote(parts.username or ""),
            secret=unquote(parts.password or ""),
            region=options.get("region", [REGION_DEFAULT])[0],
        ),
    )
    async with open_s3(place, clock) as store:
        yield CachedFiles(store) if is_cached else store


ASSETS_URL: Final = Variable(VARIABLE, parse_files_url, choose_default_files_url)
_FILE_BYTES: Final = parse_within(1, 64 * 2**20)


class AssetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How large uploaded files may be, how much an account may have, and how long unused ones are kept."""

    image_bytes_max: Annotated[int, Variable("ADLOOM_ASSET_IMAGE_BYTES_MAX", _FILE_BYTES)] = 10 * 2**20
    video_bytes_max: Annotated[int, Variable("ADLOOM_ASSET_VIDEO_BYTES_MAX", _FILE_BYTES)] = 50 * 2**20
    html_bytes_max: Annotated[int, Variable("ADLOOM_ASSET_HTML_BYTES_MAX", _FILE_BYTES)] = 10 * 2**20
    account_bytes_max: Annotated[int, Variable("ADLOOM_ACCOUNT_ASSET_BYTES_MAX", parse_within(0, 2**40))] = (
        2**30
    )
    unused_days: Annotated[int, Variable("ADLOOM_ASSET_UNUSED_DAYS", parse_within(1, 3_650))] = 30
