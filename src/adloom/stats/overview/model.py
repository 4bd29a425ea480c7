"""The spans of the first page, and their points."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.money import Micros
from adloom.stats.model import UTC_ZONE

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
SHARE_PLACES: Final = 6
HOURS_OF_A_DAY_MAX: Final = 25  # On the day when clocks go back.


class OverviewSpan(StrEnum):
    """How far back to look."""

    TODAY = "today"
    LAST_24_HOURS = "24h"
    LAST_7_DAYS = "7d"

    @property
    def step(self) -> timedelta:
        return DAY if self is OverviewSpan.LAST_7_DAYS else HOUR


class OverviewPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of an hour or a day; None is unknown, or not visible to the account."""

    begins_at: datetime
    impressions: int = 0
    clicks: int = 0
    spend: Micros = Micros(0)
    revenue: Micros | None = None
    requests: int | None = None
    filled: int | None = None

    @property
    def ctr(self) -> float:
        return round(self.clicks / self.impressions, SHARE_PLACES) if self.impressions else 0.0

    @property
    def fill(self) -> float | None:
        return (
            round(self.filled / self.requests, SHARE_PLACES)
            if self.requests and self.filled is not None
            else None
        )


def begins(span: OverviewSpan, *, now: datetime, zone: ZoneInfo = UTC_ZONE) -> list[datetime]:
    """Return the start of each point of a span, in UTC; the present hour or day is the last.

    Days are those of the zone. Counts are kept by hour of UTC, and an hour counts for the day in which it begins: the
    first minutes of a day in a zone of half hours have only an hour of the day before, which stands for them.
    """
    hour = now.replace(minute=0, second=0, microsecond=0).astimezone(UTC)
    today = now.astimezone(zone).date()
    match span:
        case OverviewSpan.TODAY:
            hours = [hour - HOUR * back for back in range(HOURS_OF_A_DAY_MAX, -1, -1)]
            return [at for at in hours if at.astimezone(zone).date() == today] or [hour]
        case OverviewSpan.LAST_24_HOURS:
            return [hour - HOUR * back for back in range(23, -1, -1)]
        case OverviewSpan.LAST_7_DAYS:
            return [_find_midnight(today - DAY * back, zone) for back in range(6, -1, -1)]


def find_begin(key: date, span: OverviewSpan, *, zone: ZoneInfo) -> datetime:
    """Return the start of the point in which an hour lies, or of a day of the zone."""
    if not isinstance(key, datetime):
        return _find_midnight(key, zone)
    return _find_midnight(key.astimezone(zone).date(), zone) if span.step == DAY else key


def _find_midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(0), zone).astimezone(UTC)


def sum_points(points: Sequence[OverviewPoint]) -> OverviewPoint:
    return OverviewPoint(
        begins_at=points[0].begins_at,
        impressions=sum(one.impressions for one in points),
        clicks=sum(one.clicks for one in points),
        spend=Micros(sum(one.spend for one in points)),
        revenue=_sum_micros(one.revenue for one in points),
        requests=_sum(one.requests for one in points),
        filled=_sum(one.filled for one in points),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _sum_micros(values: Iterable[Micros | None]) -> Micros | None:
    total = _sum(values)
    return None if total is None else Micros(total)
