"""Actors without messages leave memory, and cost nothing until the next message."""

import asyncio
from datetime import datetime, timedelta

from adloom.core.random import Chance
from adloom.runtime.actors.actor import ActorKind, StepResult, Tell
from adloom.runtime.actors.host import POLL_SECONDS
from simulation.faults import VirtualClock
from tests.support.actors import (
    START,
    Add,
    HostSystem,
    MemoryStates,
    Tally,
    Woken,
    a_tally,
    on_virtual_time,
    tally_step,
)


@on_virtual_time
async def test_an_idle_actor_is_evicted_after_five_minutes_and_loaded_unchanged() -> None:
    system = HostSystem()
    async with system.running() as host:
        await system.ask(Add())
        await asyncio.sleep(299)
        assert host.active == 1
        await asyncio.sleep(2)
        assert host.active == 0

        assert await system.ask(Add()) == 2


@on_virtual_time
async def test_an_actor_that_gets_messages_is_not_evicted() -> None:
    system = HostSystem()
    async with system.running() as host:
        for key in "ab":
            await system.ask(Add(), key)
        for _ in range(10):
            await asyncio.sleep(60)
            await system.ask(Add(), "a")

        assert host.active == 1
        assert system.states.loads == [[a_tally("a")], [a_tally("b")]]


@on_virtual_time
async def test_an_actor_is_persisted_before_it_is_evicted() -> None:
    system = HostSystem()
    async with system.running() as host:
        future = host.send_durably(a_tally(), Add(is_kept=False))
        await asyncio.sleep(301)

        assert host.active == 0
        assert future.done()
        assert await system.ask(Add()) == 2


@on_virtual_time
async def test_an_actor_that_cannot_be_stored_does_not_block_the_eviction_of_others() -> None:
    system = HostSystem(idle_max=timedelta(seconds=10))
    async with system.running() as host:
        for key in "ab":
            await system.ask(Add(is_kept=False), key)
        system.states.is_away = True
        await asyncio.sleep(100)
        system.states.is_away = False
        await system.ask(Add(is_kept=False), "b")
        await asyncio.sleep(100)

        assert host.active == 0
        tally = system.states.tally("b")
        assert tally is not None
        assert tally.count == 1  # The rest was never stored, and never reported as stored.


@on_virtual_time
async def test_an_actor_whose_last_wake_fails_is_stored_unchanged() -> None:
    def step(state: Tally, message: Add, now: datetime, chance: Chance) -> StepResult[Tally]:
        if message.fails:
            raise RuntimeError("as always")
        return tally_step(state, message, now, chance)

    kind = ActorKind("tally", Tally, step, lambda key, _: Tally(key), on_waking=Add(fails=True))
    system = HostSystem(kind=kind)
    async with system.running() as host:
        await system.ask(Add(is_kept=False))
        await asyncio.sleep(301)

        assert host.active == 0
        assert host.counts.failed == 1
        assert system.states.tally() == Tally("a", 1, received=(1,))


@on_virtual_time
async def test_an_actor_that_gets_a_message_from_an_evicted_one_stays_in_memory() -> None:
    def step(state: Tally, message: Add | Woken, now: datetime, chance: Chance) -> StepResult[Tally]:
        if isinstance(message, Woken):
            return StepResult(state, (Tell(a_tally("b"), Add(is_kept=False)),))
        return tally_step(state, message, now, chance)

    system = HostSystem(kind=ActorKind("tally", Tally, step, lambda key, _: Tally(key), on_waking=Woken()))
    async with system.running() as host:
        host.tell(a_tally("b"), Add())
        await system.ask(Add(is_kept=False), "a")
        await asyncio.sleep(301)

        assert host.active == 1
        assert await system.ask(Add(), "b") == 3


@on_virtual_time
async def test_an_actor_gets_its_first_messages_again_when_it_is_loaded_again() -> None:
    system = HostSystem()
    system.catalog.introductions = {a_tally(): [Add(amount=100)]}
    async with system.running():
        await system.ask(Add())
        await asyncio.sleep(301)

        assert await system.ask(Add()) == 202


class CountedClock(VirtualClock):
    """Counts how often it is read."""

    looks = 0

    def now(self) -> datetime:
        self.looks += 1
        return super().now()


@on_virtual_time
async def test_an_idle_day_runs_no_batches_and_no_loads() -> None:
    system = HostSystem()
    async with system.running() as host:
        await system.ask(Add())
        await asyncio.sleep(400)
        batches, loads = host.counts.batches, len(system.states.loads)

        await asyncio.sleep(86_400)

        assert (host.counts.batches, len(system.states.loads)) == (batches, loads)


@on_virtual_time
async def test_a_host_of_a_thousand_idle_actors_rarely_reads_the_clock() -> None:
    states = MemoryStates()
    for number in range(1_000):
        states.keep(Tally(str(number)), wake_at=START + timedelta(days=2, seconds=number))
    clock = CountedClock(START)
    system = HostSystem(states=states, clock=clock)
    async with system.running() as host:
        await asyncio.sleep(86_400)

        assert host.alarms == 1_000
        assert host.counts.steps == 0
        assert clock.looks < 10 * 86_400 / POLL_SECONDS
