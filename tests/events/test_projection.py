"""A projection applies every event of the log once, whatever stops, repeats or cannot be applied."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.log.event import BEGINNING, Event, encode_event
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry, ProjectionStore
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.events.projections.group import ConsumerGroup, lock_key
from adloom.events.projections.projection import BatchPace, Projection
from adloom.events.projections.quarantine import TRIES_MAX
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import a_click, an_impression
from tests.events.catalog import insert_catalog
from tests.events.fake_store import FakeStore, as_entries, run_until
from tests.support.eventually import becomes, eventually, measure_fastest

LEASE = timedelta(milliseconds=400)
LONG_LEASE = timedelta(minutes=1)  # For tests in which a pause of the machine may end none.
QUICK_SECONDS = 0.05
LOOKS_MIN = 4
A_LOCK_IS_WAITED_FOR = """
    SELECT EXISTS (
        SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
"""


class ProjectionSystem:
    """A log, and workers that apply it."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.ledger = ValkeyEventLog(valkey)
        self.dead_letters = DeadLetterQueue(valkey)
        self._workers = 0

    async def append(self, *events: Event | bytes) -> None:
        await self.ledger.append(as_entries(*events))

    def worker(  # noqa: PLR0913 - a test names what it is about
        self,
        store: ProjectionStore,
        *,
        name: str | None = None,
        batch_max: int = 1000,
        pace_seconds: float = 0.0,
        follows: Projection | None = None,
        projection: str = "test",
        lease: timedelta = LEASE,
        wait_seconds: float = 1,
    ) -> Projection:
        """Make the projection of another worker."""
        self._workers += 1
        group = ConsumerGroup(
            self.valkey,
            projection,
            consumer=name or f"worker-{self._workers}@host",
            incarnation=f"{self._workers}",
            lease=lease,
        )
        return Projection(
            projection,
            group,
            store,
            follows=follows,
            batch_max=batch_max,
            pace_seconds=pace_seconds,
            wait_seconds=wait_seconds,
            renew_seconds=LEASE.total_seconds() / 3,
            standby_seconds=0.05,
            try_again_seconds=0.001,
        )

    async def newest(self) -> str:
        facts = await self.valkey.xinfo_stream(STREAM)
        return facts["last-generated-id"].decode()

    async def catch_up(self, store: ProjectionStore, *, batch_max: int = 1000) -> Projection:
        """Run a new worker until it has applied everything."""
        projection = self.worker(store, batch_max=batch_max)
        await run_until(self.is_caught_up(store), projection)
        return projection

    def is_caught_up(self, store: ProjectionStore):  # noqa: ANN201 - a condition
        async def read_both() -> bool:
            return await store.read_cursor() == await self.newest()

        return read_both


@pytest.fixture
def system(valkey: Valkey) -> ProjectionSystem:
    return ProjectionSystem(valkey)


def impressions(count: int, *, first: int = 0) -> list[Event]:
    return [an_impression(f"{number}") for number in range(first, first + count)]


def names(count: int) -> list[str]:
    return [f"{number}" for number in range(count)]


# --- keeping up


async def test_every_event_is_applied_once_and_in_order(system: ProjectionSystem) -> None:
    store = FakeStore()
    await system.append(*impressions(50))

    projection = await system.catch_up(store, batch_max=7)

    assert store.names == names(50)
    assert (projection.counters.counted, projection.counters.batches) == (50, 8)


async def test_a_new_event_is_applied_within_milliseconds(system: ProjectionSystem) -> None:
    store, seconds = FakeStore(), list[float]()
    loop = asyncio.get_running_loop()
    projection, stop = system.worker(store, pace_seconds=0.05), asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(projection.run(stop))
        for number in range(20):
            await asyncio.sleep(0.15)
            began_at = loop.time()
            await system.append(an_impression(f"{number}"))
            while len(store.applied) <= number:  # noqa: ASYNC110 - it comes from Valkey
                await asyncio.sleep(0.001)
            seconds.append(loop.time() - began_at)
            if number >= LOOKS_MIN and min(seconds) < QUICK_SECONDS:
                break  # The machine may be busy: then it is looked at again.
        stop.set()

    assert min(seconds) < QUICK_SECONDS


async def test_under_load_batches_are_large(system: ProjectionSystem) -> None:
    store, stop = FakeStore(), asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(system.worker(store, pace_seconds=0.1).run(stop))
        for number in range(200):
            await system.append(an_impression(f"{number}"))
        while len(store.applied) < 200:  # noqa: ASYNC110 - it comes from Valkey
            await asyncio.sleep(0.005)
        stop.set()

    assert store.names == names(200)
    assert len(store.batches) < 50


async def test_an_idle_projection_stops_immediately(system: ProjectionSystem) -> None:
    stop = asyncio.Event()
    projection = system.worker(FakeStore(), wait_seconds=60)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(projection.run(stop))
        await asyncio.sleep(0.2)
        stop.set()

    assert not await system.valkey.exists(lock_key("test")), "another worker need not wait for the lease"


class Held(FakeStore):
    """Begins a commit and continues when the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.released = asyncio.Event()

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        self.begun.set()
        await self.released.wait()
        return await super().commit(records, after=after, cursor=cursor)


async def test_a_stopping_projection_finishes_its_current_batch(system: ProjectionSystem) -> None:
    await system.append(*impressions(2))
    store, stop = Held(), asyncio.Event()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(system.worker(store, batch_max=1).run(stop))
        await store.begun.wait()
        stop.set()
        store.released.set()

    assert store.names == names(1)


# --- one owner at a time


async def test_only_one_of_two_workers_applies_events(system: ProjectionSystem) -> None:
    store = FakeStore()
    await system.append(*impressions(300))
    one = system.worker(store, batch_max=7, lease=LONG_LEASE)
    other = system.worker(store, batch_max=5, lease=LONG_LEASE)

    await run_until(system.is_caught_up(store), one, other)

    assert store.names == names(300)
    assert sorted([one.counters.counted, other.counters.counted]) == [0, 300]
    assert one.failures == other.failures == 0


async def test_a_lease_is_renewed_during_a_long_batch(system: ProjectionSystem) -> None:
    await system.append(*impressions(2))
    store, stop = Held(), asyncio.Event()
    one, other = (system.worker(store, lease=LONG_LEASE) for _ in range(2))

    async def is_renewed() -> bool:
        return await system.valkey.pttl(lock_key("test")) > LONG_LEASE.total_seconds() * 1000 / 2

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(one.run(stop))
        await store.begun.wait()
        group.create_task(other.run(stop))
        for _ in range(2):
            await system.valkey.pexpire(lock_key("test"), LONG_LEASE // 4)
            await becomes(is_renewed, seconds=30)
        assert one.is_owner
        assert not other.is_owner
        store.released.set()
        stop.set()


async def test_a_dead_workers_entries_are_applied_by_another_when_its_lease_is_over(
    system: ProjectionSystem,
) -> None:
    store = Held()
    await system.append(*impressions(10))
    dead = asyncio.create_task(system.worker(store).run(asyncio.Event()))
    async with asyncio.timeout(60):
        await store.begun.wait()
    dead.cancel()
    await asyncio.wait([dead])
    store.released.set()

    await system.catch_up(store)

    assert store.names == names(10)


async def test_a_late_commit_of_a_replaced_worker_is_refused(system: ProjectionSystem) -> None:
    store = Held()
    await system.append(*impressions(10))
    zombie, stop = system.worker(store, batch_max=4), asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(zombie.run(stop))
        await store.begun.wait()
        # Its lease has expired, and another worker has taken over.
        await system.valkey.set(lock_key("test"), "another@host")
        twin = FakeStore()
        another = system.worker(twin, projection="another")
        await run_until(system.is_caught_up(twin), another)
        store.applied, store.at = twin.applied, twin.at
        store.released.set()
        stop.set()

    assert store.names == names(10)
    assert zombie.counters.counted == 0


async def test_a_worker_without_its_store_leaves_the_work_to_another(system: ProjectionSystem) -> None:
    store, unreachable = FakeStore(), FakeStore()
    unreachable.is_away = True
    await system.append(*impressions(5))
    cut_off, well = system.worker(unreachable), system.worker(store)

    await run_until(lambda: len(store.applied) == 5, cut_off, well)

    assert cut_off.failures > 0


# --- failures


class Interrupted(FakeStore):
    """Its commits are interrupted a few times, before or after they are done."""

    def __init__(self, *, times: int, is_committed: bool) -> None:
        super().__init__()
        self._times = times
        self._is_committed = is_committed

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        if self._times > 0:
            self._times -= 1
            if self._is_committed:
                await super().commit(records, after=after, cursor=cursor)
            raise UnavailableError("The connection broke.")
        return await super().commit(records, after=after, cursor=cursor)


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_lost_answer_from_the_store_neither_loses_nor_repeats_a_batch(
    system: ProjectionSystem, *, is_committed: bool
) -> None:
    store = Interrupted(times=3, is_committed=is_committed)
    await system.append(*impressions(10))

    projection = await system.catch_up(store, batch_max=2)

    assert store.names == names(10)
    assert projection.failures == 3


async def test_no_entry_becomes_a_dead_letter_while_the_store_is_away(system: ProjectionSystem) -> None:
    store = FakeStore()
    store.is_away = True
    await system.append(*impressions(3), b"no event")
    projection = system.worker(store)

    await run_until(lambda: projection.failures >= 3, projection)
    assert await system.dead_letters.count() == 0

    store.is_away = False
    await system.catch_up(store)
    assert store.names == names(3)


async def test_a_poison_entry_becomes_a_dead_letter_after_five_tries(
    system: ProjectionSystem,
) -> None:
    store = FakeStore()
    store.refuses = {"4"}
    store.stumbles_over = {"7"}
    await system.append(*impressions(6), b"no event", *impressions(4, first=6))

    projection = await system.catch_up(store)

    assert store.names == ["0", "1", "2", "3", "5", "6", "8", "9"]
    dead_letters = await system.dead_letters.list_after()
    assert {letter.data for letter in dead_letters} == {
        encode_event(an_impression("4")),
        encode_event(an_impression("7")),
        b"no event",
    }
    assert {(letter.projection, letter.tries) for letter in dead_letters} == {("test", TRIES_MAX)}
    assert projection.counters.dead == 3


async def test_one_poison_event_of_a_group_becomes_a_dead_letter_alone(system: ProjectionSystem) -> None:
    store = FakeStore()
    store.refuses = {"4"}
    store.stumbles_over = {"17"}
    await system.append(*impressions(30), b"no event", *impressions(9, first=30))
    assert await system.valkey.xlen(STREAM) == 1
    entries = await system.ledger.read("0-0", count_max=100, wait_seconds=1)

    projection = await system.catch_up(store, batch_max=25)

    assert store.names == [name for name in names(39) if name not in {"4", "17"}]
    letters = await system.dead_letters.list_after()
    found = {letter.entry_id: (letter.data, letter.tries) for letter in letters}
    assert found == {entries[place].id: (entries[place].data, TRIES_MAX) for place in (4, 17, 30)}
    assert (projection.counters.counted, projection.counters.dead) == (37, 3)
    for letter in letters:
        assert await system.dead_letters.retry(letter.id)
    store.refuses = store.stumbles_over = set()
    await system.catch_up(store)
    assert sorted(store.names, key=int) == names(39)


async def test_a_retried_dead_letter_is_applied(system: ProjectionSystem) -> None:
    store = FakeStore()
    store.refuses = {"1"}
    await system.append(*impressions(3))
    await system.catch_up(store)
    [letter] = await system.dead_letters.list_after()

    store.refuses = set()
    assert await system.dead_letters.retry(letter.id)
    await system.catch_up(store)

    assert store.names == ["0", "2", "1"]
    assert await system.dead_letters.count() == 0


class Crashing(FakeStore):
    """Crashes the worker at the third try of a bad entry."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses = {"1"}
        self.tries = 0
        self.crashed = asyncio.Event()

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        if len(records) == 1 and records[0].event == an_impression("1"):
            self.tries += 1
            if self.tries == 3:
                self.crashed.set()
                await asyncio.Event().wait()
        return await super().commit(records, after=after, cursor=cursor)


async def test_the_count_of_tries_survives_a_crash_of_the_worker(system: ProjectionSystem) -> None:
    store = Crashing()
    await system.append(*impressions(3))
    worker = asyncio.create_task(system.worker(store, name="same@host").run(asyncio.Event()))
    async with asyncio.timeout(60):
        await store.crashed.wait()
    worker.cancel()
    await asyncio.wait([worker])

    await system.catch_up(store)

    # Two counted tries before the crash, the one that crashed, and the three that remain of five.
    assert store.tries == TRIES_MAX + 1
    [letter] = await system.dead_letters.list_after()
    assert letter.tries == TRIES_MAX


async def test_an_entry_becomes_one_dead_letter_despite_interruptions(system: ProjectionSystem) -> None:
    class LosesCursorMoves(FakeStore):
        times = 3

        async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
            if not records and cursor != after and self.times:
                self.times -= 1
                raise UnavailableError("The dead letter is kept, but the cursor is not past it.")
            return await super().commit(records, after=after, cursor=cursor)

    store = LosesCursorMoves()
    store.refuses = {"1"}
    await system.append(*impressions(3))

    await system.catch_up(store)

    assert await system.dead_letters.count() == 1
    assert store.names == ["0", "2"]


@pytest.mark.parametrize("is_all_lost", [True, False])
async def test_a_projection_continues_after_the_log_or_its_group_was_lost(
    system: ProjectionSystem, *, is_all_lost: bool
) -> None:
    store, stop = FakeStore(), asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(system.worker(store).run(stop))
        await system.append(*impressions(3))
        while len(store.applied) < 3:  # noqa: ASYNC110 - it comes from Valkey
            await asyncio.sleep(0.005)
        if is_all_lost:
            await system.valkey.flushall()
        else:
            await system.valkey.xgroup_destroy(STREAM, "test")
        await system.append(*impressions(3, first=3))
        while len(store.applied) < 6:  # noqa: ASYNC110 - it comes from Valkey
            await asyncio.sleep(0.005)
        stop.set()

    assert store.names == names(6)


async def test_a_store_restored_from_an_older_copy_catches_up(system: ProjectionSystem) -> None:
    store = FakeStore()
    await system.append(*impressions(10))
    await system.catch_up(store, batch_max=4)

    store.applied, store.at = store.applied[:4], store.applied[3].entry_id
    await system.catch_up(store)

    assert store.names == names(10)


# --- followers


async def test_a_follower_stays_behind_its_leader_and_catches_up_quickly(
    system: ProjectionSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    asked_at, xread = list[float](), system.valkey.xread

    async def count_and_read(*about: Any, **more: Any) -> object:
        asked_at.append(loop.time())
        return await xread(*about, **more)

    monkeypatch.setattr(system.valkey, "xread", count_and_read)
    store, behind = Held(), FakeStore()
    leader = system.worker(store, projection="leader")
    follower = system.worker(behind, projection="follower", follows=leader)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(leader.run(stop))
        group.create_task(follower.run(stop))
        await system.append(*impressions(5))
        await store.begun.wait()
        begun_at = loop.time()
        await asyncio.sleep(0.5)
        assert behind.applied == []
        # It is told of what its leader applies, and asks the log at most once a second.
        assert sum(at > begun_at for at in asked_at) <= 1 + (loop.time() - begun_at)

        async def catch_up() -> None:
            if store.released.is_set():
                await system.append(an_impression(f"{len(store.applied)}"))
            store.released.set()
            await eventually(lambda: len(behind.applied) == len(store.applied) >= 5, seconds=30, every=0.001)

        assert await measure_fastest(catch_up, seconds=0.5) < 0.5
        stop.set()

    assert behind.names == names(len(store.applied))


async def test_a_follower_follows_a_leader_in_another_process(system: ProjectionSystem) -> None:
    store, behind, stop = FakeStore(), FakeStore(), asyncio.Event()
    elsewhere = system.worker(store, projection="leader")
    idle = system.worker(store, projection="leader")  # Our own leader, which never runs.
    follower = system.worker(behind, projection="follower", follows=idle)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for one in (elsewhere, follower):
            group.create_task(one.run(stop))
        for number in range(20):
            await system.append(an_impression(f"{number}"))
            await asyncio.sleep(0.01)
            assert len(behind.applied) <= len(store.applied)
        while len(behind.applied) < 20:  # noqa: ASYNC110 - it comes from Valkey
            await asyncio.sleep(0.005)
        stop.set()

    assert behind.names == names(20)


class CommittedByAnother(FakeStore):
    """Its second batch was committed by another worker meanwhile."""

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        result = await super().commit(records, after=after, cursor=cursor)
        if len(self.batches) == 2:
            raise CursorMovedError
        return result


async def test_a_follower_looks_for_itself_when_its_leader_goes_on_in_another_process(
    system: ProjectionSystem,
) -> None:
    store, behind, stop, over = CommittedByAnother(), FakeStore(), asyncio.Event(), asyncio.Event()
    leader = system.worker(store, projection="leader")
    follower = system.worker(behind, projection="follower", follows=leader, wait_seconds=3)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        leading = group.create_task(leader.run(over))
        group.create_task(follower.run(stop))
        await system.append(an_impression("0"))
        await eventually(lambda: len(behind.applied) == 1, seconds=30)
        await system.append(an_impression("1"))
        # Of its own leader it would wait for a word five times as long as for an entry.
        await eventually(lambda: len(behind.applied) == 2, seconds=14)
        over.set()
        await leading
        group.create_task(system.worker(store, projection="leader").run(stop))
        await system.append(an_impression("2"))
        await eventually(lambda: len(behind.applied) == 3, seconds=14)
        stop.set()


# --- on the real tables


@pytest.fixture
async def tables(pool: Pool) -> EventTables:
    await insert_catalog(pool)
    return EventTables(pool)


async def counted(pool: Pool) -> tuple[int, int]:
    row = await pool.fetchrow("SELECT sum(impressions)::int, sum(clicks)::int FROM events.event_counts")
    assert row is not None
    return row[0], row[1]


async def test_reading_the_whole_log_again_changes_nothing(
    system: ProjectionSystem, tables: EventTables, pool: Pool
) -> None:
    await system.append(*impressions(50), a_click())
    await system.catch_up(tables)

    await pool.execute("UPDATE projection_cursors SET entry_id = $1", BEGINNING)
    await system.catch_up(tables)

    assert await counted(pool) == (50, 1)


async def test_a_worker_that_dies_within_the_transaction_leaves_nothing_behind(
    system: ProjectionSystem, tables: EventTables, pool: Pool
) -> None:
    await system.append(*impressions(10))
    await tables.read_cursor()
    # The test locks the table, so that the commit hangs between its insert and its cursor.
    async with pool.acquire() as other, other.transaction():
        await other.execute("LOCK TABLE events.event_counts IN ACCESS EXCLUSIVE MODE")
        worker = asyncio.create_task(system.worker(tables).run(asyncio.Event()))
        async with asyncio.timeout(60):
            while not await pool.fetchval(A_LOCK_IS_WAITED_FOR):  # noqa: ASYNC110 - it waits in the database
                await asyncio.sleep(0.01)
        worker.cancel()
        await asyncio.wait([worker])
    assert await pool.fetchval("SELECT count(*) FROM events.banner_impressions") == 0

    await system.catch_up(tables)

    assert (await counted(pool))[0] == 10


async def test_two_workers_that_both_think_they_are_the_owner_count_every_event_once(
    system: ProjectionSystem, tables: EventTables, pool: Pool, database_url: str
) -> None:
    await system.append(*(an_impression(f"{number % 150}") for number in range(300)))
    async with open_pool(database_url, size_max=2) as other_pool:
        one = system.worker(tables, batch_max=5)
        # The lease of the second is another key, as if Valkey had lost it.
        group = ConsumerGroup(system.valkey, "test", consumer="thief@host", incarnation="x")
        group._keys = [STREAM, "another lease"]  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - what it is about
        other = Projection("test", group, EventTables(other_pool), batch_max=7, pace_seconds=0)

        await run_until(system.is_caught_up(tables), one, other, seconds=60)

    assert (await counted(pool))[0] == 150
    assert one.counters.counted + other.counters.counted == 150


async def test_a_cursor_that_another_worker_moved_refuses_the_batch(tables: EventTables, pool: Pool) -> None:
    await tables.read_cursor()

    with pytest.raises(CursorMovedError):
        await tables.commit([DecodedEntry("6-0", an_impression())], after="5-0", cursor="6-0")

    assert await pool.fetchval("SELECT count(*) FROM events.banner_impressions") == 0


async def test_an_event_that_the_tables_refuse_becomes_a_dead_letter(
    system: ProjectionSystem, tables: EventTables, pool: Pool
) -> None:
    poison = an_impression("x", country_code="too long for its column")
    nul = a_click("y", page_url="a\0b")
    await system.append(an_impression("a"), poison, an_impression("b"), nul, b"", an_impression("c"))

    await system.catch_up(tables)

    assert (await counted(pool))[0] == 3
    dead_letters = await system.dead_letters.list_after()
    assert {letter.data for letter in dead_letters} == {encode_event(poison), encode_event(nul), b""}
    assert all(letter.reason for letter in dead_letters)


def test_a_few_small_batches_come_at_once_and_a_long_row_of_them_once_a_second() -> None:
    pace, now, begun = BatchPace(0.2), 100.0, list[float]()
    for _ in range(12):
        begun.append(now)
        now += pace.find_pause(3, now)

    steps = [after - before for before, after in pairwise(begun)]
    assert steps[:5] == pytest.approx([0.2] * 5)
    assert steps[-3:] == pytest.approx([1.0] * 3)
    assert pace.find_pause(499, now) == 0.2
    assert pace.find_pause(500, now) == 0.5
    assert pace.find_pause(3, now + 60) == 0.2


def test_what_nobody_waits_for_comes_in_larger_batches() -> None:
    pace, now = BatchPace(0.0, small_seconds=4.0), 100.0
    for _ in range(8):
        now += pace.find_pause(3, now)

    assert pace.find_pause(150, now) == pytest.approx(4.0)
    assert pace.find_pause(500, now) == 0
    assert BatchPace(0.0, small_seconds=0.0).find_pause(3, now) == 0
