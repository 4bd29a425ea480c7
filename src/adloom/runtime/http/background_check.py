"""Checks that run in the background, so that a probe reads their last result and does not wait for one.

Without probes they do not run: an idle process would otherwise do little else, and connect for nothing else. The
first probe after that waits until the part has answered, or counts as away.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

from adloom.runtime.loops import pause

EVERY_SECONDS: Final = 0.5
# A part that has not answered by then is away; the check itself goes on, to find out when it is back.
SECONDS_MAX: Final = 1.0
GIVEN_BACK_SECONDS_MAX: Final = 0.2
FIRST_SECONDS_MAX: Final = 0.15  # A probe must be answered within 0.2 s.
QUIET_AFTER_SECONDS: Final = 15.0  # Without a probe for so long, a part is not looked at.

T = TypeVar("T")


class BackgroundCheck(Generic[T]):
    """Looks at a part again and again while it is asked about; `result` is what was seen last, None while away."""

    def __init__(
        self,
        check: Callable[[], Awaitable[T | None]],
        *,
        away: tuple[type[Exception], ...],
        every_seconds: float = EVERY_SECONDS,
        quiet_after_seconds: float = QUIET_AFTER_SECONDS,
    ) -> None:
        self._check = check
        self._every_seconds = every_seconds
        self._quiet_after_seconds = quiet_after_seconds
        self._away = away
        self._seen_at: float | None = None
        self._asked_at = 0.0
        self._is_asked = asyncio.Event()
        self._is_known = asyncio.Event()
        self.result: T | None = None

    @property
    def age_seconds(self) -> float | None:
        """How old the result is; None before the first."""
        if self._seen_at is None:
            return None
        return round(asyncio.get_running_loop().time() - self._seen_at, 3)

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        self._asked_at = clock()
        await pause(EVERY_SECONDS, self._is_asked)
        while True:
            self._is_asked.clear()
            await self.check()
            await asyncio.sleep(self._every_seconds)
            if clock() - self._asked_at >= self._quiet_after_seconds:
                await self._is_asked.wait()

    async def wait_until_known(self) -> None:
        """Wait for a result where there is none yet, or only one from a time without probes."""
        now = asyncio.get_running_loop().time()
        is_quiet = now - self._asked_at >= self._quiet_after_seconds
        self._asked_at = now
        self._is_asked.set()
        if self._seen_at is None:
            await pause(FIRST_SECONDS_MAX, self._is_known)
        elif is_quiet and now - self._seen_at > self._every_seconds:
            self._is_known.clear()
            # By then the check has ended, or the part counts as away.
            await pause(SECONDS_MAX + FIRST_SECONDS_MAX, self._is_known)

    async def check(self) -> None:
        """Check once. A check that takes too long means away from then on, until it has ended."""
        checking = asyncio.ensure_future(self._try_to_check())
        try:
            done, _ = await asyncio.wait({checking}, timeout=SECONDS_MAX)
            if not done:
                self._set(None)
            self._set(await checking)
        finally:
            # When we stop, its connection is given back before the pool is closed, unless the server is frozen.
            await asyncio.wait({checking}, timeout=GIVEN_BACK_SECONDS_MAX)
            checking.cancel()

    async def _try_to_check(self) -> T | None:
        try:
            return await self._check()
        except self._away:
            return None

    def _set(self, result: T | None) -> None:
        self.result = result
        self._seen_at = asyncio.get_running_loop().time()
        self._is_known.set()


@asynccontextmanager
async def run_checks(*checks: BackgroundCheck[int] | BackgroundCheck[bool]) -> AsyncGenerator[None]:
    """Run checks beside the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(check.run()) for check in checks]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def wait_until_known(*checks: BackgroundCheck[int] | BackgroundCheck[bool]) -> None:
    async with asyncio.TaskGroup() as group:
        for check in checks:
            group.create_task(check.wait_until_known())


def find_oldest_age(*checks: BackgroundCheck[int] | BackgroundCheck[bool]) -> float | None:
    """Return the age of the oldest of some results; None if one of them is not there yet."""
    ages = [check.age_seconds for check in checks]
    known = [age for age in ages if age is not None]
    return max(known) if len(known) == len(ages) else None
