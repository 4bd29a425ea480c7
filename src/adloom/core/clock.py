"""Where time comes from: everything else takes `now`, or a `Clock` to ask."""

import re
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Final, Protocol

_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY_LENGTH: Final = len("2026-11-15")


def parse_day(text: str) -> date:
    """Parse `YYYY-MM-DD`, or raise ValueError; `date.fromisoformat` also takes `20261119` and `2026-W47-4`."""
    if not _DAY.fullmatch(text):
        raise ValueError(f"{text!r} is not a day like 2026-11-15")
    return date.fromisoformat(text)


def parse_moment(text: str) -> datetime:
    """Parse a day, as its begin in UTC, or a day and a time; a time without a zone stays without one."""
    day = parse_day(text[:_DAY_LENGTH])
    return datetime.combine(day, time(), UTC) if text == str(day) else datetime.fromisoformat(text)


class Clock(Protocol):
    """Returns the current moment, always as aware UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's own clock."""

    now = staticmethod(partial(datetime.now, UTC))  # No call of ours: every request reads it.


class ManualClock:
    """A clock that moves only by `advance`, for tests and simulations."""

    def __init__(self, start: datetime) -> None:
        assert start.tzinfo is not None, "all times are aware"
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, step: timedelta) -> None:
        assert step >= timedelta(), "time never runs back"
        self._now += step
