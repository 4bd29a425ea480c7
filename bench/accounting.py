"""What a process used, read from `/proc`: CPU time, memory, and who its children are."""

import os
from pathlib import Path

import msgspec

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Positions behind the name of the process, which stands in parentheses and may hold spaces itself.
PARENT_FIELD, USER_TICKS_FIELD, SYSTEM_TICKS_FIELD, RESIDENT_PAGES_FIELD = 1, 11, 12, 21


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What one process or several used since they started, and hold now."""

    cpu_seconds: float
    resident_bytes: int


def parsed_stat(stat: str) -> Usage:
    """Read the line of `/proc/<pid>/stat`."""
    fields = _fields(stat)
    ticks = int(fields[USER_TICKS_FIELD]) + int(fields[SYSTEM_TICKS_FIELD])
    return Usage(
        cpu_seconds=ticks / TICKS_PER_SECOND, resident_bytes=int(fields[RESIDENT_PAGES_FIELD]) * PAGE_BYTES
    )


def usage_of(pids: list[int]) -> Usage:
    """Add up what some processes used; all of them have to be there."""
    each = [parsed_stat((PROC / str(pid) / "stat").read_text(encoding="utf-8")) for pid in pids]
    return Usage(
        cpu_seconds=sum(usage.cpu_seconds for usage in each),
        resident_bytes=sum(usage.resident_bytes for usage in each),
    )


def descendants(pid: int) -> list[int]:
    """List the children of a process, and theirs."""
    parents = _parents()
    found = [pid]
    for ancestor in found:  # grows while we walk it
        found.extend(child for child, parent in parents.items() if parent == ancestor)
    return found[1:]


def command_line(pid: int) -> list[str]:
    """Tell how a process was started; nothing for one that is gone."""
    try:
        return (PROC / str(pid) / "cmdline").read_text(encoding="utf-8", errors="replace").split("\0")[:-1]
    except OSError:
        return []


def _parents() -> dict[int, int]:
    parents: dict[int, int] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # ended while we looked
            parents[int(entry.name)] = int(_fields(stat)[PARENT_FIELD])
    return parents


def _fields(stat: str) -> list[str]:
    return stat[stat.rindex(")") + 1 :].split()
