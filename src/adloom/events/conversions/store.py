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
    ConversionMark,
    ConversionName,
    NewConversions,
    Offer,
    Precedence,
    choose_counted,
    judge,
    select_new,
)
from adloom.events.log.event import Conversion, parse_entry_id
from adloom.events.ports import EntryOf
from adloom.runtime.postgres import Connection, Record

# A valid click comes at most a day after its offer, and a browser's clock is believed within a day.
CLICK_SPAN: Final = timedelta(days=2)

_KNOWN: Final = """
    SELECT campaign_id, name, request_id, slot, by_key FROM {schema}.conversions WHERE request_id = ANY ($1::uuid[])
"""
_INSERT: Final = """
    INSERT INTO {schema}.conversions (
        campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, received_at,
        value_micros, currency, by_key, marks, entry_ms, entry_seq
    )
    SELECT campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, received_at,
           value_micros, currency, by_key, string_to_array(marks, ' '), entry_ms, entry_seq
      FROM unnest(
          $1::integer[], $2::bytea[], $3::integer[], $4::integer[], $5::uuid[], $6::smallint[], $7::timestamptz[],
          $8::timestamptz[], $9::timestamptz[], $10::bigint[], $11::text[], $12::boolean[], $13::text[],
          $14::bigint[], $15::bigint[]
      ) AS made (
          campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, received_at,
          value_micros, currency, by_key, marks, entry_ms, entry_seq
      )
"""
_ROWS: Final = """
    SELECT campaign_id, name, banner_id, placement_id, request_id, slot, offered_at, occurred_at, value_micros,
           currency, country_code, device_type, marks, by_key, entry_ms, entry_seq
      FROM {schema}.conversions
"""
_WAITING: Final = f"{_ROWS} WHERE request_id = ANY ($1::uuid[]) AND NOT is_counted"
_COUNTED: Final = (
    f"{_ROWS} WHERE is_counted AND (campaign_id, name) IN"  # noqa: S608 - our own words
    " (SELECT * FROM unnest($1::integer[], $2::bytea[]))"
)
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
      FROM unnest(
               $1::integer[], $2::bytea[], $3::uuid[], $4::smallint[], $5::boolean[], $6::boolean[], $7::text[],
               $8::text[], $9::text[]
           ) AS judged (
               campaign_id, name, request_id, slot, by_key, is_counted, country_code, device_type, marks
           )
     WHERE (it.request_id, it.slot, it.campaign_id, it.name, it.by_key)
         = (judged.request_id, judged.slot, judged.campaign_id, judged.name, judged.by_key)
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
# No row is made, as that of a conversion that has counted is there: it would have fewer than none.
_SUBTRACT_COUNTS: Final = """
    UPDATE {schema}.event_counts AS it
       SET conversions = it.conversions - gone.conversions,
           conversion_micros = it.conversion_micros - gone.conversion_micros
      FROM (
          SELECT hour, banner_id, placement_id, campaign_id, country_code, device_type, count(*), sum(micros)
            FROM unnest(
                $1::timestamptz[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[], $7::bigint[]
            ) AS counted (hour, banner_id, placement_id, campaign_id, country_code, device_type, micros)
           GROUP BY 1, 2, 3, 4, 5, 6
      ) AS gone (
          hour, banner_id, placement_id, campaign_id, country_code, device_type, conversions, conversion_micros
      )
     WHERE (it.hour, it.banner_id, it.placement_id, it.campaign_id)
         = (gone.hour, gone.banner_id, gone.placement_id, gone.campaign_id)
       AND (it.country_code, it.device_type) IS NOT DISTINCT FROM (gone.country_code, gone.device_type)
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
_HAS_CONVERSIONS: Final = """
    ({campaign}.passes_click_id OR EXISTS (
        SELECT FROM events.conversions AS said
         WHERE said.campaign_id = {campaign}.id AND said.is_counted AND said.by_key
    ))
"""
_REPEATED: Final = Attribution(None, Micros(0), (ConversionMark.REPEATED,))


class _Counted(NamedTuple):
    """A conversion that counts from now on, or so far."""

    row: Record
    country_code: str | None
    device_type: str | None
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
        new = select_new(entries, keys, known=await self._find_known(connection, entries))
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
                    one.event.by_key,
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
        counted = await self._choose_counted(connection, waiting, verdicts)
        await self._update(connection, waiting, verdicts)
        if counted:
            await self._add_counts(connection, counted, _ADD_COUNTS)
        return len(counted)

    async def _choose_counted(
        self, connection: Connection, waiting: Sequence[Record], verdicts: list[Attribution]
    ) -> list[_Counted]:
        """Return those that count from now on, and take away those that they replace; the verdicts of others change."""
        may_count = [
            (_get_name(row), _get_precedence(row))
            for row, verdict in zip(waiting, verdicts, strict=True)
            if verdict.click is not None
        ]
        if not may_count:
            return []
        rows = await connection.fetch(
            _COUNTED.format(schema=self._schema), *zip(*(name for name, _ in may_count), strict=True)
        )
        so_far = {_get_name(row): row for row in rows}
        chosen = choose_counted(may_count, {name: _get_precedence(row) for name, row in so_far.items()})
        counted: list[_Counted] = []
        replaced: list[_Counted] = []
        for place, (row, verdict) in enumerate(zip(waiting, verdicts, strict=True)):
            if verdict.click is None:
                continue
            if (_get_name(row), _get_precedence(row)) not in chosen:
                verdicts[place] = _REPEATED
                continue
            counted.append(
                _Counted(row, verdict.click.country_code, verdict.click.device_type, verdict.value)
            )
            if (other := so_far.get(_get_name(row))) is not None:
                replaced.append(_read_counted(other))
        if replaced:
            # Before the others count: of a name only one row may.
            await self._update(connection, [one.row for one in replaced], [_REPEATED] * len(replaced))
            await self._add_counts(connection, replaced, _SUBTRACT_COUNTS)
        return counted

    async def _find_known(
        self, connection: Connection, entries: Sequence[EntryOf[Conversion]]
    ) -> set[ConversionKey]:
        """Return what the offers have."""
        rows = await connection.fetch(
            _KNOWN.format(schema=self._schema), list({entry.event.request_id for entry in entries})
        )
        return {(*_get_name(row), (row["request_id"].int, row["slot"]), row["by_key"]) for row in rows}

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
                row["request_id"],
                row["slot"],
                row["by_key"],
                verdict.click is not None,
                None if verdict.click is None else verdict.click.country_code,
                None if verdict.click is None else verdict.click.device_type,
                " ".join(verdict.marks) or None,
            )
            for row, verdict in zip(waiting, verdicts, strict=True)
        ]
        await connection.execute(_JUDGED.format(schema=self._schema), *zip(*judged, strict=True))

    async def _add_counts(self, connection: Connection, counted: Sequence[_Counted], statement: str) -> None:
        rows = [
            (
                one.row["occurred_at"].replace(minute=0, second=0, microsecond=0),
                one.row["banner_id"],
                one.row["placement_id"],
                one.row["campaign_id"],
                one.country_code,
                one.device_type,
                one.value,
            )
            for one in counted
        ]
        await connection.execute(statement.format(schema=self._schema), *zip(*rows, strict=True))
        days = Counter[date](one.row["occurred_at"].date() for one in counted)
        last = {day: max(one.row["entry_ms"] for one in counted) for day in days}
        await connection.execute(
            _CORRECT_DAYS.format(schema=self._schema), list(days), list(days.values()), list(last.values())
        )


def has_conversions(campaign: str) -> str:
    """Return the SQL of whether a campaign's target is per conversion: its advertiser asks for them, or reports them.

    Those that others report without being asked say nothing about it: for that, one click is enough.
    """
    return _HAS_CONVERSIONS.format(campaign=campaign)


def _get_name(row: Record) -> ConversionName:
    return row["campaign_id"], row["name"]


def _get_precedence(row: Record) -> Precedence:
    return not row["by_key"], row["entry_ms"], row["entry_seq"]


def _read_counted(row: Record) -> _Counted:
    """Read how a conversion counts so far; a value in another currency does not."""
    is_other = ConversionMark.OTHER_CURRENCY in (row["marks"] or ())
    value = Micros(0 if is_other else row["value_micros"])
    return _Counted(row, row["country_code"], row["device_type"], value)
