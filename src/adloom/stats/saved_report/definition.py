"""What a saved report asks for, as the worker reads it too: without the shapes of the API."""

from enum import StrEnum
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from adloom.stats.model import Grouping
from adloom.stats.saved_report.period import Days, ReportPeriod

UNKNOWN: Final = "unknown"
UTC_NAME: Final = "UTC"


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
