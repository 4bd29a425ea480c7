"""How traffic spreads over a day: 24 numbers for weekdays and 24 for weekends, learned from whole days.

A shape says how many times the average an hour has. Only proportions matter: all ones are a flat day.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

import msgspec

from adloom.schedule.schedule import find_zone

HOURS: Final = 24
SATURDAY: Final = 5
DAY_WEIGHT: Final = 0.2  # Of a day that has just ended; the first ones weigh more.
REQUESTS_OF_START: Final = 10.0  # An hour: the shape that learning starts from counts like a day of so many.
NOT_COUNTED: Final = -1
CURVES_REMEMBERED_MAX: Final = 1_024
FLAT: Final = (1.0,) * HOURS
DAY_SECONDS: Final = 86_400

_ONE_HOUR: Final = timedelta(hours=1)

HourlyShape = tuple[float, ...]


class TrafficShape(msgspec.Struct, frozen=True):
    """The relative traffic of the hours of weekdays and of weekends, in a zone."""

    weekday: HourlyShape = FLAT
    weekend: HourlyShape = FLAT
    timezone: str = "UTC"
    day_seconds: int = (
        DAY_SECONDS  # Fewer where days are simulated; those follow each other from the epoch on.
    )

    def get_hours(self, day: date) -> HourlyShape:
        return self.weekend if day.weekday() >= SATURDAY else self.weekday


class DayCurve(msgspec.Struct, frozen=True):
    """The share of a day's traffic that has come by each of some moments, and the volume in between."""

    moments: tuple[float, ...]  # Seconds since the epoch; the first is the day's start, the last its end.
    shares: tuple[float, ...]
    volumes: tuple[float, ...]  # Times the day's average, from each moment to the next.

    def compute_share(self, now: datetime) -> float:
        """Return the share of the day's traffic by a moment, linear within an hour."""
        number, part = self._find(now)
        before, after = self.shares[number], self.shares[number + 1]
        return min(before + part * (after - before), after)  # Rounded, the sum may lie above.

    def get_volume(self, now: datetime) -> float:
        """Return how many times the day's average the traffic of a moment is."""
        return self.volumes[self._find(now)[0]]

    def _find(self, now: datetime) -> tuple[int, float]:
        moments = self.moments
        second = min(max(now.timestamp(), moments[0]), moments[-1])
        number = min(int((second - moments[0]) // 3600), len(moments) - 2)
        # Pieces are whole hours of the shape's zone, except for the first and the last.
        while moments[number] > second:
            number -= 1
        while number < len(moments) - 2 and moments[number + 1] <= second:
            number += 1
        return number, (second - moments[number]) / (moments[number + 1] - moments[number])


class RepeatedCurve(msgspec.Struct, frozen=True):
    """The same of a day in which simulated days follow each other: each of them has an equal part of the traffic."""

    shape: TrafficShape
    starts: float
    ends: float

    @property
    def has_traffic(self) -> bool:
        return self._count_days(self.ends) > self._count_days(self.starts)

    def compute_share(self, now: datetime) -> float:
        second = min(max(now.timestamp(), self.starts), self.ends)
        before = self._count_days(self.starts)
        return (self._count_days(second) - before) / (self._count_days(self.ends) - before)

    def get_volume(self, now: datetime) -> float:
        hours, hour = self._find_hour(min(max(now.timestamp(), self.starts), self.ends))
        return hours[int(hour)] * HOURS / sum(hours)

    def _count_days(self, second: float) -> float:
        """Count simulated days since the epoch, the last of them by how much of its traffic has come."""
        hours, hour = self._find_hour(second)
        whole = int(hour)
        come = sum(hours[:whole]) + hours[whole] * (hour - whole)
        return second // self.shape.day_seconds + min(1.0, come / sum(hours))

    def _find_hour(self, second: float) -> tuple[HourlyShape, float]:
        """Return the hours of the simulated day of a moment, and how many of them have passed."""
        number, passed = divmod(second, self.shape.day_seconds)
        hours = self.shape.get_hours(datetime.fromtimestamp(number * self.shape.day_seconds, UTC).date())
        hour = min(passed * HOURS / self.shape.day_seconds, HOURS - 1e-9)
        return (hours if sum(hours) > 0 else FLAT), hour


@lru_cache(CURVES_REMEMBERED_MAX)
def build_day_curve(shape: TrafficShape, starts_at: datetime, ends_at: datetime) -> DayCurve | RepeatedCurve:
    """Put a shape over a day: the day may begin at another hour than the shape's zone does."""
    if shape.day_seconds < DAY_SECONDS:
        curve = RepeatedCurve(shape, starts_at.timestamp(), ends_at.timestamp())
        return curve if curve.has_traffic else build_day_curve(TrafficShape(), starts_at, ends_at)
    zone = find_zone(shape.timezone) or UTC
    moments, volumes = [starts_at.timestamp()], list[float]()
    at = starts_at.astimezone(UTC)
    while at < ends_at:
        then = min(_find_next_hour(at, zone), ends_at)
        local = at.astimezone(zone)
        volumes.append(shape.get_hours(local.date())[local.hour])
        moments.append(then.timestamp())
        at = then
    parts = [volume * (moments[number + 1] - moments[number]) for number, volume in enumerate(volumes)]
    total = sum(parts)
    if total <= 0:  # A shape whose only traffic lies in hours that this day does not have.
        return build_day_curve(TrafficShape(), starts_at, ends_at)
    shares = [0.0]
    for part in parts:
        shares.append(min(shares[-1] + part / total, 1.0))
    shares[-1] = 1.0
    average = total / (moments[-1] - moments[0])
    return DayCurve(tuple(moments), tuple(shares), tuple(volume / average for volume in volumes))


class LearnedShape(msgspec.Struct, frozen=True, kw_only=True):
    """A shape, how many days it is learned from, and the requests of today's hours."""

    weekday: HourlyShape = FLAT
    weekend: HourlyShape = FLAT
    # Whole weekdays, and days of weekends; what a version that did not count them has learned is worth a day.
    days: tuple[int, int] = (1, 1)
    day: int | None = None  # When it began, in seconds since the epoch.
    is_weekend: bool = False
    counts: tuple[int, ...] = ()  # Of the hours of `day` that have ended.
    seeds: tuple[HourlyShape | None, HourlyShape | None] = (None, None)  # What people said, for a start.

    def build_shape(self, timezone: str, day_seconds: int = DAY_SECONDS) -> TrafficShape:
        return TrafficShape(self.weekday, self.weekend, timezone, day_seconds)


def start_learning(weekday: HourlyShape | None, weekend: HourlyShape | None) -> LearnedShape:
    """Start from what people say of a day, which is worth one, or from a flat one."""
    seeds = weekday, weekend
    days = int(weekday is not None), int(weekend is not None)
    return LearnedShape(weekday=_normalise(weekday), weekend=_normalise(weekend), days=days, seeds=seeds)


def learn_hour(
    learned: LearnedShape, *, day: int, is_weekend: bool, hour: int, requests: int
) -> LearnedShape:
    """Count an hour that has ended; hours come in order, and the shape learns a day with the first hour of the next.

    An hour alone says nothing of the shape: how busy its day is, is known when it is over. An hour that was counted
    before changes nothing. In simulated days an hour is a 24th of a day.
    """
    if learned.day is not None and (day, hour) < (learned.day, len(learned.counts)):
        return learned
    if learned.day is not None and day > learned.day:
        learned = _end_day(learned)
    if learned.day != day:
        learned = msgspec.structs.replace(learned, day=day, is_weekend=is_weekend, counts=())
    gap = (NOT_COUNTED,) * (hour - len(learned.counts))
    return msgspec.structs.replace(learned, counts=(*learned.counts, *gap, requests))


def blend_day(hours: HourlyShape, counts: Sequence[int], *, weight: float = DAY_WEIGHT) -> HourlyShape:
    """Blend a whole day into a shape."""
    average = sum(counts) / len(counts)
    return tuple(
        weight * count / average + (1 - weight) * hour for hour, count in zip(hours, counts, strict=True)
    )


def _end_day(learned: LearnedShape) -> LearnedShape:
    if len(learned.counts) < HOURS or NOT_COUNTED in learned.counts or not sum(learned.counts):
        return learned  # Not seen whole.
    weekdays, weekends = learned.days
    known = weekends if learned.is_weekend else weekdays
    # The first days are averaged, so that a weekend is not flat for a month.
    weight = max(DAY_WEIGHT, 1 / (known + 1 + REQUESTS_OF_START * HOURS / sum(learned.counts)))
    if learned.is_weekend:
        hours = blend_day(learned.weekend, learned.counts, weight=weight)
        return msgspec.structs.replace(learned, weekend=hours, days=(weekdays, weekends + 1))
    hours = blend_day(learned.weekday, learned.counts, weight=weight)
    return msgspec.structs.replace(learned, weekday=hours, days=(weekdays + 1, weekends))


def _normalise(hours: HourlyShape | None) -> HourlyShape:
    if hours is None:
        return FLAT
    average = sum(hours) / HOURS
    return tuple(hour / average for hour in hours)


def _find_next_hour(moment: datetime, zone: tzinfo) -> datetime:
    """Return when the next hour begins in a zone; zones are off by quarters of an hour."""
    local = moment.astimezone(zone)
    past = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
    return moment + _ONE_HOUR - past
