"""The spans of the first page, and their points."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from adloom.core.money import Micros

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
SHARE_PLACES: Final = 6


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


def begins(span: OverviewSpan, *, now: datetime) -> list[datetime]:
    """Return the start of each point of a span, in UTC; the present hour or day is the last."""
    midnight = datetime.combine(now.date(), time(0), UTC)
    match span:
        case OverviewSpan.TODAY:
            return [midnight + HOUR * number for number in range(now.hour + 1)]
        case OverviewSpan.LAST_24_HOURS:
            last = midnight + HOUR * now.hour
            return [last - HOUR * back for back in range(23, -1, -1)]
        case OverviewSpan.LAST_7_DAYS:
            return [midnight - DAY * back for back in range(6, -1, -1)]


def key_of(key: date) -> datetime:
    """Return the start of the hour or day of a row."""
    if isinstance(key, datetime):
        return key
    return datetime.combine(key, time(0), UTC)


def sum_points(points: Sequence[OverviewPoint]) -> OverviewPoint:
    return OverviewPoint(
        begins_at=points[0].begins_at,
        impressions=sum(one.impressions for one in points),
        clicks=sum(one.clicks for one in points),
        spend=Micros(sum(one.spend for one in points)),
        revenue=_micros(one.revenue for one in points),
        requests=_sum(one.requests for one in points),
        filled=_sum(one.filled for one in points),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _micros(values: Iterable[Micros | None]) -> Micros | None:
    total = _sum(values)
    return None if total is None else Micros(total)
