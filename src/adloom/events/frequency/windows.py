"""The windows of frequency caps: the bucket of each that a time falls into, and when that bucket is over.

Windows are those of the calendar in UTC: an hour begins at its full hour, a week on Monday (ISO 8601).
"""

# pure

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Final

import msgspec

# Kept a little beyond the end, so that a process with a slow clock still finds the bucket.
KEPT_AFTER_END: Final = timedelta(minutes=5)
# A lifetime has no end. A user is forgotten so long after the month of the last impression; otherwise memory
# would grow without end.
LIFETIME_KEPT: Final = timedelta(days=400)

_DAYS_A_WEEK: Final = 7
_DECEMBER: Final = 12


class Window(StrEnum):
    """The period over which a cap counts."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    LIFETIME = "lifetime"


class WindowBucket(msgspec.Struct, frozen=True):
    """One hour, day, week or month, by its name, and the second in which its counts expire."""

    window: Window
    name: str
    expires_at: int

    @property
    def suffix(self) -> str:
        return f":{self.window.value}:{self.name}"


def list_buckets(moment: datetime) -> tuple[WindowBucket, ...]:
    """Return the bucket of each window for a time, in the order of the windows."""
    moment = moment.astimezone(UTC)
    hour = moment.replace(minute=0, second=0, microsecond=0)
    day = moment.date()
    month_end = _find_midnight(_find_next_month(day))
    year, week, weekday = day.isocalendar()
    return (
        _make_bucket(Window.HOUR, f"{day.isoformat()}T{hour.hour:02}", hour + timedelta(hours=1)),
        _make_bucket(Window.DAY, day.isoformat(), _find_midnight(day) + timedelta(days=1)),
        _make_bucket(
            Window.WEEK,
            f"{year}-W{week:02}",
            _find_midnight(day) + timedelta(days=_DAYS_A_WEEK + 1 - weekday),
        ),
        _make_bucket(Window.MONTH, f"{day.year}-{day.month:02}", month_end),
        _make_bucket(Window.LIFETIME, "all", month_end + LIFETIME_KEPT),
    )


def list_live_buckets(now: datetime) -> tuple[WindowBucket, ...]:
    """Return all buckets that may hold counts now: clocks differ, and events may be a little ahead."""
    moments = (now - timedelta(hours=1), now, now + timedelta(hours=1))
    return tuple({bucket.suffix: bucket for moment in moments for bucket in list_buckets(moment)}.values())


def find_live_start(now: datetime) -> datetime:
    """Return the time before which every bucket but the lifetime's is over."""
    day = (now.astimezone(UTC) - timedelta(hours=1)).date()
    return _find_midnight(min(day.replace(day=1), day - timedelta(days=day.weekday())))


def _make_bucket(window: Window, name: str, ends_at: datetime) -> WindowBucket:
    return WindowBucket(window, name, int((ends_at + KEPT_AFTER_END).timestamp()))


def _find_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _find_next_month(day: date) -> date:
    if day.month == _DECEMBER:
        return date(day.year + 1, 1, 1)
    return date(day.year, day.month + 1, 1)
