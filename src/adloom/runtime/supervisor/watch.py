"""Watches whether one child responds, and kills it when it is frozen; what the kernel knows of a process says if it works."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Final

import msgspec
import structlog

from adloom.core.setting import Variable, parse_within
from adloom.runtime.loops import sleep_until_next
from adloom.runtime.supervisor.liveness import (
    Liveness,
    LivenessBounds,
    LivenessVerdict,
    judge,
    mark_continued,
    record_tick,
)
from adloom.runtime.supervisor.liveness_pipe import SIGN_SECONDS, LivenessPipe

PROC: Final = Path("/proc")
LINE_BYTES_MAX: Final = 4_096
# Runs, or waits for a disk.
AT_WORK: Final = frozenset("RD")
# By a signal, or by a debugger.
STOPPED: Final = frozenset("Tt")
_SECONDS: Final = parse_within(0, 3_600)


class FreezeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of silence after which a child counts as frozen; 0 is never."""

    delivery_seconds: Annotated[int, Variable("ADLOOM_DELIVERY_FROZEN_SECONDS", _SECONDS)] = 5
    process_seconds: Annotated[int, Variable("ADLOOM_PROCESS_FROZEN_SECONDS", _SECONDS)] = 15
    # Only while they use no processor and no disk.
    server_seconds: Annotated[int, Variable("ADLOOM_SERVER_FROZEN_SECONDS", _SECONDS)] = 60


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


# Children write a sign of life at whole seconds: check some time after, never just before.
POLL_AFTER_SECONDS: Final = SIGN_SECONDS / 2
SIGN_TICK_SECONDS: Final = SIGN_SECONDS / 2  # While a child is silent.
SIGN_SILENT_SECONDS: Final = 1.5
# A server is asked less often: each question costs it a connection.
QUESTION_TICK_SECONDS: Final = 2.0
ANSWER_SECONDS_MAX: Final = 1.0
SERVER_CONTINUE_SECONDS: Final = 3.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """How a child is watched: after `frozen_seconds` without a response it counts as frozen."""

    frozen_seconds: float
    # For a program that writes no signs of life itself; False, an error or a timeout is no response.
    is_answering: Callable[[], Awaitable[bool]] | None = None
    # Called with False when the child stops responding, and with True when it responds again.
    on_change: Callable[[bool], None] = lambda _: None

    @property
    def bounds(self) -> LivenessBounds:
        if self.is_answering is None:
            return LivenessBounds(
                tick_seconds=SIGN_TICK_SECONDS,
                silent_seconds=SIGN_SILENT_SECONDS,
                frozen_seconds=self.frozen_seconds,
            )
        return LivenessBounds(
            tick_seconds=QUESTION_TICK_SECONDS + ANSWER_SECONDS_MAX,
            silent_seconds=QUESTION_TICK_SECONDS + ANSWER_SECONDS_MAX,
            frozen_seconds=self.frozen_seconds,
            continue_seconds=SERVER_CONTINUE_SECONDS,
        )


async def wait_until_frozen(pid: int, name: str, watched: Watched, pipe: LivenessPipe) -> float:
    """Check a child until it is frozen; then kill it, and return for how many seconds it was silent."""
    loop = asyncio.get_running_loop()
    bounds = watched.bounds
    checker = _Checker(pid, watched, pipe)
    liveness, verdict, checked_at = Liveness(), LivenessVerdict.RESPONDING, loop.time()
    while verdict is not LivenessVerdict.FROZEN:
        is_well = liveness == Liveness(has_responded=True)
        seconds = checker.find_seconds(is_well=is_well)
        await sleep_until_next(seconds, after=POLL_AFTER_SECONDS)  # One wake-up for all children.
        if is_well and checker.is_obviously_alive():  # Nearly always.
            checked_at = loop.time()
            continue
        is_responding = await checker.is_responding()
        waited, works = checker.measure_activity()
        now = loop.time()
        liveness = record_tick(
            liveness,
            bounds,
            # Time spent waiting for a processor is not silence: the machine is overloaded.
            elapsed_seconds=now - checked_at - waited,
            is_responding=is_responding,
            is_busy=works,
        )
        checked_at = now
        before, verdict = verdict, judge(liveness, bounds)
        if verdict is LivenessVerdict.CONTINUE:
            log.warning("child_told_to_go_on", child=name, silent_seconds=round(liveness.silent_seconds, 1))
            signal_all(pid, signal.SIGCONT)
            liveness = mark_continued(liveness)
        if is_responding or verdict is LivenessVerdict.SILENT is not before:
            watched.on_change(is_responding)
            _log_change(name, liveness, is_responding=is_responding, was=before)
    log.error("child_frozen", child=name, pid=pid, silent_seconds=round(liveness.silent_seconds, 1))
    signal_all(pid, signal.SIGKILL)
    return liveness.silent_seconds


def _log_change(name: str, liveness: Liveness, *, is_responding: bool, was: LivenessVerdict) -> None:
    if not is_responding:
        log.warning("child_silent", child=name, silent_seconds=round(liveness.silent_seconds, 1))
    elif was is not LivenessVerdict.RESPONDING:
        log.info("child_heard_again", child=name)


class _Checker:
    """Checks a child: by its signs of life, or by a request to it and its CPU time."""

    def __init__(self, pid: int, watched: Watched, pipe: LivenessPipe) -> None:
        self._pid = pid
        self._watched = watched
        self._pipe = pipe
        self._activity: Activity | None = None
        self._is_left_out = False  # The last question to a server at rest was.

    async def is_responding(self) -> bool:
        question = self._watched.is_answering
        if question is None:
            return self._pipe.take()
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await question()
        except (OSError, TimeoutError):
            return False

    def find_seconds(self, *, is_well: bool) -> float:
        """Return after how many seconds to check again."""
        if self._watched.is_answering is not None:
            return QUESTION_TICK_SECONDS
        return SIGN_SECONDS if is_well else SIGN_TICK_SECONDS

    def is_obviously_alive(self) -> bool:
        """Whether no request is needed: there was a sign, or a server has used CPU time since the last check.

        One at rest is asked every second time, unless a signal has stopped it: PostgreSQL forks for each question.
        """
        if self._watched.is_answering is None:
            # Its activity is not read: at worst its silence is counted from here on.
            self._activity = None
            return self._pipe.take()
        before, now = self._activity, read_activity(self._pid)
        if before is None or now is None:
            return False
        if is_busy(before, now):
            self._activity = now
            return True
        self._is_left_out = not self._is_left_out and now.state not in STOPPED
        return self._is_left_out

    def measure_activity(self) -> tuple[float, bool]:
        """Return how long the child has waited for a processor since the last check, and whether it is busy.

        Only servers may be busy instead of responding: our own processes must respond from their event loop.
        """
        before, self._activity = self._activity, read_activity(self._pid)
        works = self._watched.is_answering is not None and is_busy(before, self._activity)
        return measure_wait(before, self._activity), works
