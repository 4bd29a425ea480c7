"""A task that is cancelled ends, whatever it waits for at that moment."""

import asyncio

from adloom.runtime.valkey import Valkey

STEPS = 60
TRIES = 4


async def test_a_cancellation_in_any_step_of_a_command_ends_its_task(valkey: Valkey) -> None:
    went_on: list[int] = []
    for steps in (steps for steps in range(STEPS) for _ in range(TRIES)):
        task = asyncio.create_task(_ask_twice(valkey))
        for _ in range(steps):
            await asyncio.sleep(0)
        if not task.cancel():
            continue
        await asyncio.wait([task])
        if not task.cancelled():
            went_on.append(steps)

    assert went_on == []


async def _ask_twice(valkey: Valkey) -> None:
    await valkey.ping()
    await valkey.ping()


async def test_what_takes_too_long_is_ended() -> None:
    begun = asyncio.create_task(asyncio.sleep(60))
    for wait in (0.01, 0):
        try:
            await asyncio.wait_for(begun, wait)
        except TimeoutError:
            assert begun.cancelled()
        begun = asyncio.create_task(asyncio.sleep(60))
    begun.cancel()
    assert await asyncio.wait_for(asyncio.sleep(0, 7), None) == 7
