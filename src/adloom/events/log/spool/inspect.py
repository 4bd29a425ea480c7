"""`adloom ledger spool` and the doctor: look at the files of a spool from outside, and change nothing."""

import fcntl
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from adloom.events.log.event import UnreadableEntryError, decode_event, get_event_time
from adloom.events.log.spool.format import (
    DAMAGED,
    HEADER_BYTES,
    OtherVersionError,
    SpoolFileName,
    build_header,
    is_whole_header,
    parse_name,
    read_records,
    read_seed,
)


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
    names: list[tuple[SpoolFileName, str]] = []
    for name in os.listdir(folder):  # noqa: PTH208 - names, not paths
        if (parsed := _parse_name(name)) is not None:
            names.append((parsed, name))  # noqa: PERF401 - a comprehension would not know that it is one
    infos = [_read_info(folder / name) for _, name in sorted(names)]
    return [info for info in infos if info is not None]


def count_events(path: Path) -> SpoolContents:
    name = _parse_name(path.name)
    data = path.read_bytes()
    if name is None or len(data) <= HEADER_BYTES:
        return SpoolContents(0, None)
    try:
        head = data if is_whole_header(data) else build_header(name.life, name.number)
    except OtherVersionError:
        return SpoolContents(0, None)
    entries = read_records(data, HEADER_BYTES, read_seed(head), count_max=sys.maxsize).entries
    return SpoolContents(len(entries), _parse_time(entries[0]) if entries else None)


def describe_spool(folder: Path) -> list[str]:
    files = list_spool_files(folder)
    contents = [count_events(folder / file.name) for file in files]
    waiting = [(file, has) for file, has in zip(files, contents, strict=True) if not file.is_damaged]
    events = sum(has.events for _, has in waiting)
    size = sum(file.size_bytes for file, _ in waiting)
    return [
        f"{folder}: {_count(events, 'event')} in {_count(len(waiting), 'file')}, {size:,} bytes.",
        *(_describe_file(file, has) for file, has in zip(files, contents, strict=True)),
    ]


def _describe_file(file: SpoolFileInfo, has: SpoolContents) -> str:
    oldest = "" if has.oldest_at is None else f", the oldest of {has.oldest_at:%Y-%m-%d %H:%M:%S} UTC"
    held = "held by a living process" if file.is_held else "held by no process"
    state = "damaged; all that could be read was drained" if file.is_damaged else held
    return f"{file.name}: {_count(has.events, 'event')}, {file.size_bytes:,} bytes{oldest}; {state}."


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _parse_name(name: str) -> SpoolFileName | None:
    return parse_name(name.removesuffix(DAMAGED))


def _read_info(path: Path) -> SpoolFileInfo | None:
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
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _parse_time(entry: bytes) -> datetime | None:
    try:
        return get_event_time(decode_event(entry))
    except UnreadableEntryError:
        return None
