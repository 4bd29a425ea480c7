"""`ADLOOM_ASSETS_URL`: which folder or bucket has the uploaded files, and how it is opened."""

import contextlib
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from adloom.core.clock import Clock
from adloom.core.setting import Secret, SecretValueError, SettingsError
from adloom.runtime.files.cache import CachedFiles
from adloom.runtime.files.signing import StoreKey
from adloom.runtime.files.store import FileStore, FolderStore, make_folders
from adloom.runtime.installation import default_data_directory

VARIABLE: Final = "ADLOOM_ASSETS_URL"
FOLDER_NAME: Final = "assets"
REGION_DEFAULT: Final = "us-east-1"
EXPECTED: Final = (
    "is not an address of files: expected file:///a/folder, or "
    "s3://KEY:SECRET@host/bucket/prefix?region=eu-central-1 (and &tls=off for a store without https)."
)


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


def default_files_url(variables: Mapping[str, str]) -> Secret:
    return folder_url(default_data_directory(variables, is_root=os.geteuid() == 0) / FOLDER_NAME)


def folder_url(folder: Path) -> Secret:
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
