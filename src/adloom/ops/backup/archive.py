"""The archive: a tar file whose last member has the checksums of all others.

Members are `manifest.json`, `secrets.json`, other JSON files of the data directory, `valkey/…`, `spool/…`, `assets/…`
and `postgres.dump`. Nothing else is taken out of an archive, whatever it has.
"""

import contextlib
import hashlib
import io
import os
import re
import tarfile
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Final, TypeVar

import msgspec

from adloom.core.errors import CommandError
from adloom.core.progress import ProgressListener

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
CHECKSUMS: Final = "checksums.json"
DUMP: Final = "postgres.dump"
SECRETS: Final = "secrets.json"
VALKEY: Final = "valkey"
NATS: Final = "nats"  # Never in an archive: what counts of it is in PostgreSQL.
SPOOL: Final = "spool"
ASSETS: Final = "assets"
CHUNK_BYTES: Final = 2**20
_MEMBER: Final = re.compile(
    r"([\w-]+\.json|postgres\.dump|(valkey|spool)/[\w.@%+=-]+|assets/[0-9a-f]{2}/[0-9a-f]{64}[\w.@/-]+)"
)
_HIDDEN: Final = re.compile(r"(^|/)\.+(/|$)")

MEGABYTE: Final = 10**6

T = TypeVar("T")


class BackupError(CommandError):
    """A backup that cannot be made, read or restored; the message says why, and what to do."""


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive has, and of which moment."""

    format: int
    version: str
    revision: str
    made_at: datetime


class _Hashing(io.RawIOBase):
    """Hashes what is read of the first bytes of a file."""

    def __init__(self, file: IO[bytes], size: int, note: Callable[[int], None]) -> None:
        super().__init__()
        self._file, self._left, self._note = file, size, note
        self.hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(self._left, CHUNK_BYTES if size < 0 else size))
        self._left -= len(data)
        self.hash.update(data)
        self._note(len(data))
        return data


class ArchiveWriter:
    """Adds files to an archive that has no name yet."""

    def __init__(self, tar: tarfile.TarFile, note: Callable[[int], None]) -> None:
        self._tar = tar
        self._note = note
        self._sums: dict[str, str] = {}

    def add(self, name: str, file: IO[bytes], size: int) -> None:
        """Add the first bytes of a file."""
        assert _is_allowed(name), name
        reading = _Hashing(file, size, self._note)
        self._tar.addfile(_describe_member(name, size), reading)  # pyright: ignore[reportArgumentType]  only `read` is used
        self._sums[name] = reading.hash.hexdigest()

    def add_bytes(self, name: str, data: bytes) -> None:
        self.add(name, io.BytesIO(data), len(data))

    def finish(self) -> None:
        data = msgspec.json.encode(self._sums)
        self._tar.addfile(_describe_member(CHECKSUMS, len(data)), io.BytesIO(data))


@contextlib.contextmanager
def write_archive(path: Path, note: Callable[[int], None]) -> Generator[ArchiveWriter]:
    """Write an archive to the disk; it is whole when the block has ended."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            writer = ArchiveWriter(tar, note)
            yield writer
            writer.finish()
        file.flush()
        os.fsync(file.fileno())


def begin_bytes(progress: ProgressListener, title: str, size: int) -> Callable[[int], None]:
    """Begin a step of so many bytes; return what takes how many more are done."""
    progress.begin(title, max(0.1, round(size / MEGABYTE, 1)), unit="MB")
    return lambda count: progress.advance(count / MEGABYTE)


def verify_archive(path: Path, progress: ProgressListener) -> BackupManifest:
    """Read a whole archive and compare its checksums; raises BackupError where it is not whole."""
    sums: dict[str, str] = {}
    expected: Mapping[str, str] | None = None
    manifest: BackupManifest | None = None
    note = begin_bytes(progress, "Verifying", path.stat().st_size)
    with _read_archive(path) as members:
        for name, file in members:
            if name == CHECKSUMS:
                expected = _decode(file.read(), dict[str, str], path)
                continue
            digest, first = hashlib.sha256(), b""
            while data := file.read(CHUNK_BYTES):
                first = first or data
                digest.update(data)
                note(len(data))
            sums[name] = digest.hexdigest()
            if name == MANIFEST:
                manifest = _decode(first, BackupManifest, path)
    if expected is None or manifest is None:
        raise BackupError(
            f"{path} is cut off: it has no {CHECKSUMS}. Make the backup again, or copy it again."
        )
    wrong = sorted(name for name in sums.keys() | expected.keys() if sums.get(name) != expected.get(name))
    if wrong:
        raise BackupError(f"{path} is damaged: {', '.join(wrong)} is not what was written.")
    if manifest.format != FORMAT:
        raise BackupError(f"{path} has format {manifest.format}; this version of Adloom reads {FORMAT}.")
    return manifest


def extract_archive(path: Path, folder: Path, note: Callable[[int], None]) -> None:
    """Write the members of a verified archive into a folder."""
    with _read_archive(path) as members:
        for name, file in members:
            if name in {CHECKSUMS, MANIFEST}:
                continue
            try:
                _write_member(file, folder / name, note)
            except OSError as error:  # Of the disk: an archive that is cut off is none.
                raise BackupError(
                    f"{path} cannot be unpacked into {folder}: {error}. Make room there."
                ) from error


def _write_member(file: IO[bytes], target: Path, note: Callable[[int], None]) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as writing:
        while data := file.read(CHUNK_BYTES):
            writing.write(data)
            note(len(data))


@contextlib.contextmanager
def _read_archive(path: Path) -> Generator[Iterator[tuple[str, IO[bytes]]]]:
    """Open an archive; whatever keeps it from being read to its end is a BackupError."""
    try:
        with _open_tar(path) as tar:
            yield _read_members(path, tar)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise BackupError(
            f"{path} cannot be read to its end: {error}. It is cut off or damaged: copy it again, or make it again."
        ) from error


def _open_tar(path: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(path, mode="r:")
    except tarfile.ReadError as error:
        raise BackupError(
            f"{path} is no backup of Adloom: it does not begin as one. Name a file that `adloom backup` has written; "
            "if it was compressed since, decompress it first."
        ) from error


def _read_members(path: Path, tar: tarfile.TarFile) -> Iterator[tuple[str, IO[bytes]]]:
    for member in tar:
        if not member.isreg() or not (_is_allowed(member.name) or member.name == CHECKSUMS):
            raise BackupError(f"{path} is no backup of Adloom: it has {member.name!r}.")
        file = tar.extractfile(member)
        assert file is not None, "a regular file"
        yield member.name, file


def _is_allowed(name: str) -> bool:
    return _MEMBER.fullmatch(name) is not None and not _HIDDEN.search(name)


def _describe_member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


def _decode(data: bytes, kind: type[T], path: Path) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise BackupError(f"{path} is damaged: {error}.") from error
