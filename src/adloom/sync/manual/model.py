"""Which days a manual sync may ask for, and the errors of manual syncs."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Final

import msgspec

from adloom.core.errors import wrong_field
from adloom.sync.scheduler import choose_days

UTC_NAME: Final = "UTC"
# Somewhere it is tomorrow already.
AHEAD_MAX: Final = timedelta(hours=14)
# Each month has its own tables; this bounds how many a client can create.
BACK_MAX: Final = timedelta(days=5 * 366)
DAYS_MAX: Final = 400


class RequestedDays(msgspec.Struct, frozen=True, kw_only=True):
    """The days that a request names: one, a range, or none."""

    day: date | None = None
    first: date | None = None
    last: date | None = None

    @property
    def is_range(self) -> bool:
        return self.first is not None or self.last is not None

    def resolve(self, timezones: Iterable[str], *, now: datetime) -> tuple[date, date]:
        """Return the first and the last day; without any, today in the zones of the accounts."""
        if self.is_range:
            return self._resolve_range(now)
        if self.day is None:
            return choose_days(now, list(timezones) or [UTC_NAME], 0)
        _check_reach("date", self.day, now)
        return self.day, self.day

    def _resolve_range(self, now: datetime) -> tuple[date, date]:
        if self.day is not None:
            raise wrong_field("date", "cannot be given together with dateFrom and dateTo")
        if self.first is None:
            raise wrong_field("dateFrom", "is required where dateTo is given")
        if self.last is None:
            raise wrong_field("dateTo", "is required where dateFrom is given")
        if self.last < self.first:
            raise wrong_field("dateTo", "must not be before dateFrom")
        if (self.last - self.first).days >= DAYS_MAX:
            raise wrong_field("dateFrom", f"must be less than {DAYS_MAX} days before dateTo")
        _check_reach("dateFrom", self.first, now)
        _check_reach("dateTo", self.last, now)
        return self.first, self.last


def _check_reach(field: str, day: date, now: datetime) -> None:
    if day > (now + AHEAD_MAX).date():
        raise wrong_field(field, "must not be in the future")
    if day < (now - BACK_MAX).date():
        raise wrong_field(field, "must not be more than five years ago")
