"""Where the days of a time zone begin and end, by the rules of zones that Python knows."""

# pure

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


def list_midnights(first: date, last: date, zone: ZoneInfo) -> list[datetime]:
    """Return when each day begins, both days included; in UTC."""
    return [find_begin(first + timedelta(days=number), zone) for number in range((last - first).days + 1)]


def find_begin(day: date, zone: ZoneInfo) -> datetime:
    return _convert_to_moment(datetime.combine(day, time.min, zone))


def find_last_moment(day: date, zone: ZoneInfo) -> datetime:
    """Return the last moment of a day, and not the first of the next: the last possible day has none.

    Where clocks change at midnight, 23:59 comes twice, or not at all. It is the second, or the moment before midnight.
    """
    return _convert_to_moment(datetime.combine(day, time.max.replace(fold=1), zone))


def _convert_to_moment(local: datetime) -> datetime:
    """Return a local time in UTC; the first and the last possible day have hours that UTC has not."""
    try:
        return local.astimezone(UTC)
    except OverflowError:
        return local.replace(tzinfo=UTC)
