"""The hour and the day of the week where a placement is."""

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

ZONES_MAX: Final = 1_024  # More than there are; beyond it all are worked out anew.
MINUTE: Final = timedelta(minutes=1)

LocalTime = tuple[int, int]


class LocalTimes:
    """Works out the local time of a zone once a minute, however many requests ask."""

    def __init__(self) -> None:
        self._minutes: dict[ZoneInfo, tuple[datetime, datetime, LocalTime]] = {}

    def get(self, zone: ZoneInfo, now: datetime) -> LocalTime:
        """Give the hour, 0 to 23, and the day of the week, 0 for Sunday."""
        minute = self._minutes.get(zone)
        if minute is not None and minute[0] <= now < minute[1]:
            return minute[2]
        return self._compute(zone, now)

    def _compute(self, zone: ZoneInfo, now: datetime) -> LocalTime:
        if len(self._minutes) >= ZONES_MAX:
            self._minutes.clear()
        begin = now.replace(second=0, microsecond=0)
        local = now.astimezone(zone)
        found = (local.hour, local.isoweekday() % 7)
        self._minutes[zone] = (begin, begin + MINUTE, found)
        return found
