"""Where the statistics of a day are read: rolled up, where that has all of its events, else the live counts."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Final, NamedTuple

ONE_DAY: Final = timedelta(days=1)


class Span(NamedTuple):
    """Days on end, both included."""

    first: date
    last: date


class Sources(NamedTuple):
    """The days of a range, parted by where they are read; each is in one of them."""

    rolled_up: tuple[Span, ...] = ()
    live: tuple[Span, ...] = ()


def sources(whole: Span, rolled_up_days: Iterable[date]) -> Sources:
    """Part a range by the days of it that are rolled up, in their order; all others are live."""
    rolled_up: list[Span] = []
    live: list[Span] = []
    begins = whole.first
    for day in rolled_up_days:
        assert begins <= day <= whole.last, "in order, each once, and within the range"
        if begins < day:
            live.append(Span(begins, day - ONE_DAY))
        if rolled_up and rolled_up[-1].last == day - ONE_DAY:
            rolled_up[-1] = Span(rolled_up[-1].first, day)
        else:
            rolled_up.append(Span(day, day))
        begins = day + ONE_DAY
    if begins <= whole.last:
        live.append(Span(begins, whole.last))
    return Sources(tuple(rolled_up), tuple(live))
