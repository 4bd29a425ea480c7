"""SQL of conversions: rows, and the counts of those that count. All in the transaction of the batch."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from adloom.core.money import Micros
from adloom.events.conversions.attribute import (
    Attribution,
    AttributionRules,
    CatalogKeys,
    ClickOfOffer,
    ConversionKey,
    NewConversions,
    Offer,
    judge,
    select_new,
)
from adloom.events.log.event import Conversion, parse_entry_id
from adloom.events.ports import EntryOf
from adloom.runtime.postgres import Connection, Record

# A valid click comes at most a day after its offer, and a browser's clock is believed within a day.
CLICK_SPAN: Final = timedelta(days=2)

_KNOWN: Final = """
    SELECT campaign_id, name, NULL AS request_id, NULL AS slot FROM {schema}.conversions
     WHERE (campaign_id, name) IN (SELECT * FROM unnest($1::integer[], $2::bytea[]))
    UNION ALL
    SELECT NULL, NULL, request_id, slot FROM {schema}.conversions WHERE request_id = ANY ($3::uuid[])
"""
_INSERT: Final = """
    INSERT INTO {schema}.conversions (
        campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, received_at,
        value_micros, currency, marks, entry_ms, entry_seq
    )
    SELECT campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, received_at,
           value_micros, currency, string_to_array(marks, ' '), entry_ms, entry_seq
      FROM unnest(
          $1::integer[], $2::bytea[], $3::integer[], $4::integer[], $5::uuid[], $6::smallint[], $7::timestamptz[],
          $8::timestamptz[], $9::timestamptz[], $10::bigint[], $11::text[], $12::text[], $13::bigint[], $14::bigint[]
      ) AS made (
          campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, received_at,
          value_micros, currency, marks, entry_ms, entry_seq
      )
"""
_WAITING: Final = """
    SELECT campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, value_micros,
           currency, entry_ms
      FROM {schema}.conversions WHERE request_id = ANY ($1::uuid[]) AND NOT is_counted
"""
# The condition about second events is that of the index, word for word.
_CLICKS: Final = """
    SELECT request_id, slot, occurred_at, is_valid, country_code,
           CASE WHEN device_type = ANY ($4::text[]) THEN device_type END AS device_type
      FROM {schema}.banner_clicks
     WHERE request_id = ANY ($1::uuid[]) AND occurred_at BETWEEN $2 AND $3
       AND (marks && '{{second_impression,second_click}}') IS NOT TRUE
"""
_JUDGED: Final = """
    UPDATE {schema}.conversions AS it
       SET is_counted = judged.is_counted, country_code = judged.country_code, device_type = judged.device_type,
           marks = nullif(
               array_cat(CASE WHEN it.marks @> '{{occurred_at_replaced}}' THEN '{{occurred_at_replaced}}'::text[] END,
                         string_to_array(judged.marks, ' ')),
               '{{}}')
      FROM unnest($1::integer[], $2::bytea[], $3::boolean[], $4::text[], $5::text[], $6::text[])
           AS judged (campaign_id, name, is_counted, country_code, device_type, marks)
     WHERE it.campaign_id = judged.campaign_id AND it.name = judged.name
"""
_ADD_COUNTS: Final = """
    INSERT INTO {schema}.event_counts AS it (
        hour, banner_id, placement_id, campaign_id, country_code, device_type, conversions, conversion_micros
    )
    SELECT hour, banner_id, placement_id, campaign_id, country_code, device_type, count(*), sum(micros)
      FROM unnest(
          $1::timestamptz[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::bigint[]
      ) AS counted (hour, banner_id, placement_id, campaign_id, country_code, device_type, micros)
     GROUP BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (hour, banner_id, placement_id, campaign_id, country_code, device_type) DO UPDATE
       SET conversions = it.conversions + EXCLUDED.conversions,
           conversion_micros = it.conversion_micros + EXCLUDED.conversion_micros
"""
# The rows of a day are its impressions and clicks; a conversion corrects its statistics.
_CORRECT_DAYS: Final = """
    INSERT INTO {schema}.event_days AS it (day, events, corrections, last_entry_ms)
    SELECT day, 0, corrections, last_entry_ms
      FROM unnest($1::date[], $2::bigint[], $3::bigint[]) AS corrected (day, corrections, last_entry_ms)
    ON CONFLICT (day) DO UPDATE
       SET corrections = it.corrections + EXCLUDED.corrections,
           last_entry_ms = greatest(it.last_entry_ms, EXCLUDED.last_entry_ms)
"""


class _Counted(NamedTuple):
    """A conversion that counts from now on."""

    row: Record
    click: ClickOfOffer
    value: Micros


class ConversionRows:
    """The conversions of a schema; the caller owns the transaction."""

    def __init__(self, schema: str, rules: AttributionRules, *, counted_devices: Collection[str]) -> None:
        self._schema = schema
        self._rules = rules
        self._counted_devices = sorted(counted_devices)

    async def insert_new(
        self, connection: Connection, entries: Sequence[EntryOf[Conversion]], keys: CatalogKeys
    ) -> NewConversions:
        """Insert those that are new; nothing of them counts yet."""
        known, kept_of_offers = await self._find_known(connection, entries, keys)
        new = select_new(entries, keys, known=known, kept_of_offers=kept_of_offers)
        if new.kept:
            rows = [
                (
                    one.campaign_id,
                    one.event.name,
                    one.banner_id,
                    one.placement_id,
                    one.event.request_id,
                    one.event.slot,
                    datetime.fromtimestamp(one.event.offered_at, UTC),
                    one.event.occurred_at,
                    one.event.received_at,
                    one.event.value,
                    one.event.currency,
                    " ".join(one.event.marks) or None,
                    *parse_entry_id(one.entry_id),
                )
                for one in new.kept
            ]
            await connection.execute(_INSERT.format(schema=self._schema), *zip(*rows, strict=True))
        return new

    async def settle(self, connection: Connection, requests: Collection[UUID]) -> int:
        """Judge the conversions of some requests that do not count yet; return how many count now."""
        if not requests:
            return 0
        waiting = await connection.fetch(_WAITING.format(schema=self._schema), list(requests))
        if not waiting:
            return 0
        clicks = await self._find_clicks(connection, waiting)
        verdicts = [
            judge(
                row["occurred_at"],
                row["value_micros"],
                row["currency"],
                clicks.get((row["request_id"].int, row["slot"]), ()),
                self._rules,
            )
            for row in waiting
        ]
        await self._update(connection, waiting, verdicts)
        counted = [
            _Counted(row, verdict.click, verdict.value)
            for row, verdict in zip(waiting, verdicts, strict=True)
            if verdict.click is not None
        ]
        if counted:
            await self._add_counts(connection, counted)
        return len(counted)

    async def _find_known(
        self, connection: Connection, entries: Sequence[EntryOf[Conversion]], keys: CatalogKeys
    ) -> tuple[list[ConversionKey], Counter[Offer]]:
        """Return which of the names are there, and how many conversions the offers have."""
        events = [entry.event for entry in entries]
        named = [
            (campaign_id, event.name)
            for event in events
            if (campaign_id := keys.campaigns.get(event.campaign_id.int)) is not None
        ]
        rows = await connection.fetch(
            _KNOWN.format(schema=self._schema),
            [campaign_id for campaign_id, _ in named],
            [name for _, name in named],
            list({event.request_id for event in events}),
        )
        known = [(row["campaign_id"], row["name"]) for row in rows if row["name"] is not None]
        offers = Counter((row["request_id"].int, row["slot"]) for row in rows if row["name"] is None)
        return known, offers

    async def _find_clicks(
        self, connection: Connection, waiting: Sequence[Record]
    ) -> Mapping[Offer, Sequence[ClickOfOffer]]:
        offered = [row["offered_at"] for row in waiting]
        rows = await connection.fetch(
            _CLICKS.format(schema=self._schema),
            list({row["request_id"] for row in waiting}),
            min(offered) - CLICK_SPAN,
            max(offered) + CLICK_SPAN,
            self._counted_devices,
        )
        clicks: dict[Offer, list[ClickOfOffer]] = {}
        for row in rows:
            clicks.setdefault((row["request_id"].int, row["slot"]), []).append(
                ClickOfOffer(
                    occurred_at=row["occurred_at"],
                    is_valid=row["is_valid"],
                    country_code=row["country_code"],
                    device_type=row["device_type"],
                )
            )
        return clicks

    async def _update(
        self, connection: Connection, waiting: Sequence[Record], verdicts: Sequence[Attribution]
    ) -> None:
        judged = [
            (
                row["campaign_id"],
                row["name"],
                verdict.click is not None,
                None if verdict.click is None else verdict.click.country_code,
                None if verdict.click is None else verdict.click.device_type,
                " ".join(verdict.marks) or None,
            )
            for row, verdict in zip(waiting, verdicts, strict=True)
        ]
        await connection.execute(_JUDGED.format(schema=self._schema), *zip(*judged, strict=True))

    async def _add_counts(self, connection: Connection, counted: Sequence[_Counted]) -> None:
        rows = [
            (
                one.row["occurred_at"].replace(minute=0, second=0, microsecond=0),
                one.row["banner_id"],
                one.row["placement_id"],
                one.row["campaign_id"],
                one.click.country_code,
                one.click.device_type,
                one.value,
            )
            for one in counted
        ]
        await connection.execute(_ADD_COUNTS.format(schema=self._schema), *zip(*rows, strict=True))
        days = Counter[date](one.row["occurred_at"].date() for one in counted)
        last = {day: max(one.row["entry_ms"] for one in counted) for day in days}
        await connection.execute(
            _CORRECT_DAYS.format(schema=self._schema), list(days), list(days.values()), list(last.values())
        )
