"""Where the statistics of a day are read: rolled up where complete, else the live counts."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Final, NamedTuple

ONE_DAY: Final = timedelta(days=1)


class SourceSpan(NamedTuple):
    """Consecutive days, both included."""

    first: date
    last: date


class Sources(NamedTuple):
    """The days of a range, split by source; each day is in one of them."""

    rolled_up: tuple[SourceSpan, ...] = ()
    live: tuple[SourceSpan, ...] = ()


def sources(whole: SourceSpan, rolled_up_days: Iterable[date]) -> Sources:
    """Split a range into rolled-up days and live days, in order."""
    rolled_up: list[SourceSpan] = []
    live: list[SourceSpan] = []
    begins = whole.first
    for day in rolled_up_days:
        assert begins <= day <= whole.last, "in order, each once, and within the range"
        if begins < day:
            live.append(SourceSpan(begins, day - ONE_DAY))
        if rolled_up and rolled_up[-1].last == day - ONE_DAY:
            rolled_up[-1] = SourceSpan(rolled_up[-1].first, day)
        else:
            rolled_up.append(SourceSpan(day, day))
        begins = day + ONE_DAY
    if begins <= whole.last:
        live.append(SourceSpan(begins, whole.last))
    return Sources(tuple(rolled_up), tuple(live))
