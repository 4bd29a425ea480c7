"""When a report is due by e-mail: at an hour of a day in the time zone of its owner."""

# pure

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

ONE_DAY: Final = timedelta(days=1)
# A month, and a day on either side: where the clock is far from UTC, it is another day there.
LOOK_DAYS_MAX: Final = 33


class SendEvery(StrEnum):
    """How often a report is sent; monthly on the first day of a month."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


class SendSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """When a report is sent: `weekday` (1 is Monday) counts for weekly ones."""

    every: SendEvery
    weekday: int
    hour: int
    zone: ZoneInfo

    def is_on(self, day: date) -> bool:
        match self.every:
            case SendEvery.DAILY:
                return True
            case SendEvery.WEEKLY:
                return day.isoweekday() == self.weekday
            case SendEvery.MONTHLY:
                return day.day == 1

    def find_moment(self, day: date) -> datetime:
        """Return the moment of a day. An hour that the clock skips is the next one, one that it repeats is the first."""
        return datetime.combine(day, time(self.hour), self.zone).astimezone(UTC)


class Due(msgspec.Struct, frozen=True):
    """A day on which a report is due, in its owner's zone, and the moment. A day is sent once, whatever its hour."""

    on: date
    at: datetime


def find_latest_due(schedule: SendSchedule, now: datetime) -> Due:
    """Return what came due last, until now; earlier ones that were missed are not made up for."""
    day = now.astimezone(schedule.zone).date() + ONE_DAY
    for number in range(LOOK_DAYS_MAX + 1):
        on = day - number * ONE_DAY
        if schedule.is_on(on) and (at := schedule.find_moment(on)) <= now:
            return Due(on, at)
    raise AssertionError("every month has a first day")


def find_next_due(schedule: SendSchedule, now: datetime) -> Due:
    """Return what comes due next, after now."""
    day = now.astimezone(schedule.zone).date() - ONE_DAY
    for number in range(LOOK_DAYS_MAX + 1):
        on = day + number * ONE_DAY
        if schedule.is_on(on) and (at := schedule.find_moment(on)) > now:
            return Due(on, at)
    raise AssertionError("every month has a first day")
