"""What a saved report asks for, and its figures, read with the rights that its reader has now."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.caller import Caller
from adloom.core.errors import BadRequestError
from adloom.runtime.postgres import Pool
from adloom.stats.model import UNKNOWN, Counts, Grouping, StatsQuestion, StatsRow, sum_rows
from adloom.stats.saved_report.period import Days, ReportPeriod, find_days, find_days_before
from adloom.stats.store import read_key_names, read_statistics

UTC_NAME: Final = "UTC"
ROWS_MAX: Final = 100_000


class Figure(StrEnum):
    """A column of a report."""

    IMPRESSIONS = "impressions"
    CLICKS = "clicks"
    CTR = "ctr"
    SPEND = "spend"
    OVER_BUDGET_CLICKS = "overBudgetClicks"
    CONVERSIONS = "conversions"
    CONVERSION_VALUE = "conversionValue"
    INVALID = "invalid"
    UNBOUND = "unbound"


class ReportDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """The question of a report; without columns it has all of them. A country or device may be `unknown`."""

    name: str
    group_by: tuple[Grouping, ...]
    period: ReportPeriod
    is_compared: bool
    campaign_id: UUID | None
    placement_id: UUID | None
    banner_id: UUID | None
    country: str | None
    device: str | None
    columns: tuple[Figure, ...]
    time_zone: str | None


def find_report_zone(definition: ReportDefinition, owner_zone: str | None) -> ZoneInfo:
    """Return the zone of a report's days: its own, else that of its owner, else UTC."""
    return ZoneInfo(definition.time_zone or owner_zone or UTC_NAME)


def name_file(days: Days) -> str:
    first, last = days
    return f"adloom-report-{first}.csv" if first == last else f"adloom-report-{first}-to-{last}.csv"


class TooManyRowsError(BadRequestError):
    """The report groups by so much that it cannot be read at once."""

    code = "SAVED_REPORT_TOO_LONG"


class ReportReader(msgspec.Struct, frozen=True, kw_only=True):
    """Who reads a report: what they may see, whose days they mean, and whether events without a token count."""

    caller: Caller
    zone: ZoneInfo
    counts_unbound: bool


class ReportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a period, the names of what they mention, and what the period before had in all."""

    days: Days
    zone: ZoneInfo
    rows: list[StatsRow]
    totals: Counts
    names: dict[UUID, str]
    days_before: Days | None = None
    totals_before: Counts | None = None


async def run_report(
    pool: Pool, definition: ReportDefinition, reader: ReportReader, *, at: datetime, now: datetime
) -> ReportResult:
    """Read the figures of the period that a moment is in; raises TooManyRowsError."""
    days = find_days(definition.period, today=at.astimezone(reader.zone).date())
    rows = await _read_rows(pool, definition, reader, days, now)
    async with pool.acquire() as connection:
        names = await read_key_names(connection, rows)
    result = ReportResult(days=days, zone=reader.zone, rows=rows, totals=sum_rows(rows), names=names)
    if not definition.is_compared:
        return result
    before = find_days_before(days)
    earlier = await _read_rows(pool, definition, reader, before, now)
    return msgspec.structs.replace(result, days_before=before, totals_before=sum_rows(earlier))


async def _read_rows(
    pool: Pool, definition: ReportDefinition, reader: ReportReader, days: Days, now: datetime
) -> list[StatsRow]:
    question = StatsQuestion(
        first=days[0],
        last=days[1],
        groupings=definition.group_by,
        banner_id=definition.banner_id,
        placement_id=definition.placement_id,
        campaign_id=definition.campaign_id,
        country="" if definition.country == UNKNOWN else definition.country,
        device="" if definition.device == UNKNOWN else definition.device,
        advertiser_id=reader.caller.advertiser_id,
        publisher_id=reader.caller.publisher_id,
        zone=reader.zone,
        counts_unbound=reader.counts_unbound and reader.caller.sees_all,
    )
    rows = await read_statistics(pool, question, today=now.astimezone(UTC).date(), rows_max=ROWS_MAX + 1)
    if len(rows) > ROWS_MAX:
        raise TooManyRowsError(f"The report has more than {ROWS_MAX:,} rows. Group it by less, or filter it.")
    return rows
