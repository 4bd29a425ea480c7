"""The measured processes: CPU time and memory, pinning to cores, and stopping them."""

import contextlib
import os
import subprocess
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

import msgspec
import psutil


class ProcessUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU time of some processes since they started, and their memory now."""

    cpu_seconds: float
    resident_bytes: int


def measure_usage(pids: Iterable[int]) -> ProcessUsage:
    """Sum over processes, all of which must be running."""
    each = [psutil.Process(pid) for pid in pids]
    times = [process.cpu_times() for process in each]
    return ProcessUsage(
        cpu_seconds=sum(time.user + time.system for time in times),
        resident_bytes=sum(process.memory_info().rss for process in each),
    )


def list_descendants(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def read_command_line(pid: int) -> list[str]:
    """Return the arguments of a process; none if it has ended."""
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


def pin_to_last_cpu(pid: int) -> None:
    """Pin a load generator to the last core.

    Otherwise the system often runs a server on the core of the client that wakes it, while another core idles.
    """
    allowed = os.sched_getaffinity(0)
    if len(allowed) > 1:
        _bind(pid, {max(allowed)})


def keep_off_last_cpu(pid: int) -> None:
    allowed = os.sched_getaffinity(0)
    if len(allowed) > 1:
        _bind(pid, allowed - {max(allowed)})


def stop(process: subprocess.Popen[bytes], *, seconds_max: float) -> None:
    process.terminate()
    try:
        process.wait(seconds_max)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _bind(pid: int, cpus: AbstractSet[int]) -> None:
    # The process may have ended already, if it failed to start.
    with contextlib.suppress(OSError):
        os.sched_setaffinity(pid, cpus)
