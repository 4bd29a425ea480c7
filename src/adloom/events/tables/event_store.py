"""SQL that writes rows of events, and the counts that belong to them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Final

from msgspec.structs import astuple

from adloom.events.log.event import HARMLESS_MARKS
from adloom.events.tables.apply_batch import (
    CLICKS,
    COUNTED_DEVICES,
    IMPRESSIONS,
    Count,
    CountKey,
    DayCount,
    EventRow,
)
from adloom.events.tables.copy_rows import COLUMNS, encode_rows
from adloom.runtime.postgres import Connection

_ADDRESSES: Final = {IMPRESSIONS: "referrer_url", CLICKS: "destination_url"}

_ADD_COUNTS: Final = """
    INSERT INTO {schema}.event_counts AS it (
        hour, banner_id, placement_id, campaign_id, country_code, device_type,
        impressions, clicks, invalid_impressions, invalid_clicks, unbound_impressions, unbound_clicks
    )
    SELECT * FROM unnest(
        $1::timestamptz[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[],
        $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[]
    )
    ON CONFLICT (hour, banner_id, placement_id, campaign_id, country_code, device_type) DO UPDATE
       SET impressions = it.impressions + EXCLUDED.impressions,
           clicks = it.clicks + EXCLUDED.clicks,
           invalid_impressions = it.invalid_impressions + EXCLUDED.invalid_impressions,
           invalid_clicks = it.invalid_clicks + EXCLUDED.invalid_clicks,
           unbound_impressions = it.unbound_impressions + EXCLUDED.unbound_impressions,
           unbound_clicks = it.unbound_clicks + EXCLUDED.unbound_clicks
"""
_MAKE_VALID: Final = """
    UPDATE {schema}.event_counts AS it
       SET invalid_clicks = it.invalid_clicks - now_valid.clicks
      FROM unnest(
          $1::timestamptz[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::bigint[]
      ) AS now_valid (hour, banner_id, placement_id, campaign_id, country_code, device_type, clicks)
     WHERE it.hour = now_valid.hour
       AND it.banner_id = now_valid.banner_id
       AND it.placement_id = now_valid.placement_id
       AND it.campaign_id IS NOT DISTINCT FROM now_valid.campaign_id
       AND it.country_code IS NOT DISTINCT FROM now_valid.country_code
       AND it.device_type IS NOT DISTINCT FROM now_valid.device_type
"""
_ADD_DAYS: Final = """
    INSERT INTO {schema}.event_days AS it (day, events, last_entry_ms)
    SELECT * FROM unnest($1::date[], $2::bigint[], $3::bigint[])
    ON CONFLICT (day) DO UPDATE
       SET events = it.events + EXCLUDED.events,
           last_entry_ms = greatest(it.last_entry_ms, EXCLUDED.last_entry_ms)
"""
_CORRECT_DAYS: Final = """
    UPDATE {schema}.event_days AS it SET corrections = it.corrections + corrected.rows
      FROM unnest($1::date[], $2::bigint[]) AS corrected (day, rows) WHERE it.day = corrected.day
"""


# Clicks that came before their impression.
_UNMARK_CLICKS: Final = """
    UPDATE {schema}.banner_clicks
       SET marks = nullif(array_remove(marks, 'click_without_impression'), '{{}}'),
           is_valid = array_remove(marks, 'click_without_impression') <@ $3::text[]
     WHERE correlation_id = ANY ($1::text[]) AND occurred_at >= $2
       AND marks @> '{{click_without_impression}}'
    RETURNING date_trunc('hour', occurred_at, 'UTC'), banner_id, placement_id, campaign_id, country_code,
              CASE WHEN device_type = ANY ($4::text[]) THEN device_type END, is_valid
"""


class EventRows:
    """Writes rows and counts into the tables of a schema; the caller owns the transaction."""

    def __init__(self, schema: str) -> None:
        self._schema = schema

    async def insert(self, connection: Connection, table: str, rows: Sequence[EventRow]) -> None:
        if not rows:
            return
        await connection.copy_to_table(
            table,
            source=encode_rows(rows),  # pyright: ignore[reportArgumentType] - its stubs leave out bytes in memory
            schema_name=self._schema,
            columns=[_ADDRESSES[table] if name == "address" else name for name in COLUMNS],
            format="binary",
        )

    async def add_counts(self, connection: Connection, counts: Mapping[CountKey, Count]) -> None:
        if not counts:
            return
        await connection.execute(
            _ADD_COUNTS.format(schema=self._schema),
            *zip(*counts, strict=True),
            *zip(*map(astuple, counts.values()), strict=True),
        )

    async def unmark_clicks(self, connection: Connection, clicks: Collection[str], since: datetime) -> None:
        """Unmark clicks whose impression has come, and correct the counts and days of those that become valid."""
        if not clicks:
            return
        unmarked = await connection.fetch(
            _UNMARK_CLICKS.format(schema=self._schema), clicks, since, HARMLESS_MARKS, COUNTED_DEVICES
        )
        now_valid = Counter(CountKey(*key) for *key, is_valid in unmarked if is_valid)
        if not now_valid:
            return
        await connection.execute(
            _MAKE_VALID.format(schema=self._schema), *zip(*now_valid, strict=True), list(now_valid.values())
        )
        corrected = Counter[date]()
        for key, count in now_valid.items():
            corrected[key.hour.date()] += count
        await connection.execute(
            _CORRECT_DAYS.format(schema=self._schema), list(corrected), list(corrected.values())
        )

    async def add_days(self, connection: Connection, days: Mapping[date, DayCount]) -> None:
        if not days:
            return
        await connection.execute(
            _ADD_DAYS.format(schema=self._schema),
            list(days),
            [count.events for count in days.values()],
            [count.last_entry_ms for count in days.values()],
        )
