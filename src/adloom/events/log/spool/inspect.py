"""Looks at the files of a spool from outside: nothing is changed, and nothing need run."""

import fcntl
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from adloom.events.log.event import UnreadableEntryError, decode_event, get_event_time
from adloom.events.log.spool.names import DAMAGED, FileName, parsed
from adloom.events.log.spool.records import (
    HEADER_BYTES,
    OtherVersionError,
    header,
    is_whole_header,
    seed_of,
    taken,
)

ALL: Final = 2**62


class SpoolFileInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is now; of one that is held a part may be drained already."""

    name: str
    size_bytes: int
    written_at: datetime
    is_held: bool
    is_damaged: bool


class SpoolContents(msgspec.Struct, frozen=True):
    """What can be read in a file."""

    events: int
    oldest_at: datetime | None


def list_spool_files(folder: Path) -> list[SpoolFileInfo]:
    """List the files of a spool in their order; OSError where the folder cannot be read."""
    if not folder.exists():
        return []
    names: list[tuple[FileName, str]] = []
    for name in os.listdir(folder):  # noqa: PTH208 - names, not paths
        if (of := _file_name(name)) is not None:
            names.append((of, name))  # noqa: PERF401 - a comprehension would not know that it is one
    looked_at = [_looked_at(folder / name) for _, name in sorted(names)]
    return [file for file in looked_at if file is not None]


def count_events(path: Path) -> SpoolContents:
    """Count the events in a file, and tell when the first of them came."""
    name = _file_name(path.name)
    data = path.read_bytes()
    if name is None or len(data) <= HEADER_BYTES:
        return SpoolContents(0, None)
    try:
        head = data if is_whole_header(data) else header(name.life, name.number)
    except OtherVersionError:
        return SpoolContents(0, None)
    entries = taken(data, HEADER_BYTES, seed_of(head), count_max=ALL).entries
    return SpoolContents(len(entries), _received_at(entries[0]) if entries else None)


def _file_name(name: str) -> FileName | None:
    return parsed(name.removesuffix(DAMAGED))


def _looked_at(path: Path) -> SpoolFileInfo | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None  # It was drained just now.
    try:
        facts = os.fstat(descriptor)
        return SpoolFileInfo(
            name=path.name,
            size_bytes=facts.st_size,
            written_at=datetime.fromtimestamp(facts.st_mtime, UTC),
            is_held=_is_held(descriptor),
            is_damaged=path.name.endswith(DAMAGED),
        )
    finally:
        os.close(descriptor)


def _is_held(descriptor: int) -> bool:
    """Tell whether a living process holds a file; the kernel lets go of it when that process dies."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _received_at(entry: bytes) -> datetime | None:
    try:
        event = decode_event(entry)
    except UnreadableEntryError:
        return None
    return get_event_time(event)
