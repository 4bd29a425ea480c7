"""The loop of followers: it looks at each notice, says once that something is away, and goes on."""

import asyncio

from structlog.testing import capture_logs

from adloom.core.errors import UnavailableError
from adloom.runtime.loops import PollLoop, compute_wait, pause, pause_until_next, sleep_until_next
from tests.support.eventually import eventually


async def test_what_is_away_is_logged_once_and_looked_for_again() -> None:
    stop = asyncio.Event()
    outcomes = iter([UnavailableError("away"), UnavailableError("away"), ValueError("odd"), None])
    polls: list[object] = []

    async def poll() -> None:
        await asyncio.sleep(0)
        outcome = next(outcomes)
        polls.append(outcome)
        if outcome is None:
            stop.set()
        else:
            raise outcome

    loop = PollLoop(poll, every_seconds=0, away=(UnavailableError,), name="pages")
    with capture_logs() as logs:
        await loop.run(stop)

    assert len(polls) == 4
    assert [one["event"] for one in logs] == ["look_cut_off", "look_failed"]


async def test_those_who_wait_for_a_multiple_of_some_seconds_wake_in_one_turn() -> None:
    never, loop, woken = asyncio.Event(), asyncio.get_running_loop(), list[float]()
    turns = 0

    async def wake(begins_after: float) -> int:
        await asyncio.sleep(begins_after)
        assert 0.1 < compute_wait(1.0) <= 1.1
        await (pause_until_next(1.0, never) if begins_after else sleep_until_next(1.0))
        woken.append(loop.time())
        return turns

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    await asyncio.sleep(compute_wait(1.0) % 1.0 + 0.05)  # All of them begin in one second.
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(wake(number / 100)) for number in range(10)]
        await asyncio.sleep(0.5)
        counting = group.create_task(count_turns())
        found = await asyncio.gather(*tasks)
        counting.cancel()

    assert len(set(found)) == 1
    assert all(at % 1.0 < 0.5 for at in woken)
    assert compute_wait(0) == 0


async def test_a_pause_ends_with_its_time_its_event_or_its_task() -> None:
    event = asyncio.Event()
    await pause(0, event)
    await pause_until_next(0, event)

    for wait in (pause, pause_until_next):
        event.clear()
        waiting = asyncio.ensure_future(wait(3_600, event))
        cancelled = asyncio.ensure_future(wait(3_600, event))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.sleep(0)
        assert cancelled.cancelled()
        assert not waiting.done()

        event.set()
        async with asyncio.timeout(30):
            await waiting
            await wait(3_600, event)


async def test_a_notice_is_followed_at_once() -> None:
    stop, polls = asyncio.Event(), 0

    async def poll() -> None:
        nonlocal polls
        await asyncio.sleep(0)
        polls += 1

    loop = PollLoop(poll, every_seconds=3_600, away=(), name="pages")
    async with asyncio.TaskGroup() as group:
        group.create_task(loop.run(stop))
        await eventually(lambda: polls == 1, seconds=30)
        loop.noticed.set()
        await eventually(lambda: polls == 2, seconds=30)
        stop.set()

    assert polls == 2
