"""One worker leads the budget actors at a time: it acquires, renews and releases the lock."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from adloom.budgets.addresses import OWNER_KEY
from adloom.budgets.messages import BudgetVerdict
from adloom.core.errors import UnavailableError
from adloom.runtime.locks import LEASE, HeldLocks, LeaderLoop, ValkeyLock
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.budgets.worker_stage import UNIT, Process, Stage, insert_campaign
from tests.support.eventually import becomes, eventually


class FakeLock:
    def __init__(self) -> None:
        self.is_free = True
        self.is_away = False
        self.was_just_taken = False
        self.releases = 0

    async def acquire(self) -> bool:
        if self.is_away:
            raise UnavailableError("Away.")
        return self.is_free

    async def release(self) -> None:
        self.releases += 1


class FakePart:
    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.fails = False

    async def run(self, stop: asyncio.Event) -> None:
        self.begun += 1
        if self.fails:
            raise ZeroDivisionError
        await stop.wait()
        self.ended += 1


@asynccontextmanager
async def running_leader(lock: FakeLock, *parts: FakePart) -> AsyncGenerator[LeaderLoop]:
    leader = LeaderLoop(
        lock, [part.run for part in parts], name="budgets", renew_seconds=0.01, standby_seconds=0.01
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(leader.run(stop))
        yield leader
        stop.set()
    assert not leader.is_leader


async def test_the_parts_run_while_the_lock_is_held_and_it_is_released_at_the_end() -> None:
    lock, one, other = FakeLock(), FakePart(), FakePart()

    async with running_leader(lock, one, other) as leader:
        await eventually(lambda: leader.is_leader, seconds=30)
        await asyncio.sleep(0.05)

    assert [(part.begun, part.ended) for part in (one, other)] == [(1, 1), (1, 1)]
    assert lock.releases == 1


async def test_the_parts_stop_when_the_lock_is_lost_and_start_again_when_it_is_free() -> None:
    lock, part = FakeLock(), FakePart()

    async with running_leader(lock, part) as leader:
        await eventually(lambda: leader.is_leader, seconds=30)
        lock.is_free = False
        await eventually(lambda: part.ended == 1 and not leader.is_leader, seconds=30)
        lock.is_free = True
        await eventually(lambda: part.begun == 2 and leader.is_leader, seconds=30)

    assert leader.terms == 2


async def test_the_parts_start_again_when_the_lock_was_lost_and_taken_again() -> None:
    lock, part = FakeLock(), FakePart()

    async with running_leader(lock, part) as leader:
        await eventually(lambda: leader.is_leader, seconds=30)
        lock.was_just_taken = True
        await eventually(lambda: part.ended == 1, seconds=30)
        lock.was_just_taken = False
        await eventually(lambda: leader.is_leader and part.begun > 1, seconds=30)


async def test_log_lines_say_which_actors_begin_and_end() -> None:
    with capture_logs() as lines:
        async with running_leader(FakeLock()) as leader:
            await eventually(lambda: leader.is_leader, seconds=30)

    assert [(line["event"], line["actors"]) for line in lines] == [
        ("brains_begin", "budgets"),
        ("brains_end", "budgets"),
    ]


async def test_a_leader_continues_while_the_lock_cannot_be_reached() -> None:
    lock, part = FakeLock(), FakePart()

    async with running_leader(lock, part) as leader:
        await eventually(lambda: leader.is_leader, seconds=30)
        lock.is_away = True
        await asyncio.sleep(0.05)

        assert leader.is_leader


async def test_a_part_that_fails_stops_the_others_and_all_start_again() -> None:
    lock, dying, other = FakeLock(), FakePart(), FakePart()
    dying.fails = True

    async with running_leader(lock, dying, other) as leader:
        await eventually(lambda: dying.begun >= 3, seconds=30)
        dying.fails = False
        await eventually(lambda: leader.is_leader and dying.begun > 3, seconds=30)

    assert other.begun == dying.begun
    assert other.ended == 1


async def test_one_worker_at_a_time_holds_the_lock(valkey: Valkey) -> None:
    one = ValkeyLock(valkey, OWNER_KEY, consumer="a@host", incarnation="1")
    other = ValkeyLock(valkey, OWNER_KEY, consumer="b@host", incarnation="1")

    assert await one.acquire()
    assert await one.acquire()
    assert not await other.acquire()
    await other.release()
    assert not await other.acquire()
    await one.release()
    assert await other.acquire()
    assert not await one.acquire()


async def test_a_restarted_worker_takes_over_the_lock_of_its_last_run(valkey: Valkey) -> None:
    before = ValkeyLock(valkey, OWNER_KEY, consumer="a@host", incarnation="1")
    after = ValkeyLock(valkey, OWNER_KEY, consumer="a@host", incarnation="2")
    namesake = ValkeyLock(valkey, OWNER_KEY, consumer="a@hos", incarnation="1")

    assert await before.acquire()
    assert not await namesake.acquire()
    assert await after.acquire()
    assert not await before.acquire()


@pytest.mark.parametrize("has_led", [True, False])
async def test_a_worker_that_was_suspended_knows_whether_another_had_its_lock(
    valkey: Valkey, *, has_led: bool
) -> None:
    lease = timedelta(milliseconds=50)
    one, other = (
        ValkeyLock(valkey, OWNER_KEY, consumer=name, incarnation="1", lease=lease) for name in ("a", "b")
    )
    assert await one.acquire()
    await becomes(lambda: _is_gone(valkey), seconds=30)
    if has_led:
        assert await other.acquire()
        await becomes(lambda: _is_gone(valkey), seconds=30)

    assert await one.acquire()

    assert one.was_just_taken == has_led


async def _is_gone(valkey: Valkey) -> bool:
    return await valkey.get(OWNER_KEY) is None


async def test_locks_of_a_worker_are_renewed_by_one_command(valkey: Valkey) -> None:
    held = HeldLocks(renewed_seconds=60)
    locks = [
        ValkeyLock(valkey, f"lock-{number}", consumer="a@host", incarnation="1", held=held)
        for number in range(3)
    ]
    other = ValkeyLock(valkey, "lock-0", consumer="b@host", incarnation="1")

    async def list_seconds() -> list[int]:
        return [await valkey.ttl(f"lock-{number}") for number in range(3)]

    assert [await lock.acquire() for lock in locks] == [True, True, True]
    for number in range(3):
        await valkey.expire(f"lock-{number}", 1_000)
    assert [await lock.acquire() for lock in locks] == [True, True, True]
    assert min(await list_seconds()) > LEASE.total_seconds()  # None was renewed again so soon.
    assert not await other.acquire()

    await locks[2].release()
    assert await locks[2].acquire()
    assert locks[2].was_just_taken
    assert max(await list_seconds()) <= LEASE.total_seconds()


async def test_a_lock_that_was_lost_or_released_is_not_taken_for_renewed(valkey: Valkey) -> None:
    held = HeldLocks(renewed_seconds=60)
    one, lost, released = [
        ValkeyLock(valkey, key, consumer="a@host", incarnation="1", held=held)
        for key in ("one", "lost", "released")
    ]
    other = ValkeyLock(valkey, "released", consumer="b@host", incarnation="1")
    assert [await lock.acquire() for lock in (lost, released)] == [True, True]

    await valkey.set("lost", "b@host 1")
    await released.release()
    assert await one.acquire()

    assert not await lost.acquire()
    assert await other.acquire()
    assert not await released.acquire()
    assert await valkey.get("lost") == b"b@host 1"


async def test_a_command_without_an_answer_does_not_keep_other_locks_from_being_renewed(
    valkey: Valkey,
) -> None:
    held = HeldLocks(renewed_seconds=0.01)
    one, other = [
        ValkeyLock(valkey, key, consumer="a@host", incarnation="1", held=held) for key in ("one", "other")
    ]
    assert [await lock.acquire() for lock in (one, other)] == [True, True]

    async with asyncio.timeout(30):
        with held.renew_others(one):  # As long as its command waits for an answer.
            assert await other.acquire()


async def test_the_lock_of_a_dead_worker_expires(valkey: Valkey) -> None:
    gone = ValkeyLock(valkey, OWNER_KEY, consumer="a", incarnation="1", lease=timedelta(seconds=1))
    other = ValkeyLock(valkey, OWNER_KEY, consumer="b", incarnation="1")

    assert await gone.acquire()
    assert not await other.acquire()

    await becomes(other.acquire, seconds=30)


async def test_a_second_worker_continues_where_the_first_stopped(pool: Pool, valkey: Valkey) -> None:
    await insert_campaign(pool, daily=300)
    first, second = Stage(pool, valkey, name="a"), Stage(pool, valkey, name="b")
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group, Process(valkey).listening() as process:
        async with first.running():
            group.create_task(second.budget_actors.leader.run(stop))
            granted = await process.ask_for_lease()
            assert not second.budget_actors.host.is_open
        await eventually(lambda: second.budget_actors.host.is_open, seconds=30)
        await second.wait_for_inbox()
        again = await process.ask_for_lease(lease=granted.lease, given=((granted.lease, UNIT),), want=UNIT)
        stop.set()

    assert (again.lease, again.granted, again.verdict) == (granted.lease, 2 * UNIT, BudgetVerdict.GRANTED)
    assert await valkey.get(OWNER_KEY) is None


async def test_a_worker_that_lost_the_lock_grants_nothing(pool: Pool, valkey: Valkey) -> None:
    """The first worker does not know yet that it lost the lock: versions of states fence out its writes."""
    await insert_campaign(pool, daily=100)
    first, second = Stage(pool, valkey, name="a"), Stage(pool, valkey, name="b")
    async with first.running() as budget_actors, Process(valkey).listening() as process:
        await process.ask_for_lease(want=UNIT)
        await valkey.delete(OWNER_KEY)
        async with second.running(), Process(valkey, 2).listening() as other:
            # Both workers receive all reports, and both answer.
            for _ in range(20):
                await other.report_usage()
                await asyncio.sleep(0.02)
            await eventually(lambda: not budget_actors.leader.is_leader, seconds=30)
            state = await second.state()

    assert state is not None
    assert sum(lease.granted for lease in state.leases.values()) == UNIT
    assert {one.granted for one in other.answers} == {0}
