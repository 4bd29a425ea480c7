"""The day of a budget: from midnight to midnight in its account's zone.

A day has 23 or 25 hours when clocks change. If midnight itself is skipped, the day starts when the clock
goes on. Days have no gaps, and each moment belongs to one day: if a clock is put back over midnight, the
repeated time still belongs to the new day.
"""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final

import msgspec

from adloom.schedule.schedule import find_zone

ONE_DAY: Final = timedelta(days=1)
ONE_MICROSECOND: Final = timedelta(microseconds=1)
DAYS_REMEMBERED_MAX: Final = 1_024


class BudgetDay(msgspec.Struct, frozen=True):
    """A day in a zone, and the moments between which it lies."""

    day: date
    starts_at: datetime
    ends_at: datetime

    def compute_elapsed_micros(self, now: datetime) -> int:
        """Return how much of the day has passed, in microseconds, within its bounds."""
        passed = min(max(now, self.starts_at), self.ends_at) - self.starts_at
        return passed // ONE_MICROSECOND

    @property
    def length_micros(self) -> int:
        return (self.ends_at - self.starts_at) // ONE_MICROSECOND


def find_budget_day(now: datetime, timezone: str) -> BudgetDay:
    """Tell which day a moment belongs to."""
    found = build_budget_day(now.astimezone(_find_zone(timezone)).date(), timezone)
    # The wall shows yesterday's date again where the clock was put back after midnight.
    while now >= found.ends_at:
        found = build_budget_day(found.day + ONE_DAY, timezone)
    return found


@lru_cache(DAYS_REMEMBERED_MAX)
def build_budget_day(day: date, timezone: str) -> BudgetDay:
    return BudgetDay(day, _find_midnight(day, timezone), _find_midnight(day + ONE_DAY, timezone))


def _find_midnight(day: date, timezone: str) -> datetime:
    return datetime.combine(day, time(), tzinfo=_find_zone(timezone)).astimezone(UTC)


def _find_zone(timezone: str) -> tzinfo:
    """Fall back to UTC: names are checked when they are written, but a zone may be removed since."""
    return find_zone(timezone) or UTC
