"""A projection keeps its store up with the ledger: every event once, whatever stops, repeats or cannot be folded."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.log.event import BEGINNING, Event, encode_event
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.ports import BatchResult, CursorMovedError, DecodedEntry, ProjectionStore
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.events.projections.group import ConsumerGroup, lock_key
from adloom.events.projections.projection import Projection
from adloom.events.projections.quarantine import TRIES_MAX
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.valkey import Valkey
from tests.events.book import Book, as_entries, run_until
from tests.events.builders import a_click, an_impression
from tests.events.catalog import insert_catalog

LEASE = timedelta(milliseconds=400)
SOMEBODY_WAITS = """
    SELECT EXISTS (
        SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
"""


class House:
    """A ledger, and workers that fold it."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.ledger = ValkeyEventLog(valkey)
        self.letters = DeadLetterQueue(valkey)
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
    ) -> Projection:
        """Make a projection as another worker has it."""
        self._workers += 1
        group = ConsumerGroup(
            self.valkey,
            projection,
            consumer=name or f"worker-{self._workers}@host",
            incarnation=f"{self._workers}",
            lease=LEASE,
        )
        return Projection(
            projection,
            group,
            store,
            follows=follows,
            batch_max=batch_max,
            pace_seconds=pace_seconds,
            wait_seconds=1,
            renew_seconds=LEASE.total_seconds() / 3,
            standby_seconds=0.05,
            try_again_seconds=0.001,
        )

    async def newest(self) -> str:
        facts = await self.valkey.xinfo_stream(STREAM)
        return facts["last-generated-id"].decode()

    async def catch_up(self, store: ProjectionStore, *, batch_max: int = 1000) -> Projection:
        """Run a new worker until it has folded everything."""
        projection = self.worker(store, batch_max=batch_max)
        await run_until(self.is_caught_up(store), projection)
        return projection

    def is_caught_up(self, store: ProjectionStore):  # noqa: ANN201 - a question
        async def ask() -> bool:
            return await store.read_cursor() == await self.newest()

        return ask


@pytest.fixture
def house(valkey: Valkey) -> House:
    return House(valkey)


def impressions(count: int, *, first: int = 0) -> list[Event]:
    return [an_impression(f"{number}") for number in range(first, first + count)]


def names(count: int) -> list[str]:
    return [f"{number}" for number in range(count)]


# --- keeping up


async def test_everything_is_applied_once_and_in_order(house: House) -> None:
    book = Book()
    await house.append(*impressions(50))

    projection = await house.catch_up(book, batch_max=7)

    assert book.names == names(50)
    assert (projection.counters.counted, projection.counters.batches) == (50, 8)


async def test_an_event_is_applied_soon_after_it_came(house: House) -> None:
    book, seconds = Book(), list[float]()
    loop = asyncio.get_running_loop()
    projection, stop = house.worker(book, pace_seconds=0.05), asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(projection.run(stop))
        for number in range(5):
            await asyncio.sleep(0.15)
            began_at = loop.time()
            await house.append(an_impression(f"{number}"))
            while len(book.applied) <= number:  # noqa: ASYNC110 - it comes from Valkey
                await asyncio.sleep(0.001)
            seconds.append(loop.time() - began_at)
        stop.set()

    assert min(seconds) < 0.05


async def test_under_load_batches_are_large(house: House) -> None:
    book, stop = Book(), asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(house.worker(book, pace_seconds=0.1).run(stop))
        for number in range(200):
            await house.append(an_impression(f"{number}"))
        while len(book.applied) < 200:  # noqa: ASYNC110 - it comes from Valkey
            await asyncio.sleep(0.005)
        stop.set()

    assert book.names == names(200)
    assert len(book.batches) < 50


async def test_an_idle_projection_stops_at_once(house: House) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    projection = house.worker(Book())
    async with asyncio.timeout(3), asyncio.TaskGroup() as group:
        group.create_task(projection.run(stop))
        await asyncio.sleep(0.2)
        began_at = loop.time()
        stop.set()

    assert loop.time() - began_at < 0.5
    assert not await house.valkey.exists(lock_key("test")), "another need not wait for its lease"


class Held(Book):
    """Begins a commit and goes on when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.released = asyncio.Event()

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        self.begun.set()
        await self.released.wait()
        return await super().commit(records, after=after, cursor=cursor)


async def test_a_stop_finishes_the_batch_that_was_begun(house: House) -> None:
    await house.append(*impressions(2))
    book, stop = Held(), asyncio.Event()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(house.worker(book, batch_max=1).run(stop))
        await book.begun.wait()
        stop.set()
        book.released.set()

    assert book.names == names(1)


# --- one owner at a time


async def test_two_workers_do_not_do_the_same_work(house: House) -> None:
    book = Book()
    await house.append(*impressions(300))
    one, other = house.worker(book, batch_max=7), house.worker(book, batch_max=5)

    await run_until(house.is_caught_up(book), one, other)

    assert book.names == names(300)
    assert sorted([one.counters.counted, other.counters.counted]) == [0, 300]
    assert one.failures == other.failures == 0


async def test_a_batch_that_takes_longer_than_the_lease_keeps_it(house: House) -> None:
    await house.append(*impressions(2))
    book, stop = Held(), asyncio.Event()
    one, other = house.worker(book), house.worker(book)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(one.run(stop))
        await book.begun.wait()
        group.create_task(other.run(stop))
        await asyncio.sleep(LEASE.total_seconds() * 3)
        assert one.is_owner
        assert not other.is_owner
        book.released.set()
        stop.set()


async def test_a_dead_workers_entries_are_applied_by_another_when_its_lease_is_over(
    house: House,
) -> None:
    book, loop = Held(), asyncio.get_running_loop()
    await house.append(*impressions(10))
    dead = asyncio.create_task(house.worker(book).run(asyncio.Event()))
    async with asyncio.timeout(10):
        await book.begun.wait()
    dead.cancel()
    await asyncio.wait([dead])
    book.released.set()
    began_at = loop.time()

    await house.catch_up(book)

    assert book.names == names(10)
    assert loop.time() - began_at < LEASE.total_seconds() + 2


async def test_what_a_zombie_commits_late_is_refused(house: House) -> None:
    book = Held()
    await house.append(*impressions(10))
    zombie, stop = house.worker(book, batch_max=4), asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(zombie.run(stop))
        await book.begun.wait()
        # It has not been heard of for longer than its lease, and another has taken over.
        await house.valkey.set(lock_key("test"), "another@host")
        twin = Book()
        another = house.worker(twin, projection="another")
        await run_until(house.is_caught_up(twin), another)
        book.applied, book.at = twin.applied, twin.at
        book.released.set()
        stop.set()

    assert book.names == names(10)
    assert zombie.counters.counted == 0


async def test_a_worker_that_cannot_reach_its_store_leaves_the_work_to_one_that_can(house: House) -> None:
    book, unreachable = Book(), Book()
    unreachable.is_away = True
    await house.append(*impressions(5))
    cut_off, well = house.worker(unreachable), house.worker(book)

    await run_until(lambda: len(book.applied) == 5, cut_off, well)

    assert cut_off.failures > 0


# --- what goes wrong


class Interrupted(Book):
    """Its commits are cut off a few times, before or after they are done."""

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
async def test_a_lost_answer_of_the_store_neither_loses_nor_repeats_a_batch(
    house: House, *, is_committed: bool
) -> None:
    book = Interrupted(times=3, is_committed=is_committed)
    await house.append(*impressions(10))

    projection = await house.catch_up(book, batch_max=2)

    assert book.names == names(10)
    assert projection.failures == 3


async def test_a_store_that_is_away_for_long_buries_nothing(house: House) -> None:
    book = Book()
    book.is_away = True
    await house.append(*impressions(3), b"no event")
    projection = house.worker(book)

    await run_until(lambda: projection.failures >= 3, projection)
    assert await house.letters.count() == 0

    book.is_away = False
    await house.catch_up(book)
    assert book.names == names(3)


async def test_a_poison_entry_is_given_up_after_five_tries_and_its_neighbours_are_applied(
    house: House,
) -> None:
    book = Book()
    book.refuses = {"4"}
    book.stumbles_over = {"7"}
    await house.append(*impressions(6), b"no event", *impressions(4, first=6))

    projection = await house.catch_up(book)

    assert book.names == ["0", "1", "2", "3", "5", "6", "8", "9"]
    letters = await house.letters.list_after()
    assert {letter.data for letter in letters} == {
        encode_event(an_impression("4")),
        encode_event(an_impression("7")),
        b"no event",
    }
    assert {(letter.projection, letter.tries) for letter in letters} == {("test", TRIES_MAX)}
    assert projection.counters.dead == 3
    assert (await house.valkey.xpending(STREAM, "test"))["pending"] == 0


async def test_a_retried_dead_letter_is_applied(house: House) -> None:
    book = Book()
    book.refuses = {"1"}
    await house.append(*impressions(3))
    await house.catch_up(book)
    [letter] = await house.letters.list_after()

    book.refuses = set()
    assert await house.letters.retry(letter.id)
    await house.catch_up(book)

    assert book.names == ["0", "2", "1"]
    assert await house.letters.count() == 0


class Crashing(Book):
    """Takes the worker with it at the third try of a bad entry."""

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


async def test_tries_survive_a_crash_of_the_worker(house: House) -> None:
    book = Crashing()
    await house.append(*impressions(3))
    worker = asyncio.create_task(house.worker(book, name="same@host").run(asyncio.Event()))
    async with asyncio.timeout(10):
        await book.crashed.wait()
    worker.cancel()
    await asyncio.wait([worker])

    await house.catch_up(book)

    # Two of the first life that were noted, the one that crashed, and as many as are left of five.
    assert book.tries == TRIES_MAX + 1
    [letter] = await house.letters.list_after()
    assert letter.tries == TRIES_MAX


async def test_an_entry_is_one_dead_letter_however_often_giving_it_up_is_interrupted(house: House) -> None:
    class Forgetful(Book):
        times = 3

        async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
            if not records and cursor != after and self.times:
                self.times -= 1
                raise UnavailableError("It is buried, but the cursor is not past it.")
            return await super().commit(records, after=after, cursor=cursor)

    book = Forgetful()
    book.refuses = {"1"}
    await house.append(*impressions(3))

    await house.catch_up(book)

    assert await house.letters.count() == 1
    assert book.names == ["0", "2"]


@pytest.mark.parametrize("is_all_lost", [True, False])
async def test_a_projection_goes_on_after_the_log_or_its_group_was_lost(
    house: House, *, is_all_lost: bool
) -> None:
    book, stop = Book(), asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(house.worker(book).run(stop))
        await house.append(*impressions(3))
        while len(book.applied) < 3:  # noqa: ASYNC110 - it comes from Valkey
            await asyncio.sleep(0.005)
        if is_all_lost:
            await house.valkey.flushall()
        else:
            await house.valkey.xgroup_destroy(STREAM, "test")
        await house.append(*impressions(3, first=3))
        while len(book.applied) < 6:  # noqa: ASYNC110 - it comes from Valkey
            await asyncio.sleep(0.005)
        stop.set()

    assert book.names == names(6)


async def test_a_store_that_was_restored_from_an_older_copy_gets_the_rest_again(house: House) -> None:
    book = Book()
    await house.append(*impressions(10))
    await house.catch_up(book, batch_max=4)

    book.applied, book.at = book.applied[:4], book.applied[3].entry_id
    await house.catch_up(book)

    assert book.names == names(10)


# --- following another


async def test_a_follower_is_never_beyond_the_one_it_follows_and_soon_where_that_is(house: House) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    book, behind = Held(), Book()
    leader = house.worker(book, projection="leader")
    follower = house.worker(behind, projection="follower", follows=leader)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(leader.run(stop))
        group.create_task(follower.run(stop))
        await house.append(*impressions(5))
        await book.begun.wait()
        await asyncio.sleep(0.3)
        assert behind.applied == []

        book.released.set()
        began_at = loop.time()
        while len(behind.applied) < 5:  # noqa: ASYNC110 - it comes from Valkey
            await asyncio.sleep(0.001)
        assert loop.time() - began_at < 0.5
        stop.set()

    assert behind.names == names(5)


async def test_a_follower_follows_one_in_another_process(house: House) -> None:
    book, behind, stop = Book(), Book(), asyncio.Event()
    elsewhere = house.worker(book, projection="leader")
    idle = house.worker(book, projection="leader")  # Ours, which never runs and never tells.
    follower = house.worker(behind, projection="follower", follows=idle)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for one in (elsewhere, follower):
            group.create_task(one.run(stop))
        for number in range(20):
            await house.append(an_impression(f"{number}"))
            await asyncio.sleep(0.01)
            assert len(behind.applied) <= len(book.applied)
        while len(behind.applied) < 20:  # noqa: ASYNC110 - it comes from Valkey
            await asyncio.sleep(0.005)
        stop.set()

    assert behind.names == names(20)


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
    house: House, tables: EventTables, pool: Pool
) -> None:
    await house.append(*impressions(50), a_click())
    await house.catch_up(tables)

    await pool.execute("UPDATE projection_cursors SET entry_id = $1", BEGINNING)
    await house.catch_up(tables)

    assert await counted(pool) == (50, 1)


async def test_a_worker_that_dies_within_the_transaction_leaves_nothing_behind(
    house: House, tables: EventTables, pool: Pool
) -> None:
    await house.append(*impressions(10))
    await tables.read_cursor()
    # Somebody holds the table, so that the commit hangs between its insert and its cursor.
    async with pool.acquire() as other, other.transaction():
        await other.execute("LOCK TABLE events.event_counts IN ACCESS EXCLUSIVE MODE")
        worker = asyncio.create_task(house.worker(tables).run(asyncio.Event()))
        async with asyncio.timeout(10):
            while not await pool.fetchval(SOMEBODY_WAITS):  # noqa: ASYNC110 - it waits in the database
                await asyncio.sleep(0.01)
        worker.cancel()
        await asyncio.wait([worker])
    assert await pool.fetchval("SELECT count(*) FROM events.banner_impressions") == 0

    await house.catch_up(tables)

    assert (await counted(pool))[0] == 10


async def test_two_that_both_think_they_own_it_count_everything_once(
    house: House, tables: EventTables, pool: Pool, database_url: str
) -> None:
    await house.append(*(an_impression(f"{number % 150}") for number in range(300)))
    async with open_pool(database_url, size_max=2) as other_pool:
        one = house.worker(tables, batch_max=5)
        # The lease of the second is another key, as if Valkey had lost it.
        group = ConsumerGroup(house.valkey, "test", consumer="thief@host", incarnation="x")
        group._keys = [STREAM, "another lease"]  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - what it is about
        other = Projection("test", group, EventTables(other_pool), batch_max=7, pace_seconds=0)

        await run_until(house.is_caught_up(tables), one, other, seconds=60)

    assert (await counted(pool))[0] == 150
    assert one.counters.counted + other.counters.counted == 150


async def test_a_cursor_that_another_worker_moved_refuses_the_batch(tables: EventTables, pool: Pool) -> None:
    await tables.read_cursor()

    with pytest.raises(CursorMovedError):
        await tables.commit([DecodedEntry("6-0", an_impression())], after="5-0", cursor="6-0")

    assert await pool.fetchval("SELECT count(*) FROM events.banner_impressions") == 0


async def test_what_the_tables_never_take_is_a_dead_letter(
    house: House, tables: EventTables, pool: Pool
) -> None:
    poison = an_impression("x", country_code="too long for its column")
    nul = a_click("y", page_url="a\0b")
    await house.append(an_impression("a"), poison, an_impression("b"), nul, b"", an_impression("c"))

    await house.catch_up(tables)

    assert (await counted(pool))[0] == 3
    letters = await house.letters.list_after()
    assert {letter.data for letter in letters} == {encode_event(poison), encode_event(nul), b""}
    assert all(letter.reason for letter in letters)
