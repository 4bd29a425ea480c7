"""Listens for signs of life of one child, and ends it when it is frozen."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from adloom.runtime.loops import sleep_until_next
from adloom.runtime.supervisor.activity import Activity, is_busy, measure_wait, read_activity, signal_all
from adloom.runtime.supervisor.liveness import (
    Liveness,
    LivenessBounds,
    LivenessVerdict,
    judge,
    mark_told,
    record_tick,
)
from adloom.runtime.supervisor.liveness_pipe import SIGN_SECONDS, LivenessPipe

# Signs are written at whole seconds: no look may come just before one.
POLL_AFTER_SECONDS: Final = SIGN_SECONDS / 2
SIGN_TICK_SECONDS: Final = SIGN_SECONDS / 2  # While a child is silent.
SIGN_SILENT_SECONDS: Final = 1.5
# A server is asked less often: each question costs it a connection.
QUESTION_TICK_SECONDS: Final = 2.0
ANSWER_SECONDS_MAX: Final = 1.0
SERVER_CONTINUE_SECONDS: Final = 3.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """How a child is watched: after so many seconds of silence it is frozen."""

    frozen_seconds: float
    # Asked of a program that gives no signs by itself; False, an error or no answer in time is silence.
    is_answering: Callable[[], Awaitable[bool]] | None = None
    # Told when the child falls silent, and when it is heard again.
    heard: Callable[[bool], None] = lambda _: None

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
    """Listen to a child until it is frozen, and return for how long it was silent; it is killed then."""
    loop = asyncio.get_running_loop()
    bounds = watched.bounds
    listener = _Listener(pid, watched, pipe)
    liveness, verdict, heard_at = Liveness(), LivenessVerdict.HEARD, loop.time()
    while verdict is not LivenessVerdict.FROZEN:
        is_well = liveness == Liveness(has_begun=True)
        seconds = listener.find_seconds(is_well=is_well)
        await sleep_until_next(seconds, after=POLL_AFTER_SECONDS)  # Of many children at once.
        if is_well and listener.is_obviously_alive():  # As almost always.
            heard_at = loop.time()
            continue
        is_heard = await listener.is_heard()
        waited, works = listener.measure_activity()
        now = loop.time()
        liveness = record_tick(
            liveness,
            bounds,
            # On an overloaded machine a process is not silent: it does not get to speak.
            elapsed_seconds=now - heard_at - waited,
            is_heard=is_heard,
            is_busy=works,
        )
        heard_at = now
        before, verdict = verdict, judge(liveness, bounds)
        if verdict is LivenessVerdict.CONTINUE:
            log.warning("child_told_to_go_on", child=name, silent_seconds=round(liveness.silent_seconds, 1))
            signal_all(pid, signal.SIGCONT)
            liveness = mark_told(liveness)
        if is_heard or verdict is LivenessVerdict.SILENT is not before:
            watched.heard(is_heard)
            _log_change(name, liveness, is_heard=is_heard, was=before)
    log.error("child_frozen", child=name, pid=pid, silent_seconds=round(liveness.silent_seconds, 1))
    signal_all(pid, signal.SIGKILL)
    return liveness.silent_seconds


def _log_change(name: str, liveness: Liveness, *, is_heard: bool, was: LivenessVerdict) -> None:
    if not is_heard:
        log.warning("child_silent", child=name, silent_seconds=round(liveness.silent_seconds, 1))
    elif was is not LivenessVerdict.HEARD:
        log.info("child_heard_again", child=name)


class _Listener:
    """Hears a child: by its signs, or by asking it and looking at what it does."""

    def __init__(self, pid: int, watched: Watched, pipe: LivenessPipe) -> None:
        self._pid = pid
        self._watched = watched
        self._pipe = pipe
        self._activity: Activity | None = None

    async def is_heard(self) -> bool:
        question = self._watched.is_answering
        if question is None:
            return self._pipe.take()
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await question()
        except (OSError, TimeoutError):
            return False

    def find_seconds(self, *, is_well: bool) -> float:
        """Return after how long to look again."""
        if self._watched.is_answering is not None:
            return QUESTION_TICK_SECONDS
        return SIGN_SECONDS if is_well else SIGN_TICK_SECONDS

    def is_obviously_alive(self) -> bool:
        """Whether there was a sign, or a server has worked since the last look, so that it need not be asked."""
        if self._watched.is_answering is None:
            # What the child did until now is not asked: at worst its silence is counted from here on.
            self._activity = None
            return self._pipe.take()
        before, now = self._activity, read_activity(self._pid)
        if before is None or now is None or not is_busy(before, now):
            return False
        self._activity = now
        return True

    def measure_activity(self) -> tuple[float, bool]:
        """Return how long the child has waited for a processor since the last look, and whether it works.

        The latter is asked of servers only: of our own processes the event loop must be heard.
        """
        before, self._activity = self._activity, read_activity(self._pid)
        works = self._watched.is_answering is not None and is_busy(before, self._activity)
        return measure_wait(before, self._activity), works
