"""Turns at slow work: who asks often waits behind itself, and nobody waits for long."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from adloom.core.errors import UnavailableError
from adloom.runtime.auth.fair_turns import WAITING_MAX, FairTurns

LONG = 60.0


class Work:
    """Does one piece of work after another, each when it is told to, and notes whose it was."""

    def __init__(self, *, wait_seconds_max: float = LONG) -> None:
        self.turns = FairTurns(1, refusal="Too many.", wait_seconds_max=wait_seconds_max)
        self.done: list[str] = []
        self.refused: list[str] = []

    @asynccontextmanager
    async def busy(self) -> AsyncGenerator[asyncio.TaskGroup]:
        """Keep the only turn while others ask."""
        async with asyncio.TaskGroup() as group, self.turns.hold("first", is_known=False):
            yield group
            await asyncio.sleep(0.01)

    async def do(self, client: str, *, is_known: bool = False) -> None:
        try:
            async with self.turns.hold(client, is_known=is_known):
                self.done.append(client)
        except UnavailableError:
            self.refused.append(client)


async def test_clients_take_turns_however_often_one_asks() -> None:
    work = Work()

    async with work.busy() as group:
        for client in ("flood", "flood", "flood", "flood", "ann", "bob", "ann"):
            group.create_task(work.do(client))

    assert work.done == ["flood", "ann", "bob", "flood", "ann", "flood", "flood"]


async def test_known_clients_get_every_other_turn_however_many_strangers_ask() -> None:
    work = Work()

    async with work.busy() as group:
        for number in range(5):
            group.create_task(work.do(f"stranger {number}"))
        for client in ("ann", "bob"):
            group.create_task(work.do(client, is_known=True))

    assert work.done[:4] == ["ann", "stranger 0", "bob", "stranger 1"]
    assert len(work.done) == 7


async def test_who_waits_for_too_long_is_refused_and_the_turns_go_on() -> None:
    work = Work(wait_seconds_max=0.05)

    async with work.turns.hold("first", is_known=False):
        await asyncio.gather(*[work.do("ann") for _ in range(3)])
        assert work.refused == ["ann"] * 3
    await work.do("bob")

    assert work.done == ["bob"]


async def test_beyond_the_bound_the_client_that_waits_most_makes_room() -> None:
    work = Work()

    async with work.busy() as group:
        for _ in range(WAITING_MAX):
            group.create_task(work.do("flood"))
        for client in ("ann", "bob", "flood"):
            group.create_task(work.do(client))

    assert work.refused == ["flood"] * 3
    assert work.done[:3] == ["flood", "ann", "bob"]
    assert len(work.done) == WAITING_MAX


async def test_as_many_strangers_as_may_wait_keep_no_known_client_out() -> None:
    work = Work()

    async with work.busy() as group:
        for number in range(WAITING_MAX + 1):
            group.create_task(work.do(f"stranger {number}"))
        group.create_task(work.do("ann", is_known=True))

    assert work.refused == [f"stranger {WAITING_MAX}"]
    assert work.done[0] == "ann"


async def test_a_turn_of_somebody_who_has_left_goes_to_the_next() -> None:
    work = Work()

    async with work.turns.hold("first", is_known=False):
        leaving, staying = asyncio.create_task(work.do("ann")), asyncio.create_task(work.do("bob"))
        await asyncio.sleep(0)
    leaving.cancel()  # It has its turn already, and does not know it yet.
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await staying
    await work.do("cleo")

    assert work.done == ["bob", "cleo"]
