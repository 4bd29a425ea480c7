"""Alarms: entities are woken when they asked to be, wherever they are meanwhile."""

import asyncio
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import ActorKind, Address, Effect, Persist, StepResult
from adloom.runtime.actors.host import LOOK_SECONDS
from adloom.runtime.actors.mailboxes import STALE_MIN, Alarms, Mailboxes
from adloom.runtime.actors.runner import BROKEN_AFTER
from simulation.faults import VirtualClock
from tests.support.actors import START, Add, MemoryStates, Nap, Stage, Tally, a_tally, on_virtual_time


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def woken_at(stage: Stage, key: str = "a") -> list[float]:
    tally = stage.states.tally(key)
    assert tally is not None
    return [round((moment - START).total_seconds()) for moment in tally.woken_at]


@on_virtual_time
async def test_an_actor_is_woken_once_at_the_last_time_it_set() -> None:
    stage = Stage()
    async with stage.running() as host:
        for seconds in (50, 10, 20):
            host.tell(a_tally(), Add(wakes_at=at(seconds)))

        await asyncio.sleep(100)

        assert woken_at(stage) == [20]
        assert host.alarms == 0


@on_virtual_time
async def test_an_evicted_actor_is_still_woken() -> None:
    stage = Stage()
    async with stage.running() as host:
        await stage.told(Add(wakes_at=at(3600)))
        await asyncio.sleep(3000)
        assert host.active == 0

        await asyncio.sleep(1000)

        assert woken_at(stage) == [3600]


@on_virtual_time
async def test_alarms_outlive_their_host_and_late_ones_ring_at_once() -> None:
    states = MemoryStates()
    states.keep(Tally("late"), wake_at=at(-3600))
    states.keep(Tally("early"), wake_at=at(10))
    stage = Stage(states=states)
    async with stage.running():
        await asyncio.sleep(20)

        assert woken_at(stage, "late") == [0]
        assert woken_at(stage, "early") == [10]


@on_virtual_time
async def test_an_alarm_without_persist_is_stored_when_its_actor_is_evicted() -> None:
    stage = Stage()
    async with stage.running() as host:
        await stage.told(Add())
        host.tell(a_tally(), Nap(at(3600)))
        await asyncio.sleep(1000)

        assert host.active == 0
        assert stage.states.states[a_tally()].wake_at == at(3600)


@on_virtual_time
async def test_an_alarm_fires_though_it_may_not_be_stored() -> None:
    stage = Stage()
    async with stage.running():
        stage.states.is_kept_unheard = True
        with pytest.raises(UnavailableError):
            await stage.told(Add(wakes_at=at(10)))
        stage.states.is_kept_unheard = False

        await asyncio.sleep(20)

        assert woken_at(stage)  # Once more than needed, rather than never.


@on_virtual_time
async def test_an_alarm_stored_late_by_a_former_owner_fires_too() -> None:
    stage = Stage()
    async with stage.running():
        await asyncio.sleep(1)
        stage.states.keep(Tally("a"), wake_at=at(5))

        await asyncio.sleep(LOOK_SECONDS + 1)

        assert woken_at(stage) == [round(LOOK_SECONDS)]


@on_virtual_time
async def test_a_host_that_finds_another_hosts_alarm_is_fenced_out() -> None:
    stage = Stage()
    async with stage.running() as host:
        await stage.told(Add())
        stage.states.keep(Tally("a", 10), wake_at=at(5))

        await asyncio.sleep(LOOK_SECONDS + 1)

        assert host.counts.fenced == 1
        assert woken_at(stage) == [round(LOOK_SECONDS)]
        assert await stage.told(Add()) == 11


@on_virtual_time
async def test_an_alarm_in_memory_wins_over_the_stored_one() -> None:
    stage = Stage()
    async with stage.running() as host:
        await stage.told(Add(wakes_at=at(30)))
        host.tell(a_tally(), Nap(at(200)))
        await asyncio.sleep(LOOK_SECONDS + 10)

        assert woken_at(stage) == []
        await asyncio.sleep(200)
        assert woken_at(stage) == [200]


class SetAhead(VirtualClock):
    """A clock that can be set."""

    ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


@on_virtual_time
async def test_a_clock_that_is_set_ahead_does_not_keep_alarms_waiting_for_long() -> None:
    clock = SetAhead(START)
    stage = Stage(clock=clock)
    async with stage.running():
        await stage.told(Add(wakes_at=at(3600)))
        await asyncio.sleep(1)
        clock.ahead = timedelta(hours=1)

        await asyncio.sleep(LOOK_SECONDS + 1)

        assert len(woken_at(stage)) == 1


@on_virtual_time
async def test_alarms_of_removed_kinds_are_ignored() -> None:
    states = MemoryStates()
    states.keep(Tally("a"), wake_at=at(-1))
    states.states[Address("gone", "a")] = states.states.pop(a_tally())
    stage = Stage(states=states)
    async with stage.running() as host:
        await asyncio.sleep(1)

        assert host.alarms == 0


@on_virtual_time
async def test_an_alarm_rings_again_when_the_store_was_away() -> None:
    stage = Stage()
    async with stage.running() as host:
        for key in "ab":
            await stage.told(Add(wakes_at=at(3600)), key)
        await asyncio.sleep(1000)  # One is there and one is not when the time comes.
        await stage.told(Add(wakes_at=at(3600)), "b")
        stage.states.is_away = True
        await asyncio.sleep(2700)
        stage.states.is_away = False
        await asyncio.sleep(1)

        assert woken_at(stage, "a") == woken_at(stage, "b") == [3700]
        assert host.alarms == 0


@on_virtual_time
async def test_a_host_waits_for_the_alarms_of_a_store_that_is_away() -> None:
    stage = Stage()
    stage.states.keep(Tally("a"), wake_at=at(-1))
    stage.states.is_away = True
    async with stage.running():
        await asyncio.sleep(10)
        stage.states.is_away = False

        await asyncio.sleep(1)

        assert woken_at(stage) == [10]


@on_virtual_time
async def test_an_alarm_needs_no_room_in_a_mailbox() -> None:
    stage = Stage(mailboxes=Mailboxes(mailbox_max=1))
    stage.states.keep(Tally("a"), wake_at=at(-1))
    async with stage.running() as host:
        host.tell(a_tally(), Add())
        await asyncio.sleep(1)

        assert woken_at(stage) == [0]
        assert host.counts.refused == 0


@on_virtual_time
async def test_the_next_owner_finds_no_alarm_that_has_rung() -> None:
    stage = Stage()
    async with stage.running():
        await stage.told(Add(wakes_at=at(1)))
        await asyncio.sleep(10)

    assert stage.states.states[a_tally()].wake_at is None


@on_virtual_time
async def test_an_alarm_with_a_failing_step_fires_again_later_and_not_all_the_time() -> None:
    moments: list[datetime] = []

    def step(state: Tally, message: Add, now: datetime, chance: object) -> StepResult[Tally]:
        del message, chance
        moments.append(now)
        if len(moments) < 3:
            raise RuntimeError("not yet")
        effects: tuple[Effect, ...] = (Persist(),)
        return StepResult(msgspec.structs.replace(state, count=1), effects)

    stage = Stage(kind=ActorKind("tally", Tally, step, lambda key, _: Tally(key), on_waking=Add()))
    stage.states.keep(Tally("a"), wake_at=at(-1))
    async with stage.running():
        await asyncio.sleep(1000)

    assert [later - earlier for earlier, later in pairwise(moments)] == [
        pytest.approx(BROKEN_AFTER, abs=timedelta(seconds=1))
    ] * 2


@on_virtual_time
async def test_an_unreadable_actor_is_not_woken_all_the_time() -> None:
    stage = Stage()
    stage.states.keep(Tally("a"), wake_at=at(-1), format_number=9)
    async with stage.running() as host:
        await asyncio.sleep(300)

        assert 5 <= host.counts.failed <= 11


class Naive:
    """Alarms as anybody would write them."""

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
def test_alarms_are_those_of_the_last_word(said: list[tuple[str, int | None, bool]]) -> None:
    alarms, naive = Alarms(), Naive()

    for moment, (key, seconds, is_looked_at) in enumerate(said):
        alarms.set(a_tally(key), None if seconds is None else at(seconds))
        naive.at.pop(a_tally(key), None)
        if seconds is not None:
            naive.at[a_tally(key)] = at(seconds)
        assert len(alarms) == len(naive.at)
        assert alarms.next_at() == min(naive.at.values(), default=None)
        if is_looked_at:
            due = dict(naive.at)
            assert [due[address] for address in alarms.take_due(at(moment), count_max=99)] == naive.ringing(
                at(moment)
            )


def test_no_more_ring_at_once_than_are_asked_for() -> None:
    alarms = Alarms()
    for number in range(5):
        alarms.set(a_tally(str(number)), at(number))

    assert alarms.take_due(at(9), count_max=2) == [a_tally("0"), a_tally("1")]
    assert len(alarms) == 3


def test_alarms_that_were_replaced_do_not_pile_up() -> None:
    alarms = Alarms()

    for seconds in range(10 * STALE_MIN):
        alarms.set(a_tally(), at(seconds))

    assert len(alarms._heap) <= STALE_MIN + 2  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - memory is not seen otherwise
    assert alarms.take_due(at(1e6), count_max=9) == [a_tally()]
