"""The day of a site's traffic: in its zone, or a simulated one that lasts minutes; it always has 24 hours."""

# pure

from datetime import UTC, datetime
from typing import Final

import msgspec

from adloom.schedule.budget_day import find_budget_day
from adloom.schedule.traffic_shape import HOURS, SATURDAY

DAY_SECONDS: Final = 86_400


class SiteDay(msgspec.Struct, frozen=True):
    """A day of traffic, in seconds since the epoch."""

    starts: int
    ends: int
    is_weekend: bool

    @property
    def seconds(self) -> int:
        return self.ends - self.starts

    def find_hour(self, second: float) -> int:
        """Return the hour of a moment: a day of 23 or 25 hours has 24 that are shorter or longer."""
        return min(HOURS - 1, max(0, int((second - self.starts) * HOURS // self.seconds)))


def find_site_day(now: datetime, *, timezone: str, day_seconds: int) -> SiteDay:
    """Find the day of a moment; simulated days follow each other from the epoch on."""
    if day_seconds >= DAY_SECONDS:
        day = find_budget_day(now, timezone)
        starts, ends = int(day.starts_at.timestamp()), int(day.ends_at.timestamp())
        return SiteDay(starts, ends, day.day.weekday() >= SATURDAY)
    starts = int(now.timestamp()) // day_seconds * day_seconds
    is_weekend = datetime.fromtimestamp(starts, UTC).weekday() >= SATURDAY
    return SiteDay(starts, starts + day_seconds, is_weekend)
