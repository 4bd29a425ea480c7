"""What a real product says has happened: its tables, its counters, its statistics, its rollup and its topics."""

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import asyncpg
import httpx
import msgspec

from adloom.events.followers.fence import read_text
from adloom.events.frequency.counts import make_cursor_key
from adloom.events.frequency.windows import Window
from adloom.events.log.event import BEGINNING, parse_entry_id
from adloom.events.log.stream import DEAD_STREAM, STREAM
from adloom.events.topics.publish import CURSOR
from adloom.runtime.postgres import POSTGRES_AWAY
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, open_valkey
from simulation.laws import KINDS, Counts, EventKey, Row, StoredEvents, Witness
from tests.support.product import Product, adloom

SETTLED_SECONDS_MAX = 150.0
POLL_SECONDS = 0.2

# Other tests use the same product: the laws are of the events of one test's banners.
ROWS = """
    SELECT 'impression' AS kind, correlation_id, (occurred_at AT TIME ZONE 'UTC')::date AS day,
           request_id, slot, marks
      FROM events.banner_impressions WHERE banner_id IN (SELECT id FROM banners WHERE public_id = ANY($1::uuid[]))
    UNION ALL
    SELECT 'click', correlation_id, (occurred_at AT TIME ZONE 'UTC')::date, request_id, slot, marks
      FROM events.banner_clicks WHERE banner_id IN (SELECT id FROM banners WHERE public_id = ANY($1::uuid[]))
"""
LIVE = """
    SELECT (hour AT TIME ZONE 'UTC')::date AS day,
           sum({0}impressions + unbound_impressions)::bigint AS impressions,
           sum({0}clicks + unbound_clicks)::bigint AS clicks
      FROM events.event_counts WHERE banner_id IN (SELECT id FROM banners WHERE public_id = ANY($1::uuid[])) GROUP BY 1
"""
ROLLED_UP = """
    SELECT stat_date AS day, sum(impressions + unbound_impressions)::bigint AS impressions,
           sum(clicks + unbound_clicks)::bigint AS clicks
      FROM banner_stats WHERE banner_id IN (SELECT id FROM banners WHERE public_id = ANY($1::uuid[])) GROUP BY 1
"""
SEEN_BY_USERS = """
    SELECT user_id, public_id, count(*) AS impressions
      FROM events.banner_impressions JOIN banners ON banners.id = banner_id
     WHERE is_valid AND user_id IS NOT NULL AND banner_id IN (SELECT banner_id FROM frequency_caps)
     GROUP BY 1, 2
"""
KNOWN = """
    SELECT 'impression', correlation_id FROM events.banner_impressions
    UNION ALL SELECT 'click', correlation_id FROM events.banner_clicks
"""
CURSORS = "SELECT entry_id FROM projection_cursors"
FOLLOWERS = (CURSOR, make_cursor_key("0"))
TOPICS = {"impression": "ads.impression.tracked.v1", "click": "ads.click.tracked.v1"}


async def settled(product: Product, witness: Witness, *, quiet_seconds: float = 0.0) -> None:
    """Wait until everything that was accepted has gone through: spools drained, projections caught up.

    A client that gave up has no answer, but its event may still be on its way: after that, wait until nothing
    has come for some seconds.
    """
    newest, since = BEGINNING, time.monotonic()
    async with asyncio.timeout(SETTLED_SECONDS_MAX):
        while True:
            # Delivery is well without its servers, so they may still be on their way back.
            with contextlib.suppress(*POSTGRES_AWAY, *VALKEY_AWAY):
                if await asyncio.to_thread(product.is_well) and await _is_settled(product, witness):
                    async with open_valkey(product.redis_url) as valkey:
                        before, newest = newest, await _newest(valkey)
                    if newest != before:
                        since = time.monotonic()
                    if time.monotonic() - since >= quiet_seconds:
                        return
            await asyncio.sleep(POLL_SECONDS)


async def read_stored_events(
    product: Product, admin: httpx.Client, banner_ids: Collection[str]
) -> StoredEvents:
    """Read everything that the product says of some banners; the rollup is made for it."""
    statistics = _statistics(admin, banner_ids)
    first, last = _days()
    done = adloom("rollup", "--from", first, "--to", last, "--data-dir", str(product.data_dir))
    assert done.code == 0, done.err
    connection = await asyncpg.connect(product.database_url)
    try:
        rows = [_row(row) for row in await connection.fetch(ROWS, banner_ids)]
        live = _counts(await connection.fetch(LIVE.format(""), banner_ids))
        invalid = _counts(await connection.fetch(LIVE.format("invalid_"), banner_ids))
        rolled_up = _counts(await connection.fetch(ROLLED_UP, banner_ids))
    finally:
        await connection.close()
    return StoredEvents(
        rows=rows,
        counts={
            "the live counters": live,
            "the statistics": statistics,
            "the rollup": rolled_up,
            "the statistics from the rollup": _statistics(admin, banner_ids),
        },
        invalid_counts=invalid,
        topic=await _told(product, banner_ids),
    )


async def frequency_violations(product: Product) -> list[str]:
    """Compare how often each user has seen each banner: by the counts of frequency caps, and by the rows."""
    connection = await asyncpg.connect(product.database_url)
    try:
        rows = {
            (str(row["user_id"]), str(row["public_id"])): row["impressions"]
            for row in await connection.fetch(SEEN_BY_USERS)
        }
    finally:
        await connection.close()
    counted: dict[tuple[str, str], int] = {}
    async with open_valkey(product.redis_url) as valkey:
        async for found in valkey.scan_iter(f"adloom:frequency:0:*:{Window.LIFETIME}:all"):  # pyright: ignore[reportUnknownVariableType] - the driver's
            key = cast("bytes", found)
            fields = cast("dict[bytes, bytes]", await valkey.hgetall(key.decode()))
            user = key.decode().split(":")[3]
            counted |= {(user, banner.decode()): int(count) for banner, count in fields.items()}
    assert rows, "somebody has seen something"
    return [
        f"{pair} is {rows.get(pair, 0)} impressions, and {counted.get(pair, 0)} for its caps"
        for pair in sorted(rows.keys() | counted.keys())
        if rows.get(pair) != counted.get(pair)
    ]


async def dead_letters(product: Product) -> int:
    async with open_valkey(product.redis_url) as valkey:
        return await valkey.xlen(DEAD_STREAM)


async def _is_settled(product: Product, witness: Witness) -> bool:
    connection = await asyncpg.connect(product.database_url)
    try:
        cursors = [row["entry_id"] for row in await connection.fetch(CURSORS)]
        known = {EventKey(*row) for row in await connection.fetch(KNOWN)}
    finally:
        await connection.close()
    async with open_valkey(product.redis_url) as valkey:
        newest = await _newest(valkey)
        cursors += [await read_text(valkey, key) or BEGINNING for key in FOLLOWERS]
    return (
        all(parse_entry_id(cursor) >= parse_entry_id(newest) for cursor in cursors)
        and witness.accepted <= known
        and not any(_spooled(product.data_dir))
    )


async def _newest(valkey: Valkey) -> str:
    rows = cast("list[tuple[bytes, Any]]", await valkey.xrevrange(STREAM, count=1))
    return rows[0][0].decode() if rows else BEGINNING


def _spooled(data_dir: Path) -> Iterable[Path]:
    return (path for path in (data_dir / "spool").rglob("*") if path.is_file() and path.stat().st_size)


async def _told(product: Product, banner_ids: Collection[str]) -> list[EventKey]:
    async with open_valkey(product.redis_url) as valkey:
        return [
            EventKey(kind, event["correlationId"])
            for kind, topic in TOPICS.items()
            for _, fields in cast("list[tuple[bytes, dict[bytes, bytes]]]", await valkey.xrange(topic))
            if (event := msgspec.json.decode(fields[b"event"]))["adId"] in banner_ids
        ]


def _statistics(admin: httpx.Client, banner_ids: Iterable[str]) -> Counts:
    """Ask for every banner by itself, by day, and add up."""
    first, last = _days()
    counts: dict[tuple[date, str], int] = {}
    for banner_id in banner_ids:
        query = {"from": first, "to": last, "bannerId": banner_id, "groupBy": "day"}
        answer = admin.get("/admin/stats/banners", params=query)
        assert answer.status_code == 200, answer.text
        for item in answer.json()["items"]:
            for kind in KINDS:
                key = date.fromisoformat(item["date"]), kind
                counts[key] = counts.get(key, 0) + item[f"{kind}s"]
    return counts


def _days() -> tuple[str, str]:
    """Give the first and the last day of which there may be events."""
    today = datetime.now(UTC).date()
    return (today - timedelta(days=2)).isoformat(), (today + timedelta(days=1)).isoformat()


def _row(row: asyncpg.Record) -> Row:
    offer = None if row["request_id"] is None else (str(row["request_id"]), int(row["slot"]))
    return Row(EventKey(row["kind"], row["correlation_id"]), row["day"], offer, frozenset(row["marks"] or ()))


def _counts(rows: Iterable[asyncpg.Record]) -> Counts:
    return {(row["day"], kind): row[f"{kind}s"] for row in rows for kind in KINDS if row[f"{kind}s"]}
