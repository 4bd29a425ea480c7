"""Where time comes from: everything else takes `now`, or a `Clock` to ask."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol


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
