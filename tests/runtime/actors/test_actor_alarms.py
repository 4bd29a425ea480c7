"""Alarms: actors are woken at the time they set, in memory or not."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import ActorKind, Address, Effect, Persist, StepResult
from adloom.runtime.actors.host import POLL_SECONDS
from adloom.runtime.actors.mailboxes import STALE_MIN, Alarms, Mailboxes
from adloom.runtime.actors.runner import BROKEN_AFTER
from simulation.faults import VirtualClock
from tests.support.actors import START, Add, HostSystem, MemoryStates, Nap, Tally, a_tally, on_virtual_time


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def woken_at(system: HostSystem, key: str = "a") -> list[float]:
    tally = system.states.tally(key)
    assert tally is not None
    return [round((moment - START).total_seconds()) for moment in tally.woken_at]


@on_virtual_time
async def test_an_actor_is_woken_once_at_the_last_time_that_it_set() -> None:
    system = HostSystem()
    async with system.running() as host:
        for seconds in (50, 10, 20):
            host.tell(a_tally(), Add(wakes_at=at(seconds)))

        await asyncio.sleep(100)

        assert woken_at(system) == [20]
        assert host.alarms == 0


@on_virtual_time
async def test_an_evicted_actor_is_still_woken() -> None:
    system = HostSystem()
    async with system.running() as host:
        await system.ask(Add(wakes_at=at(3600)))
        await asyncio.sleep(3000)
        assert host.active == 0

        await asyncio.sleep(1000)

        assert woken_at(system) == [3600]


@on_virtual_time
async def test_alarms_survive_their_host_and_overdue_ones_fire_immediately() -> None:
    states = MemoryStates()
    states.keep(Tally("late"), wake_at=at(-3600))
    states.keep(Tally("early"), wake_at=at(10))
    system = HostSystem(states=states)
    async with system.running():
        await asyncio.sleep(20)

        assert woken_at(system, "late") == [0]
        assert woken_at(system, "early") == [10]


@on_virtual_time
async def test_an_alarm_without_persist_is_stored_when_its_actor_is_evicted() -> None:
    system = HostSystem()
    async with system.running() as host:
        await system.ask(Add())
        host.tell(a_tally(), Nap(at(3600)))
        await asyncio.sleep(1000)

        assert host.active == 0
        assert system.states.states[a_tally()].wake_at == at(3600)


@on_virtual_time
async def test_an_alarm_fires_although_its_commit_was_not_confirmed() -> None:
    system = HostSystem()
    async with system.running():
        system.states.is_commit_answer_lost = True
        with pytest.raises(UnavailableError):
            await system.ask(Add(wakes_at=at(10)))
        system.states.is_commit_answer_lost = False

        await asyncio.sleep(20)

        assert woken_at(system)  # Rather once too often than never.


@on_virtual_time
async def test_an_alarm_stored_late_by_a_former_owner_fires() -> None:
    system = HostSystem()
    async with system.running():
        await asyncio.sleep(1)
        system.states.keep(Tally("a"), wake_at=at(5))

        await asyncio.sleep(POLL_SECONDS + 1)

        assert woken_at(system) == [round(POLL_SECONDS)]


@on_virtual_time
async def test_a_host_that_finds_another_hosts_alarm_is_fenced_out() -> None:
    system = HostSystem()
    async with system.running() as host:
        await system.ask(Add())
        system.states.keep(Tally("a", 10), wake_at=at(5))

        await asyncio.sleep(POLL_SECONDS + 1)

        assert host.counts.fenced == 1
        assert woken_at(system) == [round(POLL_SECONDS)]
        assert await system.ask(Add()) == 11


@on_virtual_time
async def test_an_alarm_in_memory_replaces_the_stored_one() -> None:
    system = HostSystem()
    async with system.running() as host:
        await system.ask(Add(wakes_at=at(30)))
        host.tell(a_tally(), Nap(at(200)))
        await asyncio.sleep(POLL_SECONDS + 10)

        assert woken_at(system) == []
        await asyncio.sleep(200)
        assert woken_at(system) == [200]


class AdjustableClock(VirtualClock):
    """A clock that can be set."""

    ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


@on_virtual_time
async def test_alarms_fire_soon_after_the_clock_is_set_ahead() -> None:
    clock = AdjustableClock(START)
    system = HostSystem(clock=clock)
    async with system.running():
        await system.ask(Add(wakes_at=at(3600)))
        await asyncio.sleep(1)
        clock.ahead = timedelta(hours=1)

        await asyncio.sleep(POLL_SECONDS + 1)

        assert len(woken_at(system)) == 1


@on_virtual_time
async def test_alarms_of_removed_kinds_are_ignored() -> None:
    states = MemoryStates()
    states.keep(Tally("a"), wake_at=at(-1))
    states.states[Address("gone", "a")] = states.states.pop(a_tally())
    system = HostSystem(states=states)
    async with system.running() as host:
        await asyncio.sleep(1)

        assert host.alarms == 0


@on_virtual_time
async def test_an_alarm_fires_again_after_the_store_was_away() -> None:
    system = HostSystem()
    async with system.running() as host:
        for key in "ab":
            await system.ask(Add(wakes_at=at(3600)), key)
        await asyncio.sleep(1000)  # One is in memory and one is not when the time comes.
        await system.ask(Add(wakes_at=at(3600)), "b")
        system.states.is_away = True
        await asyncio.sleep(2700)
        system.states.is_away = False
        await asyncio.sleep(1)

        assert woken_at(system, "a") == woken_at(system, "b") == [3700]
        assert host.alarms == 0


@on_virtual_time
async def test_a_host_loads_its_alarms_when_the_store_is_back() -> None:
    system = HostSystem()
    system.states.keep(Tally("a"), wake_at=at(-1))
    system.states.is_away = True
    async with system.running():
        await asyncio.sleep(10)
        system.states.is_away = False

        await asyncio.sleep(1)

        assert woken_at(system) == [10]


@on_virtual_time
async def test_an_alarm_takes_no_space_in_a_mailbox() -> None:
    system = HostSystem(mailboxes=Mailboxes(mailbox_max=1))
    system.states.keep(Tally("a"), wake_at=at(-1))
    async with system.running() as host:
        host.tell(a_tally(), Add())
        await asyncio.sleep(1)

        assert woken_at(system) == [0]
        assert host.counts.refused == 0


@on_virtual_time
async def test_an_alarm_that_has_fired_is_not_stored() -> None:
    system = HostSystem()
    async with system.running():
        await system.ask(Add(wakes_at=at(1)))
        await asyncio.sleep(10)

    assert system.states.states[a_tally()].wake_at is None


@on_virtual_time
async def test_an_alarm_with_a_failing_step_fires_again_after_a_pause() -> None:
    moments: list[datetime] = []

    def step(state: Tally, message: Add, now: datetime, chance: object) -> StepResult[Tally]:
        del message, chance
        moments.append(now)
        if len(moments) < 3:
            raise RuntimeError("not yet")
        effects: tuple[Effect, ...] = (Persist(),)
        return StepResult(msgspec.structs.replace(state, count=1), effects)

    system = HostSystem(kind=ActorKind("tally", Tally, step, lambda key, _: Tally(key), on_waking=Add()))
    system.states.keep(Tally("a"), wake_at=at(-1))
    async with system.running():
        await asyncio.sleep(1000)

    assert [later - earlier for earlier, later in pairwise(moments)] == [
        pytest.approx(BROKEN_AFTER, abs=timedelta(seconds=1))
    ] * 2


@on_virtual_time
async def test_an_unreadable_actor_is_woken_only_after_a_pause() -> None:
    system = HostSystem()
    system.states.keep(Tally("a"), wake_at=at(-1), format_number=9)
    async with system.running() as host:
        await asyncio.sleep(300)

        assert 5 <= host.counts.failed <= 11


class PlainAlarms:
    """Alarms, written in the simplest way."""

    def __init__(self) -> None:
        self.at: dict[Address, datetime] = {}

    def ringing(self, now: datetime) -> list[datetime]:
        due = sorted((moment, address) for address, moment in self.at.items() if moment <= now)
        for _, address in due:
            del self.at[address]
        return [moment for moment, _ in due]


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.none() | st.integers(0, 20), st.booleans()), max_size=40)
)
def test_the_last_alarm_of_an_actor_replaces_earlier_ones(
    settings: list[tuple[str, int | None, bool]],
) -> None:
    alarms, plain = Alarms(), PlainAlarms()

    for moment, (key, seconds, is_looked_at) in enumerate(settings):
        alarms.set(a_tally(key), None if seconds is None else at(seconds))
        plain.at.pop(a_tally(key), None)
        if seconds is not None:
            plain.at[a_tally(key)] = at(seconds)
        assert len(alarms) == len(plain.at)
        assert alarms.find_next_at() == min(plain.at.values(), default=None)
        if is_looked_at:
            due = dict(plain.at)
            assert [due[address] for address in alarms.take_due(at(moment), count_max=99)] == plain.ringing(
                at(moment)
            )


def test_no_more_alarms_are_taken_than_requested() -> None:
    alarms = Alarms()
    for number in range(5):
        alarms.set(a_tally(str(number)), at(number))

    assert alarms.take_due(at(9), count_max=2) == [a_tally("0"), a_tally("1")]
    assert len(alarms) == 3


def test_replaced_alarms_do_not_accumulate() -> None:
    alarms = Alarms()

    for seconds in range(10 * STALE_MIN):
        alarms.set(a_tally(), at(seconds))

    assert len(alarms._heap) <= STALE_MIN + 2  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - memory is not seen otherwise
    assert alarms.take_due(at(1e6), count_max=9) == [a_tally()]
