"""The money ledger in PostgreSQL: a row for every charge and release, and a total for every day.

Rows are only added, in the transaction that persists the state they follow from. If an offer is charged
already, that is a bug: the whole transaction fails.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias
from uuid import UUID

import msgspec
from msgspec.structs import astuple

from adloom.budgets.messages import DayTotal, MoneyKind, MoneyRow
from adloom.runtime.postgres import Connection

# In the order of a row's fields.
COLUMNS: Final = (
    *("kind", "campaign_id", "advertiser_id", "day", "budget_window", "amount_micros", "at", "lease"),
    *("second", "request_id", "slot", "confirmed_by", "banner_id", "placement_id"),
)
# Looked up once: looking up a member of an enumeration costs more than comparing it.
_CHARGE: Final = MoneyKind.CHARGE
# Totals are set, not added, so that repeating the statement changes nothing.
SET_TOTALS: Final = """
    INSERT INTO spend_days AS it (kind, id, day, spent_micros)
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::date[], $4::bigint[])
    ON CONFLICT (kind, id, day) DO UPDATE SET spent_micros = EXCLUDED.spent_micros
     WHERE it.spent_micros <> EXCLUDED.spent_micros
"""
# Charges by the hour in which they were made, by banner, placement and campaign, for statistics.
ADD_HOURS: Final = """
    INSERT INTO spend_hours AS it (hour, banner_id, placement_id, campaign_id, charges, spent_micros)
    SELECT said.hour, banner.id, placement.id, campaign.id, sum(said.charges), sum(said.spent_micros)
      FROM unnest($1::timestamptz[], $2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[], $6::bigint[])
           AS said (hour, banner_id, placement_id, campaign_id, charges, spent_micros)
      JOIN banners AS banner ON banner.public_id = said.banner_id
      JOIN placements_ever AS placement ON placement.public_id = said.placement_id
      JOIN campaigns AS campaign ON campaign.public_id = said.campaign_id
     GROUP BY 1, 2, 3, 4
     ORDER BY 1, 2, 3, 4
    ON CONFLICT (hour, banner_id, placement_id, campaign_id) DO UPDATE
       SET charges = it.charges + EXCLUDED.charges, spent_micros = it.spent_micros + EXCLUDED.spent_micros
"""


# By what charges are added up: hour, banner, placement, campaign; ids as numbers, which are told apart much faster.
_HourKey: TypeAlias = tuple[datetime, int, int, int]


class MoneyWriter:
    """Writes what campaigns and advertisers record."""

    def __init__(self) -> None:
        # Plain counters, read by a collector; after a crash they may include rows that were not written.
        self.rows: Counter[str] = Counter({kind.value: 0 for kind in MoneyKind})
        self.charged_micros = 0
        self.released_micros = 0

    async def write(self, connection: Connection, records: Sequence[msgspec.Struct]) -> None:
        """Write rows in the connection's transaction; of several totals of a day the last counts."""
        rows: list[MoneyRow] = []
        totals: dict[tuple[str, UUID, int], DayTotal] = {}
        for record in records:
            if isinstance(record, MoneyRow):
                rows.append(record)
            elif isinstance(record, DayTotal):
                totals[record.kind, record.id, record.day.toordinal()] = record
            else:
                raise TypeError(f"No table takes a {type(record).__name__}.")
        charges = [row for row in rows if row.kind is _CHARGE]
        if rows:
            await connection.copy_records_to_table(
                "money_entries", records=map(astuple, rows), columns=COLUMNS
            )
            await _add_hours(connection, charges)
        if totals:
            await _set_totals(connection, totals)
        self.rows[_CHARGE.value] += len(charges)
        self.rows.update(row.kind.value for row in rows if row.kind is not _CHARGE)
        self.charged_micros += sum(row.amount for row in charges)
        self.released_micros += sum(row.amount for row in rows if row.kind is MoneyKind.RELEASE)


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


async def _add_hours(connection: Connection, charges: Iterable[MoneyRow]) -> None:
    found: dict[_HourKey, tuple[MoneyRow, list[int]]] = {}
    hours: dict[datetime, datetime] = {}  # Rows that are written together were made at few moments.
    for row in charges:
        if row.banner_id is None or row.placement_id is None:
            continue
        if (hour := hours.get(row.at)) is None:
            hour = hours[row.at] = row.at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        key = hour, row.banner_id.int, row.placement_id.int, row.campaign_id.int
        if (sums := found.get(key)) is None:
            found[key] = row, [1, row.amount]
        else:
            sums[1][0] += 1
            sums[1][1] += row.amount
    if found:
        await connection.execute(
            ADD_HOURS,
            [hour for hour, _, _, _ in found],
            [row.banner_id for row, _ in found.values()],
            [row.placement_id for row, _ in found.values()],
            [row.campaign_id for row, _ in found.values()],
            [count for _, (count, _) in found.values()],
            [spent for _, (_, spent) in found.values()],
        )
