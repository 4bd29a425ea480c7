"""Events that were counted before there were days of them are moved into their days."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime

import pytest

from adloom.events.ports import BatchResult, DecodedEntry
from adloom.events.tables.store import EventTables
from adloom.runtime import migrate
from adloom.runtime.postgres import Pool, open_pool
from tests.events.builders import REQUEST, a_click, an_impression
from tests.events.catalog import insert_catalog
from tests.support.migrating import go_back_to

AT = datetime(2026, 11, 14, 23, 59, 59, 999_999, tzinfo=UTC)
LATER = datetime(2026, 11, 15, tzinfo=UTC)
INSERT = """
    INSERT INTO {table} (correlation_id, banner_id, placement_id, campaign_id, request_id, device_type,
                         country_code, page_url, occurred_at)
    SELECT given.name, banners.id, placements.id, campaigns.id, given.request_id, given.device_type, 'DE',
           'https://pub.example/ü', given.at
      FROM banners, placements, campaigns, unnest($1::text[], $2::uuid[], $3::text[], $4::timestamptz[])
           AS given (name, request_id, device_type, at)
"""


@pytest.fixture
async def old(database_url: str) -> AsyncIterator[Pool]:
    """A database as the version before the days of events left it."""
    await go_back_to(database_url, "0004")
    async with open_pool(database_url, size_max=2) as pool:
        await insert_catalog(pool)
        yield pool


async def insert(pool: Pool, table: str, *given: tuple[str, object, str | None, datetime]) -> None:
    await pool.execute(INSERT.format(table=table), *map(list, zip(*given, strict=True)))


async def test_the_migration_moves_rows_into_partitions_and_counts_them(old: Pool, database_url: str) -> None:
    named_by_offer = f"offer:{REQUEST}:3"
    await insert(
        old,
        "banner_impressions",
        ("a", None, "desktop", AT),
        (named_by_offer, REQUEST, "desktop", AT),
        ("b", REQUEST, "a toaster", LATER),
    )
    await insert(old, "banner_clicks", (named_by_offer, REQUEST, "desktop", LATER))

    await migrate.upgrade(database_url)

    rows = await old.fetch(
        "SELECT correlation_id, slot, occurred_at, is_valid, tableoid::regclass::text AS partition"
        " FROM events.banner_impressions ORDER BY id"
    )
    assert sorted(map(tuple, rows), key=lambda row: row[0]) == [
        ("a", None, AT, True, "events.banner_impressions_20261114"),
        ("b", None, LATER, True, "events.banner_impressions_20261115"),
        (named_by_offer, 3, AT, True, "events.banner_impressions_20261114"),
    ]
    assert await old.fetchval("SELECT slot FROM events.banner_clicks_20261115") == 3
    counts = await old.fetch(
        "SELECT hour, country_code, device_type, impressions, clicks, invalid_impressions + invalid_clicks"
        " FROM events.event_counts ORDER BY hour, device_type"
    )
    assert [tuple(row) for row in counts] == [
        (AT.replace(minute=0, second=0, microsecond=0), "DE", "desktop", 2, 0, 0),
        (LATER, "DE", "desktop", 0, 1, 0),
        (LATER, "DE", None, 1, 0, 0),
    ]
    days = await old.fetch("SELECT day, events FROM events.event_days ORDER BY day")
    assert [tuple(row) for row in days] == [(date(2026, 11, 14), 2), (date(2026, 11, 15), 2)]
    assert await old.fetchval("SELECT to_regclass('public.banner_impressions')") is None


async def test_events_moved_by_the_migration_are_recognised_when_repeated(
    old: Pool, database_url: str
) -> None:
    name = f"offer:{REQUEST}:0"
    await insert(old, "banner_impressions", (name, REQUEST, "desktop", AT))
    await migrate.upgrade(database_url)
    tables = EventTables(old)

    result = await tables.commit(
        [
            DecodedEntry("1794700800000-0", an_impression(name, request_id=REQUEST, slot=0)),
            DecodedEntry("1794700800000-1", an_impression("again", request_id=REQUEST, slot=0)),
            DecodedEntry("1794700800000-2", a_click(request_id=REQUEST, slot=0)),
        ],
        after=await tables.read_cursor(),
        cursor="1794700800000-2",
    )

    assert result == BatchResult(counted=2, repeated=1)
    assert await old.fetch("SELECT marks FROM events.banner_impressions WHERE correlation_id = 'again'") == [
        (["second_impression"],)
    ]
    assert await old.fetch("SELECT marks FROM events.banner_clicks") == [(None,)]


async def test_an_installation_without_events_has_no_partitions(old: Pool, database_url: str) -> None:
    await migrate.upgrade(database_url)

    assert await old.fetchval("SELECT count(*) FROM events.event_days") == 0
    assert (
        await old.fetchval(
            "SELECT count(*) FROM pg_inherits JOIN pg_class ON oid = inhrelid"
            " WHERE relkind = 'r' AND relname LIKE 'banner_%'"
        )
        == 0
    )
