"""The ledger folded into tables: every event once, whatever stops, repeats or cannot be read."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import cast

import pytest

from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.ledger.event import Event, encoded
from adloom.ledger.projection import CursorMovedError, Folded, Projection
from adloom.ledger.store import EventTables, all_cursors
from adloom.ledger.stream import BEGINNING, DEAD_STREAM, STREAM, ValkeyLedger
from adloom.ledger.upkeep import Upkeep, trim_before
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.valkey import Valkey
from tests.ledger.builders import CAMPAIGN, NOBODY, NOW, REQUEST, a_click, an_impression
from tests.ledger.catalog import insert_catalog

TODAY = NOW.date()
SOMEBODY_WAITS = """
    SELECT EXISTS (
        SELECT FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
"""


class Fold:
    """A ledger and its tables, and the projection between them."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.pool = pool
        self.valkey = valkey
        self.ledger = ValkeyLedger(valkey)
        self.tables = EventTables(pool)

    async def append(self, *events: Event | bytes) -> None:
        await self.ledger.append([event if isinstance(event, bytes) else encoded(event) for event in events])

    def projection(self, tables: EventTables | None = None, *, batch_max: int = 1000) -> Projection:
        return Projection("test", self.ledger, tables or self.tables, batch_max=batch_max, wait_seconds=0.05)

    async def catch_up(self, *, batch_max: int = 1000) -> Projection:
        """Run a new projection until it has read everything, as a new worker would."""
        projection = self.projection(batch_max=batch_max)
        await run_until(projection, self.is_caught_up)
        return projection

    async def is_caught_up(self) -> bool:
        return (await self.ledger.lag(await self.tables.cursor())).entries == 0

    async def counts(self) -> list[tuple[date, int, int]]:
        rows = await self.pool.fetch(
            "SELECT day, sum(impressions)::int, sum(clicks)::int FROM event_counts GROUP BY day ORDER BY day"
        )
        return [tuple(row) for row in rows]

    async def buried(self) -> list[dict[bytes, bytes]]:
        # The stubs know every protocol version and decoding.
        rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", await self.valkey.xrange(DEAD_STREAM))
        return [fields for _, fields in rows]

    async def rows(self) -> tuple[int, int]:
        impressions = await self.pool.fetchval("SELECT count(*) FROM banner_impressions")
        clicks = await self.pool.fetchval("SELECT count(*) FROM banner_clicks")
        return impressions, clicks


async def run_until(projection: Projection, is_done: Callable[[], Awaitable[bool]]) -> None:
    stop = asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(projection.run(stop))
        while not await is_done():  # noqa: ASYNC110 - what is waited for happens in the database
            await asyncio.sleep(0.01)
        stop.set()


@pytest.fixture
async def fold(pool: Pool, valkey: Valkey) -> Fold:
    await insert_catalog(pool)
    return Fold(pool, valkey)


async def test_events_become_rows_and_counts(fold: Fold) -> None:
    await fold.append(
        an_impression("a"), an_impression("b"), a_click("a"), an_impression("c", campaign_id=None)
    )

    projection = await fold.catch_up()

    assert await fold.rows() == (3, 1)
    assert await fold.counts() == [(TODAY, 3, 1)]
    assert (projection.counted, projection.repeated, projection.dropped) == (4, 0, 0)


async def test_a_row_has_everything_that_the_event_said(fold: Fold) -> None:
    said = {
        "request_id": REQUEST,
        "session_id": "s" * 128,
        "user_id": REQUEST,
        "device_type": "desktop",
        "country_code": "DE",
        "page_url": "https://pub.example/ü",
    }
    await fold.append(an_impression("i", referrer_url="https://r.example", **said))
    await fold.append(a_click("c", destination_url="https://d.example", **said))

    await fold.catch_up()

    impression = await fold.pool.fetchrow("SELECT * FROM banner_impressions")
    click = await fold.pool.fetchrow("SELECT * FROM banner_clicks")
    assert impression is not None
    assert click is not None
    assert {**impression}.items() >= {**said, "referrer_url": "https://r.example", "occurred_at": NOW}.items()
    assert {**click}.items() >= {**said, "destination_url": "https://d.example", "occurred_at": NOW}.items()


async def test_the_same_correlation_id_counts_once_within_a_batch_and_across_batches(fold: Fold) -> None:
    await fold.append(*[an_impression("a")] * 5, an_impression("b"), *[an_impression("a")] * 5)

    projection = await fold.catch_up(batch_max=3)

    assert await fold.counts() == [(TODAY, 2, 0)]
    assert (projection.counted, projection.repeated) == (2, 9)


async def test_reading_the_whole_ledger_again_changes_nothing(fold: Fold) -> None:
    await fold.append(*(an_impression(f"{number}") for number in range(50)), a_click())
    await fold.catch_up()

    await fold.pool.execute("UPDATE projection_cursors SET entry_id = $1", BEGINNING)
    await fold.catch_up()

    assert await fold.rows() == (50, 1)
    assert await fold.counts() == [(TODAY, 50, 1)]


async def test_a_day_is_a_day_of_utc(fold: Fold) -> None:
    midnight = datetime(2026, 11, 15, tzinfo=UTC)
    await fold.append(
        an_impression("before", occurred_at=midnight - timedelta(microseconds=1)),
        an_impression("after", occurred_at=midnight),
    )
    await fold.pool.execute("SET timezone TO 'Asia/Kolkata'")

    await fold.catch_up()

    assert await fold.counts() == [(date(2026, 11, 14), 1, 0), (date(2026, 11, 15), 1, 0)]


async def test_events_of_what_is_gone_are_dropped_and_the_rest_is_counted(fold: Fold) -> None:
    await fold.append(
        an_impression("a", banner_id=BannerId(NOBODY)),
        an_impression("b", placement_id=PlacementId(NOBODY)),
        an_impression("c", campaign_id=CampaignId(NOBODY)),
        an_impression("d"),
    )

    projection = await fold.catch_up()

    assert (projection.counted, projection.dropped) == (2, 2)
    campaigns = await fold.pool.fetch(
        "SELECT public_id FROM event_counts LEFT JOIN campaigns ON campaigns.id = campaign_id ORDER BY 1"
    )
    assert [row["public_id"] for row in campaigns] == [CAMPAIGN, None]


async def test_a_poison_entry_is_laid_aside_and_blocks_nothing(fold: Fold) -> None:
    poison = an_impression("x", country_code="too long for its column")
    nul = a_click("y", page_url="a\0b")
    await fold.append(
        b"no event", an_impression("a"), poison, an_impression("b"), nul, b"", an_impression("c")
    )

    projection = await fold.catch_up()

    assert await fold.counts() == [(TODAY, 3, 0)]
    assert projection.dead == 4
    buried = await fold.buried()
    assert [letter[b"e"] for letter in buried] == [b"no event", b"", encoded(poison), encoded(nul)]
    assert all(letter[b"reason"] and letter[b"entry"] for letter in buried)


class Interrupted(EventTables):
    """Tables whose commit is cut off at a place of the test's choice, a few times."""

    def __init__(self, pool: Pool, *, times: int, is_committed: bool) -> None:
        super().__init__(pool)
        self.times = times
        self._is_committed = is_committed

    async def commit(self, events: Sequence[Event], *, after: str, cursor: str) -> Folded:
        if self.times > 0 and events:
            self.times -= 1
            if self._is_committed:
                await super().commit(events, after=after, cursor=cursor)
            raise UnavailableError("The connection broke.")
        return await super().commit(events, after=after, cursor=cursor)


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_lost_answer_of_the_database_neither_loses_nor_repeats_a_batch(
    fold: Fold, *, is_committed: bool
) -> None:
    await fold.append(*(an_impression(f"{number}") for number in range(10)))
    tables = Interrupted(fold.pool, times=3, is_committed=is_committed)

    projection = fold.projection(tables, batch_max=2)
    await run_until(projection, fold.is_caught_up)

    assert await fold.counts() == [(TODAY, 10, 0)]
    assert projection.failures == 3


async def test_a_worker_that_dies_within_the_transaction_leaves_nothing_behind(fold: Fold) -> None:
    await fold.append(*(an_impression(f"{number}") for number in range(10)))
    await fold.tables.cursor()
    # Somebody holds the table, so that the commit hangs between its insert and its cursor.
    async with fold.pool.acquire() as other, other.transaction():
        await other.execute("LOCK TABLE event_counts IN ACCESS EXCLUSIVE MODE")
        worker = asyncio.create_task(fold.projection().run(asyncio.Event()))
        async with asyncio.timeout(10):
            while not await fold.pool.fetchval(SOMEBODY_WAITS):  # noqa: ASYNC110 - it waits in the database
                await asyncio.sleep(0.01)
        worker.cancel()
        await asyncio.wait([worker])
    assert await fold.rows() == (0, 0)

    await fold.catch_up()

    assert await fold.counts() == [(TODAY, 10, 0)]


async def test_two_workers_at_once_count_everything_once(fold: Fold, database_url: str) -> None:
    await fold.append(*(an_impression(f"{number % 150}") for number in range(300)))
    async with open_pool(database_url, size_max=2) as other_pool:
        others = fold.projection(EventTables(other_pool), batch_max=7)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(others.run(stop))
            mine = await fold.catch_up(batch_max=5)
            stop.set()

    assert await fold.counts() == [(TODAY, 150, 0)]
    assert mine.failures == others.failures == 0
    assert mine.counted + others.counted == 150


async def test_a_cursor_that_somebody_else_moved_refuses_the_batch(fold: Fold) -> None:
    await fold.tables.cursor()

    with pytest.raises(CursorMovedError):
        await fold.tables.commit([an_impression()], after="5-0", cursor="6-0")

    assert await fold.rows() == (0, 0)


async def test_a_buried_entry_is_buried_once_however_often_its_batch_is_tried(fold: Fold) -> None:
    await fold.append(b"no event", an_impression("a"))

    projection = fold.projection(Interrupted(fold.pool, times=3, is_committed=False))
    await run_until(projection, fold.is_caught_up)

    assert await fold.valkey.xlen(DEAD_STREAM) == 1


class Held(EventTables):
    """Begins a commit and goes on when told to."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.begun = asyncio.Event()
        self.released = asyncio.Event()

    async def commit(self, events: Sequence[Event], *, after: str, cursor: str) -> Folded:
        self.begun.set()
        await self.released.wait()
        return await super().commit(events, after=after, cursor=cursor)


async def test_a_stop_finishes_the_batch_that_was_begun(fold: Fold) -> None:
    await fold.append(an_impression("a"), an_impression("b"))
    tables, stop = Held(fold.pool), asyncio.Event()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(fold.projection(tables, batch_max=1).run(stop))
        await tables.begun.wait()
        stop.set()
        tables.released.set()

    assert await fold.counts() == [(TODAY, 1, 0)]


async def test_an_idle_projection_stops_soon(fold: Fold) -> None:
    stop = asyncio.Event()
    async with asyncio.timeout(3), asyncio.TaskGroup() as group:
        group.create_task(fold.projection().run(stop))
        await asyncio.sleep(0.1)
        stop.set()


# --- upkeep


async def test_the_lag_is_what_a_cursor_has_not_read(fold: Fold) -> None:
    await fold.append(an_impression("a"), an_impression("b"), an_impression("c"))
    first, *_ = await fold.ledger.read(BEGINNING, count_max=1, wait_seconds=1)
    await asyncio.sleep(0.02)

    lag = await fold.ledger.lag(first.id)

    assert lag.entries == 2
    assert 0.02 <= lag.seconds < 5
    assert (await fold.ledger.lag("9999999999999-0")).seconds == 0


async def test_only_what_is_old_and_read_by_all_is_forgotten() -> None:
    week = timedelta(days=7)
    week_ago = int((NOW - week).timestamp() * 1000)

    assert trim_before([], now=NOW, retention=week) is None
    assert trim_before([f"{week_ago + 5}-3", f"{week_ago + 9}-1"], now=NOW, retention=week) == f"{week_ago}-0"
    assert (
        trim_before([f"{week_ago - 5}-3", f"{week_ago + 9}-1"], now=NOW, retention=week)
        == f"{week_ago - 5}-3"
    )
    assert trim_before([BEGINNING], now=NOW, retention=week) == BEGINNING


async def test_upkeep_measures_and_trims(fold: Fold) -> None:
    # Valkey trims whole blocks of a hundred entries.
    await fold.append(*(an_impression(f"{number}") for number in range(450)))
    clock = ManualClock(datetime.now(UTC) + timedelta(days=8))
    upkeep = Upkeep(fold.ledger, lambda: all_cursors(fold.pool), clock=clock)

    await upkeep.look()
    assert upkeep.trimmed == 0
    await fold.tables.cursor()
    await upkeep.look()
    assert (upkeep.lag.entries, upkeep.trimmed) == (450, 0)

    await fold.catch_up()
    await upkeep.look()
    assert upkeep.lag.entries == 0
    assert upkeep.trimmed >= 400
    assert await fold.valkey.xlen(STREAM) == 450 - upkeep.trimmed
