"""Actors whose states are never stored."""

import asyncio

from adloom.runtime.actors.actor import ActorKind
from tests.support.actors import (
    START,
    Add,
    HostSystem,
    Row,
    Tally,
    Woken,
    a_tally,
    on_virtual_time,
    tally_step,
)

TRANSIENT = ActorKind(
    "tally", Tally, tally_step, lambda key, _: Tally(key), on_waking=Woken(), is_transient=True
)


@on_virtual_time
async def test_what_a_transient_actor_records_is_stored_and_its_state_is_not() -> None:
    system = HostSystem(kind=TRANSIENT)
    async with system.running():
        assert await system.ask(Add(records=(1, 2))) == 1

    assert system.states.records == [Row("a", 1), Row("a", 2)]
    assert system.states.states == {}


@on_virtual_time
async def test_an_idle_transient_actor_is_evicted_and_rebuilt_from_its_first_messages() -> None:
    system = HostSystem(kind=TRANSIENT)
    system.catalog.introductions[a_tally()] = [Add(amount=10)]
    async with system.running() as host:
        assert await system.ask(Add()) == 11
        await asyncio.sleep(301)
        assert host.active == 0

        assert await system.ask(Add()) == 11

    assert system.states.states == {}


@on_virtual_time
async def test_a_transient_actor_whose_rows_were_not_stored_is_rebuilt() -> None:
    system = HostSystem(kind=TRANSIENT)
    async with system.running() as host:
        assert await system.ask(Add()) == 1
        system.states.is_away = True
        host.tell(a_tally(), Add(records=(1,)))
        await asyncio.sleep(1)
        system.states.is_away = False
        await asyncio.sleep(1)

        assert await system.ask(Add()) == 1
    assert system.states.records == []


@on_virtual_time
async def test_an_alarm_of_a_transient_actor_goes_off() -> None:
    system = HostSystem(kind=TRANSIENT)
    async with system.running():
        wakes_at = START.replace(minute=1)
        await system.ask(Add(wakes_at=wakes_at, is_kept=False))
        await asyncio.sleep(61)
        state = await system.ask(Add())

    assert state == 2
    assert system.states.states == {}
