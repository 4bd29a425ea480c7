"""The processes of a bench: CPU time and memory, pinning to cores, and stopping them."""

import contextlib
import multiprocessing
import os
import subprocess
from collections.abc import Callable, Collection, Generator, Iterable
from collections.abc import Set as AbstractSet
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import msgspec
import psutil

STOP_SECONDS_MAX: Final = 15.0

ShowStatus = Callable[[str], None]
P = ParamSpec("P")
ResultT = TypeVar("ResultT")


class LoadError(Exception):
    """A server did not start, or did not answer well, or its load could not be generated."""


class ProcessUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU time of some processes since they started, and their memory now."""

    user_seconds: float
    system_seconds: float
    resident_bytes: int

    @property
    def cpu_seconds(self) -> float:
        return self.user_seconds + self.system_seconds


def measure_usage(pids: Iterable[int]) -> ProcessUsage:
    """Sum over processes, all of which must be running."""
    each = [psutil.Process(pid) for pid in pids]
    times = [process.cpu_times() for process in each]
    return ProcessUsage(
        user_seconds=sum(time.user for time in times),
        system_seconds=sum(time.system for time in times),
        resident_bytes=sum(process.memory_info().rss for process in each),
    )


class CpuMeter:
    """The CPU time that some processes, and those they start and end, use from now on."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._before = self._read_total()

    def read_seconds(self) -> float:
        return self._read_total() - self._before

    def _read_total(self) -> float:
        every = {pid for parent in self._pids for pid in (parent, *_list_running(parent))}
        return sum(map(_read_cpu_seconds, every))


def _list_running(pid: int) -> list[int]:
    try:
        return list_descendants(pid)
    except psutil.NoSuchProcess:
        return []


def _read_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and of its children that have ended; those are its own when it has ended."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system + times.children_user + times.children_system


def list_descendants(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def find_descendants(pid: int, word: str) -> list[int]:
    """Return the descendants of a process with this word at the beginning of their command lines."""
    return [
        child for child in list_descendants(pid) if any(word in part for part in read_command_line(child)[:4])
    ]


def read_command_line(pid: int) -> list[str]:
    """Return the arguments of a process; none if it has ended."""
    try:
        return psutil.Process(pid).cmdline()
    except psutil.Error:
        return []


def run_in_fresh_process(work: Callable[P, ResultT], *arguments: P.args, **options: P.kwargs) -> ResultT:
    """Measure memory in a process of its own: a process that has used more does not return it."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(work, *arguments, **options).result()


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


@contextlib.contextmanager
def keep_apart(measured: Collection[int], others: Collection[int]) -> Generator[None]:
    """Let other processes use the last core only, with the load generator, and those that are measured the rest."""
    allowed = os.sched_getaffinity(0)
    for pid in measured:
        keep_off_last_cpu(pid)
    for pid in others:
        pin_to_last_cpu(pid)
    try:
        yield
    finally:
        for pid in (*measured, *others):
            _bind(pid, allowed)


def find_python(checkout: Path) -> str:
    """Return the Python of another checkout."""
    python = checkout.absolute() / ".venv" / "bin" / "python"
    if not python.is_file():
        raise LoadError(f"{python} is missing: run `uv sync --all-groups` in {checkout}.")
    return str(python)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _bind(pid: int, cpus: AbstractSet[int]) -> None:
    # The process may have ended already, if it failed to start.
    with contextlib.suppress(OSError):
        os.sched_setaffinity(pid, cpus)
