"""Checks in the background: often while somebody probes, rarely while nobody does, and never old for a probe."""

import asyncio
from collections.abc import Awaitable, Callable

from adloom.runtime.http.background_check import BackgroundCheck, run_checks, wait_until_known
from tests.support.eventually import eventually


class CountedLooks:
    """A part that answers a number, one more each time."""

    def __init__(self) -> None:
        self.count = 0
        self.is_away = False

    async def look(self) -> int:
        self.count += 1
        if self.is_away:
            raise OSError
        return self.count


def a_check(look: Callable[[], Awaitable[int | None]], *, quiet_after_seconds: float) -> BackgroundCheck[int]:
    return BackgroundCheck(look, away=(OSError,), every_seconds=0.01, quiet_after_seconds=quiet_after_seconds)


async def test_a_part_is_looked_at_again_and_again_while_it_is_asked_about() -> None:
    looks = CountedLooks()
    check = a_check(looks.look, quiet_after_seconds=60)
    async with run_checks(check):
        await wait_until_known(check)
        await eventually(lambda: check.result is not None and check.result > 3, seconds=30)


async def test_a_part_that_nobody_asks_about_is_left_alone_until_the_next_probe_which_sees_it_anew() -> None:
    looks = CountedLooks()
    check = a_check(looks.look, quiet_after_seconds=0)
    async with run_checks(check):
        await wait_until_known(check)
        await asyncio.sleep(0.3)
        # One look for the start and one for the probe; 0.3 seconds had room for thirty.
        assert looks.count <= 3

        looks.is_away = True
        await eventually(lambda: check.age_seconds is not None and check.age_seconds > 0.02, seconds=30)
        await wait_until_known(check)
        assert check.result is None


async def test_a_probe_does_not_wait_for_a_part_that_hangs_and_says_what_was_known() -> None:
    hanging = asyncio.Event()

    async def look() -> int:
        await hanging.wait()
        return 1

    check = a_check(look, quiet_after_seconds=60)
    async with asyncio.timeout(30), run_checks(check):
        await wait_until_known(check)
        assert check.result is None
        hanging.set()
        await eventually(lambda: check.result == 1, seconds=30)


async def test_the_first_probe_after_a_while_does_not_trust_what_was_known_of_a_part_that_hangs() -> None:
    answers = iter((1,))

    async def look() -> int:
        return next(answers, None) or await asyncio.Event().wait()

    check = a_check(look, quiet_after_seconds=0)
    async with asyncio.timeout(30), run_checks(check):
        await eventually(lambda: check.result == 1, seconds=30)
        await asyncio.sleep(0.05)
        await wait_until_known(check)
        assert check.result is None
