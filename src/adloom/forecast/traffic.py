"""The visitors of a simulated market: when they come, in the shape of a week and drawn from chance, and what they were shown."""

# pure

import math
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Final, NamedTuple

from adloom.core.random import Chance
from adloom.events.frequency.windows import Window, list_buckets
from adloom.forecast.market import HOURS_A_WEEK, TrafficCell
from adloom.schedule.traffic_shape import HOURS, SATURDAY, TrafficShape

HOUR_SECONDS: Final = 3600
KNUTH_MEAN_MAX: Final = 30.0  # Above, a Poisson number is drawn as a rounded normal one.
_FIRST_HOUR: Final = datetime(1970, 1, 5, tzinfo=UTC)  # A Monday.
_ONE_HOUR: Final = timedelta(hours=1)
Shown = tuple[Window, str, int]  # Window, banner id, times.


class Arrival(NamedTuple):
    """A request: its second, whose it is, and the chances that decide what the visitor does."""

    second: int
    cell: int
    see: float
    click: float
    visitor: float
    rival: float


class WeeklyTraffic:
    """The requests of a market; each hour is drawn anew, so a week is never the same twice."""

    def __init__(self, cells: Sequence[TrafficCell]) -> None:
        self._sums = [list(accumulate(cell.hours[hour] for cell in cells)) for hour in range(HOURS_A_WEEK)]

    def draw_hour(self, starts_at: datetime, chance: Chance) -> list[Arrival]:
        """Draw the requests of an hour in order of time; every request takes the same number of chances."""
        sums = self._sums[(starts_at - _FIRST_HOUR) // _ONE_HOUR % HOURS_A_WEEK]
        total = sums[-1] if sums else 0.0
        draw = chance.random
        first = int(starts_at.timestamp())
        last = len(sums) - 1
        return sorted(
            [
                Arrival(
                    first + int(draw() * HOUR_SECONDS),
                    bisect_right(sums, draw() * total, 0, last),
                    draw(),
                    draw(),
                    draw(),
                    draw(),
                )
                for _ in range(draw_poisson(total, chance))
            ]
        )


def draw_poisson(mean: float, chance: Chance) -> int:
    """Draw how often something happens that happens so often on average."""
    if mean <= 0:
        return 0
    if mean > KNUTH_MEAN_MAX:
        # Box-Muller; 1 - u is never 0.
        normal = math.sqrt(-2 * math.log(1 - chance.random())) * math.cos(2 * math.pi * chance.random())
        return max(0, round(mean + math.sqrt(mean) * normal))
    bound, product, count = math.exp(-mean), chance.random(), 0
    while product > bound:
        product *= chance.random()
        count += 1
    return count


def learn_shape(cells: Sequence[TrafficCell]) -> TrafficShape | None:
    """Return the shape of the traffic, as budgets would have learned it; None if there is no traffic."""
    by_hour = [sum(cell.hours[hour] for cell in cells) for hour in range(HOURS_A_WEEK)]
    if not sum(by_hour):
        return None
    days = [by_hour[start : start + HOURS] for start in range(0, HOURS_A_WEEK, HOURS)]
    return TrafficShape(
        _compute_average(days[:SATURDAY], by_hour), _compute_average(days[SATURDAY:], by_hour), "UTC"
    )


def _compute_average(days: Sequence[Sequence[float]], by_hour: Sequence[float]) -> tuple[float, ...]:
    """Return the hours of an average day as parts of an average hour; flat where nobody comes."""
    if not any(map(sum, days)):
        return (1.0,) * HOURS
    usual = sum(by_hour) / HOURS_A_WEEK
    return tuple(sum(hours) / len(days) / usual for hours in zip(*days, strict=True))


class SeenCounts:
    """How often each visitor was shown each capped banner."""

    def __init__(self, visitors: int) -> None:
        self._visitors = visitors
        self._counts: dict[tuple[int, Window, str], dict[str, int]] = {}
        self._hour: datetime | None = None
        self._buckets: list[tuple[Window, str]] = []

    def find_visitor(self, chance: float) -> int | None:
        """Return who asks; None if nobody comes twice."""
        return int(chance * self._visitors) if self._visitors else None

    def record(self, visitor: int, banner_id: str, now: datetime) -> None:
        for window, bucket in self._list_buckets(now):
            counts = self._counts.setdefault((visitor, window, bucket), {})
            counts[banner_id] = counts.get(banner_id, 0) + 1

    def read(self, visitor: int, now: datetime) -> Sequence[Shown]:
        return [
            (window, banner_id, times)
            for window, bucket in self._list_buckets(now)
            for banner_id, times in self._counts.get((visitor, window, bucket), {}).items()
        ]

    def _list_buckets(self, now: datetime) -> Sequence[tuple[Window, str]]:
        hour = now.replace(minute=0, second=0, microsecond=0)
        if hour != self._hour:
            self._hour = hour
            self._buckets = [(one.window, one.name) for one in list_buckets(now)]
        return self._buckets
