"""The loop of followers: it looks at each notice, says once that something is away, and goes on."""

import asyncio

from structlog.testing import capture_logs

from adloom.core.errors import UnavailableError
from adloom.runtime.loops import LookLoop, pause, until_next
from tests.support.eventually import eventually


async def test_what_is_away_is_logged_once_and_looked_for_again() -> None:
    stop = asyncio.Event()
    outcomes = iter([UnavailableError("away"), UnavailableError("away"), ValueError("odd"), None])
    looks: list[object] = []

    async def look() -> None:
        await asyncio.sleep(0)
        outcome = next(outcomes)
        looks.append(outcome)
        if outcome is None:
            stop.set()
        else:
            raise outcome

    loop = LookLoop(look, every_seconds=0, away=(UnavailableError,), name="pages")
    with capture_logs() as logs:
        await loop.run(stop)

    assert len(looks) == 4
    assert [one["event"] for one in logs] == ["look_cut_off", "look_failed"]


async def test_those_who_wait_for_a_multiple_of_some_seconds_wake_together() -> None:
    woken: list[float] = []
    never, loop = asyncio.Event(), asyncio.get_running_loop()

    async def wake(begins_after: float) -> None:
        await asyncio.sleep(begins_after)
        seconds = until_next(1.0)
        assert 0.1 < seconds <= 1.1
        woken.append(round(loop.time() + seconds, 6))
        await pause(seconds, never)

    await asyncio.gather(*(wake(number / 100) for number in range(10)))

    assert all(at % 1.0 < 0.01 or at % 1.0 > 0.99 for at in woken)
    assert until_next(0) == 0


async def test_a_notice_is_followed_at_once() -> None:
    stop, looks = asyncio.Event(), 0

    async def look() -> None:
        nonlocal looks
        await asyncio.sleep(0)
        looks += 1

    loop = LookLoop(look, every_seconds=3_600, away=(), name="pages")
    async with asyncio.TaskGroup() as group:
        group.create_task(loop.run(stop))
        await eventually(lambda: looks == 1, seconds=30)
        loop.noticed.set()
        await eventually(lambda: looks == 2, seconds=30)
        stop.set()

    assert looks == 2
