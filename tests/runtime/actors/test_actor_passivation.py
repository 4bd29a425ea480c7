"""Entities that nobody talks to leave memory, and cost nothing until somebody does."""

import asyncio
from datetime import datetime, timedelta

from adloom.core.random import Chance
from adloom.runtime.actors.actor import ActorKind, StepResult, Tell
from adloom.runtime.actors.host import LOOK_SECONDS
from simulation.faults import VirtualClock
from tests.support.actors import (
    START,
    Add,
    MemoryStates,
    Stage,
    Tally,
    Woken,
    a_tally,
    on_virtual_time,
    tally_step,
)


@on_virtual_time
async def test_an_idle_actor_is_evicted_after_five_minutes_and_comes_back_as_it_was() -> None:
    stage = Stage()
    async with stage.running() as host:
        await stage.told(Add())
        await asyncio.sleep(299)
        assert host.active == 1
        await asyncio.sleep(2)
        assert host.active == 0

        assert await stage.told(Add()) == 2


@on_virtual_time
async def test_an_actor_that_gets_messages_is_not_evicted() -> None:
    stage = Stage()
    async with stage.running() as host:
        for key in "ab":
            await stage.told(Add(), key)
        for _ in range(10):
            await asyncio.sleep(60)
            await stage.told(Add(), "a")

        assert host.active == 1
        assert stage.states.loads == [[a_tally("a")], [a_tally("b")]]


@on_virtual_time
async def test_an_actor_is_persisted_before_it_is_evicted() -> None:
    stage = Stage()
    async with stage.running() as host:
        future = host.send_durably(a_tally(), Add(is_kept=False))
        await asyncio.sleep(301)

        assert host.active == 0
        assert future.done()
        assert await stage.told(Add()) == 2


@on_virtual_time
async def test_an_actor_that_cannot_be_stored_does_not_block_the_eviction_of_others() -> None:
    stage = Stage(idle_max=timedelta(seconds=10))
    async with stage.running() as host:
        for key in "ab":
            await stage.told(Add(is_kept=False), key)
        stage.states.is_away = True
        await asyncio.sleep(100)
        stage.states.is_away = False
        await stage.told(Add(is_kept=False), "b")
        await asyncio.sleep(100)

        assert host.active == 0
        tally = stage.states.tally("b")
        assert tally is not None
        assert tally.count == 1  # The rest was never kept, and nobody was told that it was.


@on_virtual_time
async def test_an_actor_that_fails_its_last_wake_is_stored_as_it_is() -> None:
    def step(state: Tally, message: Add, now: datetime, chance: Chance) -> StepResult[Tally]:
        if message.fails:
            raise RuntimeError("as always")
        return tally_step(state, message, now, chance)

    kind = ActorKind("tally", Tally, step, lambda key, _: Tally(key), on_waking=Add(fails=True))
    stage = Stage(kind=kind)
    async with stage.running() as host:
        await stage.told(Add(is_kept=False))
        await asyncio.sleep(301)

        assert host.active == 0
        assert host.counts.failed == 1
        assert stage.states.tally() == Tally("a", 1, heard=(1,))


@on_virtual_time
async def test_an_actor_that_gets_a_message_from_an_evicted_one_stays() -> None:
    def step(state: Tally, message: Add | Woken, now: datetime, chance: Chance) -> StepResult[Tally]:
        if isinstance(message, Woken):
            return StepResult(state, (Tell(a_tally("b"), Add(is_kept=False)),))
        return tally_step(state, message, now, chance)

    stage = Stage(kind=ActorKind("tally", Tally, step, lambda key, _: Tally(key), on_waking=Woken()))
    async with stage.running() as host:
        host.tell(a_tally("b"), Add())
        await stage.told(Add(is_kept=False), "a")
        await asyncio.sleep(301)

        assert host.active == 1
        assert await stage.told(Add(), "b") == 3


@on_virtual_time
async def test_an_actor_gets_its_first_messages_again_when_it_comes_back() -> None:
    stage = Stage()
    stage.catalog.introductions = {a_tally(): [Add(amount=100)]}
    async with stage.running():
        await stage.told(Add())
        await asyncio.sleep(301)

        assert await stage.told(Add()) == 202


class CountedClock(VirtualClock):
    """Counts how often somebody looks at it."""

    looks = 0

    def now(self) -> datetime:
        self.looks += 1
        return super().now()


@on_virtual_time
async def test_a_day_in_which_nothing_happens_costs_nothing() -> None:
    stage = Stage()
    async with stage.running() as host:
        await stage.told(Add())
        await asyncio.sleep(400)
        batches, loads = host.counts.batches, len(stage.states.loads)

        await asyncio.sleep(86_400)

        assert (host.counts.batches, len(stage.states.loads)) == (batches, loads)


@on_virtual_time
async def test_a_host_of_thousands_that_sleep_looks_at_the_clock_once_a_minute_at_most() -> None:
    states = MemoryStates()
    for number in range(1_000):
        states.keep(Tally(str(number)), wake_at=START + timedelta(days=2, seconds=number))
    clock = CountedClock(START)
    stage = Stage(states=states, clock=clock)
    async with stage.running() as host:
        await asyncio.sleep(86_400)

        assert host.alarms == 1_000
        assert host.counts.steps == 0
        assert clock.looks < 10 * 86_400 / LOOK_SECONDS
