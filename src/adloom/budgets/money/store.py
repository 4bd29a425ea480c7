"""The money ledger in PostgreSQL: a row for every charge and release, and a total for every day.

Rows are only added, in the transaction that persists the state they follow from. If an offer is charged
already, that is a bug: the whole transaction fails.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeAlias
from uuid import UUID

import msgspec

from adloom.budgets.bid_model import BidRow
from adloom.budgets.bids.store import write_decisions
from adloom.budgets.messages import DayRefund, DayTotal, MoneyKind, MoneyRow, WaitingOffer
from adloom.budgets.money.copy_rows import COLUMNS, RowGroup, encode_rows
from adloom.core.clock import Clock
from adloom.core.money import MICROS_PER_PAISA
from adloom.events.cursor_store import BY_INDEX
from adloom.events.log.event import OCCURRED_AGE_MAX
from adloom.runtime.actors.actor import StateRejectedError
from adloom.runtime.postgres import Connection

# Looked up once: looking up a member of an enumeration costs more than comparing it.
_CHARGE: Final = MoneyKind.CHARGE
_OVER_BUDGET: Final = MoneyKind.OVER_BUDGET
_COUNTED: Final = (_CHARGE, _OVER_BUDGET)  # In statistics.
_KNOWN: Final = frozenset({MoneyRow, DayTotal, DayRefund, WaitingOffer, BidRow})
IS_CHARGED: Final = """
    SELECT EXISTS (
        SELECT FROM money_entries AS it
          JOIN unnest($1::uuid[], $2::integer[]) AS waiting (request_id, slot) USING (request_id, slot)
         WHERE it.request_id IS NOT NULL
    )
"""
# Totals are set, not added, so that repeating the statement changes nothing.
SET_TOTALS: Final = """
    INSERT INTO spend_days AS it (kind, id, day, spent_micros)
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::date[], $4::bigint[])
    ON CONFLICT (kind, id, day) DO UPDATE SET spent_micros = EXCLUDED.spent_micros
     WHERE it.spent_micros <> EXCLUDED.spent_micros
"""
# Charges by the hour in which they were made, by banner, placement and campaign, for statistics.
ADD_HOURS: Final = """
    INSERT INTO spend_hours AS it
        (hour, banner_id, placement_id, campaign_id, charges, spent_micros, over_budget_clicks)
    SELECT said.hour, banner.id, placement.id, campaign.id, sum(said.charges), sum(said.spent_micros), sum(said.free)
      FROM unnest($1::timestamptz[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[], $6::bigint[], $7::bigint[])
           AS said (hour, banner_id, placement_id, campaign_id, charges, spent_micros, free)
      JOIN banners AS banner ON banner.public_id = said.banner_id
      JOIN placements_ever AS placement ON placement.public_id = said.placement_id
      JOIN campaigns AS campaign ON campaign.public_id = said.campaign_id
     GROUP BY 1, 2, 3, 4
     ORDER BY 1, 2, 3, 4
    ON CONFLICT (hour, banner_id, placement_id, campaign_id) DO UPDATE
       SET charges = it.charges + EXCLUDED.charges, spent_micros = it.spent_micros + EXCLUDED.spent_micros,
           over_budget_clicks = it.over_budget_clicks + EXCLUDED.over_budget_clicks
"""
# A day whose charges are written when it is over, or nearly, may be rolled up already: it is rolled up again.
MARK_LATE: Final = "UPDATE events.event_days SET corrections = corrections + 1 WHERE day = ANY ($1::date[])"
# How long a transaction may take from here to its commit, with what clocks of workers differ by.
COMMITTED_WITHIN: Final = timedelta(minutes=1)
# Of an offer's clicks, the one that was to be charged. The conditions are those of the index, word for word.
MARK_OVER_BUDGET: Final = """
    UPDATE events.banner_clicks AS it SET marks = array_append(coalesce(marks, '{}'), 'over_budget')
      FROM unnest($1::uuid[], $2::integer[]) AS free (request_id, slot)
     WHERE it.request_id = free.request_id AND it.slot = free.slot AND it.occurred_at >= $3 AND it.is_valid
       AND it.request_id IS NOT NULL AND (marks && '{second_impression,second_click}') IS NOT TRUE
"""


# Given back where it was charged, so that statistics agree with the bill. A day that is just being rolled up for the
# first time is rolled up again; the rows of others are written by no other job, or PostgreSQL refuses the later one.
TAKE_FROM_HOURS: Final = """
    WITH given AS (
        SELECT said.hour, banner.id AS banner_id, placement.id AS placement_id, campaign.id AS campaign_id,
               sum(said.micros)::bigint AS micros
          FROM unnest($1::timestamptz[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[])
               AS said (hour, banner_id, placement_id, campaign_id, micros)
          JOIN banners AS banner ON banner.public_id = said.banner_id
          JOIN placements_ever AS placement ON placement.public_id = said.placement_id
          JOIN campaigns AS campaign ON campaign.public_id = said.campaign_id
         GROUP BY 1, 2, 3, 4
    ), taken AS (
        UPDATE spend_hours AS it SET spent_micros = it.spent_micros - given.micros FROM given
         WHERE (it.hour, it.banner_id, it.placement_id, it.campaign_id)
             = (given.hour, given.banner_id, given.placement_id, given.campaign_id)
    ), days AS (
        SELECT (hour AT TIME ZONE 'UTC')::date AS day, banner_id, placement_id, campaign_id, sum(micros)::bigint AS micros
          FROM given GROUP BY 1, 2, 3, 4
    ), corrected AS (
        UPDATE events.event_days AS it SET corrections = it.corrections + 1
         WHERE it.day IN (SELECT day FROM days) AND NOT EXISTS (SELECT FROM rollup_days AS known WHERE known.day = it.day)
    )
    UPDATE banner_stats AS it
       SET spend_micros = it.spend_micros - days.micros, spend_paisa = div(it.spend_micros - days.micros, $6)
      FROM days
     WHERE it.stat_date = days.day AND it.banner_id = days.banner_id AND it.placement_id = days.placement_id
       AND it.campaign_id = days.campaign_id
"""
TAKE_FROM_DAYS: Final = """
    UPDATE spend_days AS it SET spent_micros = it.spent_micros - given.micros
      FROM unnest($1::text[], $2::uuid[], $3::date[], $4::bigint[]) AS given (kind, id, day, micros)
     WHERE (it.kind, it.id, it.day) = (given.kind, given.id, given.day)
"""


# By what charges are added up: hour, banner, placement, campaign; ids as numbers, which are told apart much faster.
_HourKey: TypeAlias = tuple[datetime, int, int, int]


class MoneyWriter:
    """Writes what campaigns and advertisers record."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Plain counters, read by a collector; after a crash they may include rows that were not written.
        self.rows: Counter[str] = Counter({kind.value: 0 for kind in MoneyKind})
        self.charged_micros = 0
        self.released_micros = 0

    async def write(self, connection: Connection, records: Sequence[msgspec.Struct]) -> None:
        """Write rows in the connection's transaction; of several totals of a day the last counts."""
        by_class: defaultdict[type, list[Any]] = defaultdict(list)
        for record in records:
            by_class[type(record)].append(record)
        for unknown in by_class.keys() - _KNOWN:
            raise TypeError(f"No table takes a {unknown.__name__}.")
        rows: list[MoneyRow] = by_class[MoneyRow]
        totals: dict[tuple[str, UUID, int], DayTotal] = {
            (one.kind, one.id, one.day.toordinal()): one for one in by_class[DayTotal]
        }
        if waiting := by_class[WaitingOffer]:
            await _refuse_charged(connection, waiting, records)
        if rows:
            await self._write_rows(connection, rows)
        if totals:
            await _set_totals(connection, totals)
        if given_back := by_class[DayRefund]:
            await _take_from_days(connection, given_back)
        if decisions := by_class[BidRow]:
            await write_decisions(connection, decisions)

    async def _write_rows(self, connection: Connection, rows: Sequence[MoneyRow]) -> None:
        encoded, groups = encode_rows(rows)
        await connection.copy_to_table(
            "money_entries",
            source=encoded,  # pyright: ignore[reportArgumentType] - its stubs leave out bytes in memory
            columns=COLUMNS,
            format="binary",
        )
        await _add_hours(connection, groups, now=self._clock.now())
        kinds = {group.row.kind for group in groups}
        if _OVER_BUDGET in kinds:
            await _mark_over_budget(connection, [row for row in rows if row.kind is _OVER_BUDGET])
        if MoneyKind.REFUND in kinds:
            await _take_from_hours(connection, [row for row in rows if row.kind is MoneyKind.REFUND])
        for group in groups:
            self.rows[group.row.kind.value] += group.count
            self.charged_micros += group.amount if group.row.kind is _CHARGE else 0
            self.released_micros += group.amount if group.row.kind is MoneyKind.RELEASE else 0


async def _refuse_charged(
    connection: Connection, waiting: Sequence[WaitingOffer], records: Sequence[msgspec.Struct]
) -> None:
    """Refuse a state in which an offer waits that is charged: it could never be stored again.

    Before the rows of the same transaction are written: an offer may wait and be charged in one, in this order.
    """
    requests, slots = [one.request_id for one in waiting], [one.slot for one in waiting]
    if _waits_after_row(records) or await connection.fetchval(IS_CHARGED, requests, slots):
        raise StateRejectedError("A click that waits is charged already.")


def _waits_after_row(records: Sequence[msgspec.Struct]) -> bool:
    """Whether an offer has a row, and waits after that: its confirm came twice."""
    charged: set[tuple[UUID | None, int | None]] = set()
    for one in records:
        if isinstance(one, MoneyRow):
            charged.add((one.request_id, one.slot))
        elif isinstance(one, WaitingOffer) and (one.request_id, one.slot) in charged:
            return True
    return False


async def _set_totals(connection: Connection, totals: dict[tuple[str, UUID, int], DayTotal]) -> None:
    # Always in the same order, so that two writers of the same days cannot deadlock.
    ordered = [totals[key] for key in sorted(totals)]
    await connection.execute(
        SET_TOTALS,
        [total.kind for total in ordered],
        [total.id for total in ordered],
        [total.day for total in ordered],
        [total.spent for total in ordered],
    )


async def _take_from_days(connection: Connection, given_back: Sequence[DayRefund]) -> None:
    sums: Counter[tuple[str, UUID, date]] = Counter()
    for one in given_back:
        sums[one.kind, one.id, one.day] += one.amount
    ordered = sorted(sums)
    await connection.execute(
        TAKE_FROM_DAYS,
        [kind for kind, _, _ in ordered],
        [its_id for _, its_id, _ in ordered],
        [day for _, _, day in ordered],
        [sums[key] for key in ordered],
    )


async def _take_from_hours(connection: Connection, refunds: Sequence[MoneyRow]) -> None:
    await connection.execute(
        TAKE_FROM_HOURS,
        [datetime.fromtimestamp(row.second, UTC) for row in refunds],
        [row.banner_id for row in refunds],
        [row.placement_id for row in refunds],
        [row.campaign_id for row in refunds],
        [row.amount for row in refunds],
        MICROS_PER_PAISA,
    )


async def _mark_over_budget(connection: Connection, free: Sequence[MoneyRow]) -> None:
    # A browser's clock may be wrong by as much as we accept.
    since = datetime.fromtimestamp(min(row.second for row in free), UTC) - OCCURRED_AGE_MAX
    await connection.execute(BY_INDEX)
    await connection.execute(
        MARK_OVER_BUDGET, [row.request_id for row in free], [row.slot for row in free], since
    )


async def _add_hours(connection: Connection, groups: Sequence[RowGroup], *, now: datetime) -> None:
    """Add charges, and clicks that are free."""
    found: dict[_HourKey, tuple[MoneyRow, list[int]]] = {}
    for group in groups:
        row = group.row
        if row.kind not in _COUNTED or row.banner_id is None or row.placement_id is None:
            continue
        hour = row.at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        key = hour, row.banner_id.int, row.placement_id.int, row.campaign_id.int
        _, sums = found.setdefault(key, (row, [0, 0, 0]))
        if row.kind is _CHARGE:
            sums[0] += group.count
            sums[1] += group.amount
        else:
            sums[2] += group.count
    if found:
        await connection.execute(
            ADD_HOURS,
            [hour for hour, _, _, _ in found],
            [row.banner_id for row, _ in found.values()],
            [row.placement_id for row, _ in found.values()],
            [row.campaign_id for row, _ in found.values()],
            [count for _, (count, _, _) in found.values()],
            [spent for _, (_, spent, _) in found.values()],
            [free for _, (_, _, free) in found.values()],
        )
        # After the hours and before clicks, as the event tables lock them.
        today = (now + COMMITTED_WITHIN).astimezone(UTC).date()
        if late := sorted({hour.date() for hour, _, _, _ in found if hour.date() < today}):
            await connection.execute(MARK_LATE, late)
