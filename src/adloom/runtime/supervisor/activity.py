"""What the kernel knows of a process: whether it works, and which processes are under it."""

import contextlib
import os
import signal
from pathlib import Path
from typing import Final

import msgspec

PROC: Final = Path("/proc")
LINE_BYTES_MAX: Final = 4_096
# Runs, or waits for a disk.
AT_WORK: Final = frozenset("RD")
# By a signal, or by a debugger.
STOPPED: Final = frozenset("Tt")


class Activity(msgspec.Struct, frozen=True):
    """What a process does, how long it has had a processor, and how long it has waited for one, in nanoseconds."""

    state: str
    run_nanoseconds: int
    wait_nanoseconds: int = 0


def read_activity(pid: int) -> Activity | None:
    """Read what a process does; None where it is gone, or the system has no such place."""
    try:
        state = _read_fields(pid)[0]
        ran, waited, *_ = _read(pid, "schedstat").split()
        return Activity(state, int(ran), int(waited))
    except (OSError, ValueError, IndexError):
        return None


def measure_wait(before: Activity | None, now: Activity | None) -> float:
    """Return for how many seconds a process wanted to run and got no processor."""
    if before is None or now is None:
        return 0.0
    return max(0, now.wait_nanoseconds - before.wait_nanoseconds) / 1e9


def is_busy(before: Activity | None, now: Activity | None) -> bool:
    """Whether a process works; one of which nothing is known may do so."""
    if now is None:
        return True
    if now.state in STOPPED:
        return False
    return now.state in AT_WORK or before is None or now.run_nanoseconds != before.run_nanoseconds


def list_under(pid: int) -> list[int]:
    """Return the processes under one, at any depth."""
    parents: dict[int, int] = {}
    for place in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parents[int(place.name)] = int(_read_fields(int(place.name))[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def signal_all(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and all under it, which were found before the first of them could end."""
    for one in [pid, *list_under(pid)]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(one, number)


def _read_fields(pid: int) -> list[str]:
    """Return the fields after the name, which may have blanks and brackets: its state, its parent and more."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    """Read a line of the kernel's, without the file object that takes longer than all else: it is done all the time."""
    file = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    try:
        return os.read(file, LINE_BYTES_MAX).decode(errors="replace")
    finally:
        os.close(file)
