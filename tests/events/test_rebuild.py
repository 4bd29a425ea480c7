"""The event tables are rebuilt from the log beside those in use: corrected, with nothing lost or repeated."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from adloom.core.clock import SystemClock
from adloom.core.ids import RequestId
from adloom.events.log.event import Event, Impression, LogEntry, Mark, Served, encode_event
from adloom.events.log.stream import STREAM
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.events.projections.dead_letters import DeadLetterQueue, wrap_redelivery
from adloom.events.projections.group import ConsumerGroup
from adloom.events.projections.projection import Projection
from adloom.events.rebuild.log_scanner import LogScanner
from adloom.events.rebuild.rebuild import EventTablesRebuild, RebuildRefusedError, RebuildReport
from adloom.events.rebuild.store import REBUILT
from adloom.events.tables.erasure_store import erase_user
from adloom.events.tables.store import EVENT_TABLES, EventTables
from adloom.runtime.postgres import Connection, Pool, open_pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import BANNER, CAMPAIGN, NOW, PLACEMENT, a_click, an_impression
from tests.events.catalog import insert_catalog

# The first entry; the others follow, one a second.
BEGAN_MS = int(NOW.timestamp() * 1000)
USER = UUID("01890000-0000-7000-8000-00000000abcd")
SCHEMA = """
    SELECT 'index ' || indexname || indexdef AS thing FROM pg_indexes WHERE schemaname = 'events'
    UNION ALL
    SELECT 'constraint ' || relname || conname || pg_get_constraintdef(pg_constraint.oid)
      FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
     WHERE relnamespace = 'events'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'column', relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
                     attcollation::regcollation)
      FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
     WHERE relnamespace = 'events'::regnamespace AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT concat_ws(' ', 'relation', relname, relkind, relpersistence, pg_get_expr(relpartbound, oid))
      FROM pg_class WHERE relnamespace = 'events'::regnamespace
    ORDER BY 1
"""
DUMP = "SELECT ({what})::text FROM events.{table} AS it ORDER BY 1"
NAMES = "SELECT correlation_id FROM events.{table} ORDER BY entry_ms, entry_seq"
MARKS = "SELECT correlation_id, marks FROM events.{table}"
SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'events%' ORDER BY nspname"


class RebuildSystem:
    """A log, its tables, and a worker that applies events when a test asks it to."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.pool = pool
        self.valkey = valkey
        self.tables = EventTables(pool)
        self.ledger = LogScanner(valkey)
        self._seconds = 0

    async def append(self, *events: Event | Served | bytes) -> list[str]:
        """Append events, one a second, and return the ids of their entries."""
        ids: list[str] = []
        for event in events:
            data = event if isinstance(event, bytes) else encode_event(event)
            ids.append(f"{BEGAN_MS + 1000 * self._seconds}-0")
            self._seconds += 1
            await self.valkey.xadd(STREAM, {"e": data}, id=ids[-1])
        return ids

    async def apply(self, *events: Event | Served) -> list[str]:
        """Append events, and apply them as one batch."""
        ids = await self.append(*events)
        records = [DecodedEntry(entry_id, event) for entry_id, event in zip(ids, events, strict=True)]
        await self.tables.commit(records, after=await self.tables.read_cursor(), cursor=ids[-1])
        return ids

    def rebuild(self, **options: Any) -> EventTablesRebuild:
        return EventTablesRebuild(self.pool, self.ledger, **options)

    async def replay(self, start: str = "0-0", **options: Any) -> RebuildReport:
        return await self.rebuild(**{"lead": timedelta(), **options}).run(start)

    async def dump(self) -> dict[str, list[str]]:
        """All rows of the event tables, without the rows' own ids."""
        columns = {
            "banner_impressions": "to_jsonb(it) - 'id'",
            "banner_clicks": "to_jsonb(it) - 'id'",
            "event_counts": "to_jsonb(it)",
            "event_days": "to_jsonb(it)",
        }
        return {
            table: [row[0] for row in await self.pool.fetch(DUMP.format(what=what, table=table))]
            for table, what in columns.items()
        }

    async def names(self, table: str = "banner_impressions") -> list[str]:
        rows = await self.pool.fetch(NAMES.format(table=table))
        return [row[0] for row in rows]

    async def marks(self, table: str) -> dict[str, list[str]]:
        rows = await self.pool.fetch(MARKS.format(table=table))
        return {row["correlation_id"]: row["marks"] or [] for row in rows}

    async def counts(self) -> tuple[int, ...]:
        row = await self.pool.fetchrow(
            """
            SELECT sum(impressions)::int, sum(clicks)::int, sum(invalid_impressions)::int, sum(invalid_clicks)::int
              FROM events.event_counts
            """
        )
        assert row is not None
        return tuple(row)

    async def last_entry(self) -> str:
        rows = cast("list[tuple[bytes, object]]", await self.valkey.xrevrange(STREAM, count=1))
        return rows[0][0].decode()

    async def schema(self) -> list[str]:
        return [row[0] for row in await self.pool.fetch(SCHEMA)]

    async def schemas(self) -> list[str]:
        return [row[0] for row in await self.pool.fetch(SCHEMAS)]


@pytest.fixture
async def system(pool: Pool, valkey: Valkey) -> RebuildSystem:
    await insert_catalog(pool)
    return RebuildSystem(pool, valkey)


class Interruption:
    """Ends a rebuild when it begins a step."""

    def __init__(self, step: str) -> None:
        self._step = step

    def begin(self, step: str, total: int | None = None) -> None:
        assert total is None or total >= 0
        if step.startswith(self._step):
            raise RebuildInterruptedError

    def advance(self, count: int) -> None:
        assert count >= 0


class RebuildInterruptedError(Exception):
    """Raised by a test to stop a rebuild."""


def offer() -> dict[str, Any]:
    return {"request_id": uuid4(), "slot": 0}


async def a_history(system: RebuildSystem) -> None:
    """Apply events of every kind: all marks, repeats, two days, a user, a served offer."""
    one, two, three = offer(), offer(), offer()
    yesterday = {"occurred_at": NOW - timedelta(hours=20)}
    await system.apply(
        an_impression("i1", **one, device_type="mobile", country_code="DE", user_id=USER, session_id="s"),
        an_impression("i2", **one),
        a_click("c1", **one, destination_url="https://shop.example/"),
        a_click("c2", **two, device_type="toaster"),
    )
    await system.apply(an_impression("i1", **one), an_impression("i3", campaign_id=None, **yesterday))
    await system.apply(an_impression("i4", **two, marks=(Mark.OCCURRED_AT_REPLACED,)), a_click("c1", **one))
    await system.apply(
        a_click("c3", **three, **yesterday),
        a_click("c4", **one),
        an_impression("i5", marks=(Mark.CRAWLER, Mark.DATA_CENTER), client_network="203.0.113.0/24"),
        Served(
            request_id=RequestId(uuid4()),
            slot=0,
            banner_id=BANNER,
            placement_id=PLACEMENT,
            campaign_id=CAMPAIGN,
            placement_type="banner",
            served_at=NOW,
        ),
    )


async def test_a_replay_of_correct_tables_changes_nothing(system: RebuildSystem) -> None:
    await a_history(system)
    before, schema, cursor = await system.dump(), await system.schema(), await system.tables.read_cursor()

    rebuilt = await system.replay()

    assert await system.dump() == before
    assert await system.schema() == schema
    assert await system.schemas() == ["events"]
    assert await system.tables.read_cursor() == cursor
    assert (rebuilt.copied, rebuilt.applied.counted, rebuilt.applied.repeated) == (0, 9, 2)
    assert (rebuilt.events_before, rebuilt.events, rebuilt.days_corrected) == (9, 9, 0)
    assert len(before["banner_impressions"]) == 5


async def test_a_replay_keeps_what_the_money_ledger_said_about_clicks(system: RebuildSystem) -> None:
    offer = RequestId(UUID(int=7))
    await system.apply(
        an_impression("seen", request_id=offer, slot=0),
        a_click("free", request_id=offer, slot=0),
        a_click("other"),
    )
    await system.pool.execute(
        "UPDATE events.banner_clicks SET marks = array_append(marks, 'over_budget') WHERE correlation_id = 'free'"
    )
    before = await system.marks("banner_clicks")

    for _ in range(2):
        await system.replay()
        assert await system.marks("banner_clicks") == before

    assert before["free"] == ["over_budget"]


async def test_a_replay_keeps_events_that_came_late_from_a_spool(system: RebuildSystem) -> None:
    await a_history(system)
    await system.apply(
        *(an_impression(f"{days} days", occurred_at=NOW - timedelta(days=days)) for days in (3, 5, 8))
    )
    before = await system.dump()

    rebuilt = await system.replay()

    assert await system.dump() == before
    assert rebuilt.days_corrected == 0


async def test_a_replay_of_an_empty_log_keeps_all_rows(system: RebuildSystem) -> None:
    await a_history(system)
    await system.valkey.delete(STREAM)
    before = await system.dump()

    rebuilt = await system.replay()

    assert await system.dump() == before
    assert (rebuilt.copied, rebuilt.applied.counted) == (9, 0)


async def test_a_replay_without_any_events_does_nothing(system: RebuildSystem) -> None:
    rebuilt = await system.replay()

    assert (rebuilt.copied, rebuilt.events) == (0, 0)
    assert await system.schemas() == ["events"]


DAMAGES = {
    "rows are gone": "DELETE FROM events.banner_impressions WHERE correlation_id IN ('i1', 'i3')",
    "all rows are gone": "TRUNCATE events.banner_impressions, events.banner_clicks",
    "a day is gone": "DROP TABLE events.banner_impressions_20261114, events.banner_clicks_20261114",
    "counts are wrong": "UPDATE events.event_counts SET impressions = impressions + 7, invalid_clicks = 0",
    "counts are gone": "TRUNCATE events.event_counts",
    "days are gone": "TRUNCATE events.event_days",
    "marks are wrong": "UPDATE events.banner_clicks SET marks = '{crawler}', is_valid = NOT is_valid",
    "rows say something else": "UPDATE events.banner_impressions SET country_code = 'XX', occurred_at = occurred_at + '1 s'",
    "rows have other names": "UPDATE events.banner_impressions SET correlation_id = 'not-' || correlation_id",
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_replay_repairs_damaged_tables(system: RebuildSystem, damage: str) -> None:
    await a_history(system)
    before = await system.dump()
    await system.pool.execute(DAMAGES[damage])
    assert await system.dump() != before

    await system.replay()

    now = await system.dump()
    assert {name: rows for name, rows in now.items() if name != "event_days"} == {
        name: rows for name, rows in before.items() if name != "event_days"
    }
    days = "SELECT day::text, events FROM events.event_days ORDER BY day"
    assert [tuple(row) for row in await system.pool.fetch(days)] == [("2026-11-14", 2), ("2026-11-15", 7)]


async def test_days_with_changed_figures_are_marked_for_another_rollup(system: RebuildSystem) -> None:
    await a_history(system)
    days = "SELECT day::text, corrections FROM events.event_days ORDER BY day"
    before = [tuple(row) for row in await system.pool.fetch(days)]
    await system.pool.execute("UPDATE events.event_counts SET clicks = 9 WHERE hour < '2026-11-15Z'")

    rebuilt = await system.replay()

    now = [tuple(row) for row in await system.pool.fetch(days)]
    assert rebuilt.days_corrected == 1
    assert now == [(before[0][0], before[0][1] + 1), before[1]]


async def test_rows_whose_entries_were_trimmed_are_copied(system: RebuildSystem) -> None:
    await system.apply(*(an_impression(f"old-{number}") for number in range(3)))
    [first, *_] = await system.apply(*(an_impression(f"new-{number}") for number in range(3)))
    await system.valkey.xtrim(STREAM, minid=first, approximate=False)
    await system.pool.execute("UPDATE events.banner_impressions SET country_code = 'XX'")

    rebuilt = await system.replay()

    countries = await system.pool.fetch("SELECT correlation_id, country_code FROM events.banner_impressions")
    assert {row["correlation_id"]: row["country_code"] for row in countries} == {
        **{f"old-{number}": "XX" for number in range(3)},
        **{f"new-{number}": None for number in range(3)},
    }
    assert (rebuilt.copied, rebuilt.applied.counted, rebuilt.first_entry) == (3, 3, first)
    assert await system.counts() == (6, 0, 0, 0)


async def test_rows_of_entries_missing_from_the_middle_of_the_log_are_kept(
    system: RebuildSystem,
) -> None:
    one = offer()
    await system.apply(an_impression("a"))
    [lost] = await system.apply(an_impression("b", **one))
    await system.apply(a_click("c", **one), an_impression("d", **one), an_impression("b", **one))
    await system.valkey.xdel(STREAM, lost)
    before = await system.dump()

    rebuilt = await system.replay()

    assert await system.dump() == before
    assert await system.marks("banner_clicks") == {"c": []}
    assert (rebuilt.copied, rebuilt.applied.counted, rebuilt.applied.repeated) == (1, 3, 1)


async def test_a_replay_may_start_in_the_middle_of_the_log(system: RebuildSystem) -> None:
    one = offer()
    await system.apply(a_click("c", **one), an_impression("a"))
    [start, _] = await system.apply(an_impression("b", **one), an_impression("a"))
    before = await system.dump()
    await system.pool.execute("DELETE FROM events.banner_impressions")

    rebuilt = await system.replay(start)

    assert await system.names() == ["b", "a"]
    assert await system.marks("banner_clicks") == {"c": []}
    assert (rebuilt.copied, rebuilt.applied.counted) == (1, 2)
    assert (await system.dump())["event_counts"] == before["event_counts"]


async def test_a_replay_that_starts_after_the_last_entry_counts_the_rows(system: RebuildSystem) -> None:
    await a_history(system)
    before = await system.dump()
    await system.pool.execute("TRUNCATE events.event_counts")

    rebuilt = await system.replay("9999999999999-0")

    assert (rebuilt.copied, rebuilt.applied.counted) == (9, 0)
    assert (await system.dump())["event_counts"] == before["event_counts"]


async def test_counts_of_days_without_rows_are_kept(system: RebuildSystem) -> None:
    await a_history(system)
    await system.pool.execute(
        """
        INSERT INTO events.event_counts (hour, banner_id, placement_id, impressions)
        VALUES ('2026-07-01T10:00Z', 1, 1, 4711);
        INSERT INTO events.event_days (day, events, corrections) VALUES ('2026-07-01', 4711, 3);
        """
    )
    before = await system.dump()

    rebuilt = await system.replay()

    assert await system.dump() == before
    assert rebuilt.days_corrected == 0


async def test_entries_that_the_worker_has_not_applied_are_left_to_it(system: RebuildSystem) -> None:
    await system.apply(an_impression("a"))
    await system.append(an_impression("b"))
    before = await system.dump()

    await system.replay()

    assert await system.dump() == before


async def test_entries_that_cannot_be_applied_are_left_out(system: RebuildSystem) -> None:
    await system.apply(an_impression("a"))
    await system.append(
        b"no event",
        an_impression("x", country_code="too long for its column"),
        wrap_redelivery(LogEntry("1-1", encode_event(an_impression("r"))), "topics"),
        a_click("y", page_url="a\0b"),
    )
    await system.apply(an_impression("b"))
    before = await system.dump()

    rebuilt = await system.replay()

    assert await system.dump() == before
    assert rebuilt.left_out == 3


async def test_a_replay_is_refused_when_the_entry_of_a_row_is_unreadable(system: RebuildSystem) -> None:
    [entry_id] = await system.append(b"no event any more")
    record = DecodedEntry(entry_id, an_impression("a"))
    await system.tables.commit([record], after=await system.tables.read_cursor(), cursor=entry_id)
    before = await system.dump()

    with pytest.raises(RebuildRefusedError, match=f"the first of them is {entry_id}"):
        await system.replay()

    assert await system.dump() == before
    [later] = await system.apply(an_impression("b"))
    await system.replay(later)
    assert await system.names() == ["a", "b"]


async def test_counts_of_deleted_banners_are_kept(system: RebuildSystem) -> None:
    await system.apply(an_impression("a"), a_click("b"))
    before = await system.dump()
    await system.pool.execute("DELETE FROM banners")

    rebuilt = await system.replay()

    assert await system.dump() == before
    assert (rebuilt.copied, rebuilt.applied.dropped) == (2, 2)


class Faulty(EventTables):
    """Tables that fail on a good event."""

    async def apply_for_rebuild(self, connection: Connection, records: Sequence[DecodedEntry]) -> BatchResult:
        for event in (record.event for record in records):
            if isinstance(event, Impression) and event.correlation_id == "odd":
                raise RuntimeError("a fault of ours")
        return await super().apply_for_rebuild(connection, records)


async def test_an_unexpected_error_ends_the_replay_and_changes_nothing(system: RebuildSystem) -> None:
    await system.apply(*(an_impression(name) for name in ("a", "odd", "b")))
    before = await system.dump()

    with pytest.raises(RuntimeError, match="a fault of ours"):
        await system.replay(rebuilt=Faulty(system.pool, schema=REBUILT))

    assert await system.dump() == before


async def test_an_entry_with_a_dead_letter_is_left_out(
    system: RebuildSystem,
) -> None:
    await system.apply(an_impression("a"))
    [odd] = await system.append(an_impression("odd"))
    await DeadLetterQueue(system.valkey).add(EVENT_TABLES, odd, b"", reason="?", tries=5, again=b"")
    await system.apply(an_impression("b"))
    before = await system.dump()

    rebuilt = await system.replay(rebuilt=Faulty(system.pool, schema=REBUILT))

    assert await system.dump() == before
    assert rebuilt.left_out == 1


async def test_a_replay_skips_the_start_of_the_log_that_may_be_trimmed(system: RebuildSystem) -> None:
    ids = await system.apply(*(an_impression(f"{number}") for number in range(90)))
    await system.valkey.xtrim(STREAM, minid=ids[10], approximate=False)

    rebuilt = await system.replay(lead=timedelta(minutes=1))

    assert (rebuilt.first_entry, rebuilt.copied, rebuilt.applied.counted) == (ids[70], 70, 20)
    assert len(await system.names()) == 90


class TrimmedLog(LogScanner):
    """A log that is trimmed at each look-up of its oldest entry, except the first."""

    def __init__(self, system: RebuildSystem, *trims: str) -> None:
        super().__init__(system.valkey)
        self._system = system
        self._trims = list(trims)
        self._is_first = True

    async def find_oldest(self) -> str | None:
        if not self._is_first and self._trims:
            await self._system.valkey.xtrim(STREAM, minid=self._trims.pop(0), approximate=False)
        self._is_first = False
        return await super().find_oldest()


async def test_entries_trimmed_while_rows_are_copied_are_copied_too(system: RebuildSystem) -> None:
    ids = await system.apply(*(an_impression(f"{number}") for number in range(30)))
    before = await system.dump()

    rebuild = EventTablesRebuild(system.pool, TrimmedLog(system, ids[10]), lead=timedelta())
    rebuilt = await rebuild.run()

    assert await system.dump() == before
    assert (rebuilt.first_entry, rebuilt.copied, rebuilt.applied.counted) == (ids[10], 10, 20)


async def test_an_entry_trimmed_before_it_is_read_ends_the_replay(system: RebuildSystem) -> None:
    ids = await system.apply(*(an_impression(f"{number}") for number in range(30)))
    before = await system.dump()
    ledger = TrimmedLog(system, ids[0], ids[20])

    with pytest.raises(RebuildRefusedError, match="start again"):
        await EventTablesRebuild(system.pool, ledger, lead=timedelta(), batch_max=5).run()

    assert await system.dump() == before
    assert (await system.replay()).copied == 20
    assert await system.dump() == before


# --- interrupted, and concurrent


@pytest.mark.parametrize("step", ["Scanning", "Copying", "Counting", "Applying", "Swapping"])
async def test_an_interrupted_rebuild_changes_nothing(system: RebuildSystem, step: str) -> None:
    await a_history(system)
    before = await system.dump()

    with pytest.raises(RebuildInterruptedError):
        await system.replay(progress=Interruption(step))

    assert await system.dump() == before
    assert await system.schemas() == ["events", "events_rebuild"]
    await system.apply(an_impression("later"))
    await system.replay()
    assert await system.schemas() == ["events"]
    assert len(await system.names()) == 6


async def test_old_tables_left_by_a_replay_are_dropped_by_the_next(system: RebuildSystem) -> None:
    await a_history(system)
    before = await system.dump()
    await system.pool.execute("CREATE SCHEMA events_old; CREATE TABLE events_old.event_days (day date)")

    await system.replay()

    assert await system.dump() == before
    assert await system.schemas() == ["events"]


async def test_a_second_replay_is_refused_and_does_not_disturb_the_first(system: RebuildSystem) -> None:
    await a_history(system)

    async with system.pool.acquire() as other:
        await other.execute("SELECT pg_advisory_lock(x'AD11'::integer, 1)")
        with pytest.raises(RebuildRefusedError, match="under way"):
            await system.replay()
        assert await system.schemas() == ["events"]

    await system.replay()


async def test_a_replay_is_refused_while_an_operators_objects_use_the_tables(system: RebuildSystem) -> None:
    await a_history(system)
    await system.pool.execute("CREATE VIEW per_day AS SELECT day, events FROM events.event_days")
    await system.pool.execute("CREATE TABLE events.notes (note text)")

    with pytest.raises(RebuildRefusedError) as refused:
        await system.replay()

    assert "the view public.per_day" in str(refused.value)
    assert "the table events.notes" in str(refused.value)
    await system.pool.execute("DROP VIEW per_day; DROP TABLE events.notes")
    await system.replay()


async def test_permissions_on_the_tables_are_kept(system: RebuildSystem) -> None:
    await a_history(system)
    role = f"reader_{uuid4().hex}"
    await system.pool.execute(f"CREATE ROLE {role}")
    await system.pool.execute(f"GRANT USAGE ON SCHEMA events TO {role}")
    await system.pool.execute(f"GRANT SELECT ON events.event_counts TO {role}, PUBLIC")

    await system.replay()

    may = await system.pool.fetchrow(
        """
        SELECT has_schema_privilege($1, 'events', 'usage'), has_table_privilege($1, 'events.event_counts', 'select'),
               has_table_privilege($1, 'events.event_days', 'select'),
               has_table_privilege('public', 'events.event_counts', 'select')
        """,
        role,
    )
    assert may is not None
    assert tuple(may) == (True, True, False, True)
    await system.pool.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


# --- erased users


class BeforeSwap(LogScanner):
    """Does something just before the new tables replace the old."""

    def __init__(self, valkey: Valkey, do: Callable[[], Awaitable[None]]) -> None:
        super().__init__(valkey)
        self.do: Callable[[], Awaitable[None]] | None = do

    async def read(self, start: str, last: str, *, count_max: int) -> Any:
        entries = await super().read(start, last, count_max=count_max)
        if len(entries) < count_max and self.do is not None:
            do, self.do = self.do, None
            await do()
        return entries


async def test_a_user_erased_during_a_replay_is_in_no_row_after_it(system: RebuildSystem) -> None:
    person = {"user_id": USER, "session_id": "the-session", "page_url": "https://pub.example/?me"}
    [first, *_] = await system.apply(an_impression("copied", **person), a_click("too", **person))
    await system.apply(an_impression("applied", **person), an_impression("other", user_id=uuid4()))
    await system.valkey.xdel(STREAM, first)

    async def erase() -> None:
        async with system.pool.acquire() as connection, connection.transaction():
            await erase_user(connection, USER, projections=[EVENT_TABLES], now=SystemClock().now())

    await EventTablesRebuild(system.pool, BeforeSwap(system.valkey, erase)).run()

    assert not any(
        str(USER) in row or "the-session" in row or "?me" in row
        for rows in (await system.dump()).values()
        for row in rows
    )
    assert (
        await system.pool.fetchval("SELECT count(*) FROM events.banner_impressions WHERE user_id IS NOT NULL")
        == 1
    )


async def test_a_user_erased_before_a_replay_stays_erased_and_may_return(system: RebuildSystem) -> None:
    await system.apply(an_impression("before", user_id=USER, session_id="s"))
    async with system.pool.acquire() as connection, connection.transaction():
        await erase_user(connection, USER, projections=[EVENT_TABLES], now=NOW - timedelta(hours=1))
    await system.apply(an_impression("after", user_id=USER, received_at=NOW + timedelta(seconds=1)))
    before = await system.dump()

    await system.replay()

    assert await system.dump() == before
    users = await system.pool.fetch("SELECT correlation_id, user_id FROM events.banner_impressions")
    assert {row["correlation_id"]: row["user_id"] for row in users} == {"before": None, "after": USER}


# --- beside a running worker


async def test_events_appended_during_a_replay_are_counted_once(
    system: RebuildSystem, database_url: str
) -> None:
    await system.apply(*(an_impression(f"before-{number}") for number in range(500)))
    await system.pool.execute("DELETE FROM events.banner_impressions WHERE entry_ms % 3000 = 0")
    stop = asyncio.Event()
    sent: list[str] = []

    async def send() -> None:
        number = 0
        while not stop.is_set():
            for _ in range(20):
                sent.append(f"during-{number}")
                await system.valkey.xadd(STREAM, {"e": encode_event(an_impression(sent[-1]))}, id="*")
                if number % 7 == 0:
                    await system.valkey.xadd(STREAM, {"e": encode_event(an_impression(sent[-1]))}, id="*")
                number += 1
            await asyncio.sleep(0.002)

    async with open_pool(database_url, size_max=3) as worker_pool:
        group = ConsumerGroup(system.valkey, EVENT_TABLES, consumer="worker", incarnation="1")
        projection = Projection(EVENT_TABLES, group, EventTables(worker_pool), batch_max=50, pace_seconds=0)
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            working = asyncio.Event()
            tasks.create_task(projection.run(working))
            tasks.create_task(send())
            for _ in range(4):
                await system.replay(batch_max=100)
                await asyncio.sleep(0.1)
            stop.set()
            while await system.last_entry() != await system.tables.read_cursor():  # noqa: ASYNC110 - another's work
                await asyncio.sleep(0.02)
            working.set()

    assert len(sent) > 100
    names = await system.names()
    assert len(names) == len(set(names))
    assert set(names) == {*sent, *(f"before-{number}" for number in range(500))}
    assert (await system.counts())[0] == len(names)
    assert await system.pool.fetchval("SELECT sum(events) FROM events.event_days") == len(names)
    assert projection.failures == 0
