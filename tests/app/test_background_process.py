"""A process in the background ends when it is asked to, or when it asks for a new one by itself."""

import asyncio

import pytest

from adloom.app.health import run_until_stopped, wait_until_lasting


@pytest.mark.parametrize("is_asked", [True, False])
async def test_work_is_told_to_stop_whatever_ended_first_and_who_ended_it_is_said(is_asked: bool) -> None:  # noqa: FBT001 - a case
    began, other = asyncio.Event(), asyncio.Event()
    told: list[bool] = []

    async def run(stop: asyncio.Event) -> None:
        began.set()
        await stop.wait()
        told.append(True)

    async def end_first() -> None:
        await began.wait()

    async def wait_for_ever() -> None:
        await other.wait()

    health, end = (end_first(), wait_for_ever()) if is_asked else (wait_for_ever(), end_first())

    assert await run_until_stopped([run], health, end) is not is_asked
    assert told == [True]


async def test_what_was_so_for_a_while_is_lasting_and_what_was_interrupted_begins_anew() -> None:
    polls = iter([True, True, False, True, True, True])

    await wait_until_lasting(lambda: next(polls), poll_seconds=0, polls=3)

    assert next(polls, None) is None
