"""On which days, and in which hours of them, a rule recurs.

We ask whether the rule names one day, so the work is bounded by the longest period, a year. A library that
walks a rule from its start takes seconds for one that never matches (30 February); decision 20 has the
figures. Only a COUNT is counted from the start, up to `COUNT_REACH`. Tests compare it with dateutil.
"""

import calendar
import itertools
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, assert_never
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.errors import ValidationFailedError
from adloom.schedule.recurrence_rule import Frequency, NthWeekday, Recurrence, parse_recurrence
from adloom.schedule.schedule import find_zone

ALL_HOURS: Final = (1 << 24) - 1
ONE_DAY: Final = timedelta(days=1)
RULES_KEPT: Final = 10_000
DAYS_KEPT: Final = 4  # Yesterday, for windows over midnight, today, and some around them.
# A COUNT that is not used up this long after the start ends with it.
COUNT_REACH: Final = timedelta(days=3 * 366)
# A Monday: the anchor if neither a DTSTART nor a date of the banner gives one.
FIRST_MONDAY: Final = datetime(2001, 1, 1, tzinfo=UTC)


class RecurringDays:
    """A rule with its start, and perhaps its end, in local time of one zone."""

    def __init__(self, rule: Recurrence, *, anchor: datetime, until: datetime | None) -> None:
        self.has_hours = rule.hours is not None
        self._rule = _with_days_of(anchor, rule)
        self._anchor = anchor.replace(minute=0, second=0) if self.has_hours else anchor
        self._until = until
        self._counted = (
            None if rule.count is None else self._collect_bits_by_day(self._list_first(rule.count))
        )
        self._bits: dict[date, int] = {}

    def find_hours(self, day: date) -> int:
        """Return the hours of that day as bits; a rule without BYHOUR names whole days."""
        bits = self._bits.get(day)
        if bits is None:
            if len(self._bits) >= DAYS_KEPT:
                self._bits.clear()
            bits = self._bits[day] = self._find_hours(day)
        return bits

    def _find_hours(self, day: date) -> int:
        if self._counted is not None:
            return self._counted.get(day, 0)
        if not _is_in_rhythm(self._rule, self._anchor.date(), day):
            return 0
        if self._rule.positions is None:
            occurrences = self._list_occurrences(day, day)
        else:
            occurrences = (one for one in self._list_chosen(day) if one.date() == day)
        if self._rule.starts_at is not None:
            occurrences = (one for one in occurrences if one >= self._anchor)
        return self._collect_bits_by_day(occurrences).get(day, 0)

    def _list_first(self, count: int) -> Iterator[datetime]:
        """Return the first occurrences from the start on."""
        day, _ = _find_period(self._rule, self._anchor.date())
        end = day + COUNT_REACH
        found = itertools.chain.from_iterable(
            self._list_chosen(one) for one in _list_days_in_rhythm(self._rule, day, end)
        )
        return itertools.islice((one for one in found if one >= self._anchor), count)

    def _list_chosen(self, day: date) -> Iterator[datetime]:
        """Return the occurrences of the period that a day lies in."""
        found = self._list_occurrences(*_find_period(self._rule, day))
        if self._rule.positions is None:
            return found
        all_of_it = list(found)
        length = len(all_of_it)
        return (
            one
            for position, one in enumerate(all_of_it, 1)
            if _is_among(position, length, self._rule.positions)
        )

    def _list_occurrences(self, first_day: date, last_day: date) -> Iterator[datetime]:
        times = (
            [self._anchor.time()] if self._rule.hours is None else [time(hour) for hour in self._rule.hours]
        )
        for number in range((last_day - first_day).days + 1):
            day = first_day + timedelta(days=number)
            if _is_named(self._rule, day):
                yield from (datetime.combine(day, one) for one in times)

    def _collect_bits_by_day(self, occurrences: Iterator[datetime]) -> dict[date, int]:
        bits: dict[date, int] = {}
        for one in occurrences:
            if self._until is None or one <= self._until:
                day = one.date()
                bits[day] = bits.get(day, 0) | (1 << one.hour if self.has_hours else ALL_HOURS)
        return bits


@lru_cache(maxsize=RULES_KEPT)
def build_recurring_days(text: str, timezone: str, anchor: datetime | None) -> RecurringDays | None:
    """Return None if the text or the zone cannot be read.

    Both were checked when they were written. If one is unreadable anyway, one banner stays closed,
    and no index fails.
    """
    zone = find_zone(timezone)
    if zone is None:
        return None
    try:
        rule = parse_recurrence(text)
    except ValidationFailedError:
        return None
    start = _convert_to_local(anchor or FIRST_MONDAY, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    return RecurringDays(
        rule,
        anchor=start if rule.starts_at is None else _convert_to_local(rule.starts_at, zone),
        until=None if rule.until is None else _convert_to_local(rule.until, zone),
    )


def _convert_to_local(moment: datetime, zone: ZoneInfo) -> datetime:
    """Convert to local time; a moment without a zone is local already."""
    return moment if moment.tzinfo is None else moment.astimezone(zone).replace(tzinfo=None)


def _with_days_of(anchor: datetime, rule: Recurrence) -> Recurrence:
    """Fill in what a rule without days takes from its start: FREQ=WEEKLY means its weekday."""
    if rule.weekdays or rule.month_days or rule.year_days or rule.week_numbers:
        return rule
    match rule.frequency:
        case Frequency.DAILY:
            return rule
        case Frequency.WEEKLY:
            return msgspec.structs.replace(rule, weekdays=(NthWeekday(anchor.weekday(), None),))
        case Frequency.MONTHLY:
            return msgspec.structs.replace(rule, month_days=(anchor.day,))
        case Frequency.YEARLY:
            return msgspec.structs.replace(
                rule, months=rule.months or (anchor.month,), month_days=(anchor.day,)
            )
        case _:
            assert_never(rule.frequency)


def _find_period(rule: Recurrence, day: date) -> tuple[date, date]:
    """Return the first and last day of the period that a day lies in."""
    match rule.frequency:
        case Frequency.DAILY:
            return day, day
        case Frequency.WEEKLY:
            first = _find_week_start(rule, day)
            return first, first + timedelta(days=6)
        case Frequency.MONTHLY:
            return day.replace(day=1), day.replace(day=_count_days_in_month(day))
        case Frequency.YEARLY:
            return day.replace(month=1, day=1), day.replace(month=12, day=31)
        case _:
            assert_never(rule.frequency)


def _list_days_in_rhythm(rule: Recurrence, first_day: date, end: date) -> Iterator[date]:
    """Yield the first day of each period that the INTERVAL meets."""
    day = first_day
    while day < end:
        if _is_in_rhythm(rule, first_day, day):
            yield day
        day = _find_period(rule, day)[1] + ONE_DAY


def _is_in_rhythm(rule: Recurrence, anchor: date, day: date) -> bool:
    """Return whether the INTERVAL, counted from the anchor's period, meets a day's period."""
    if rule.interval == 1:
        return True
    match rule.frequency:
        case Frequency.DAILY:
            periods = (day - anchor).days
        case Frequency.WEEKLY:
            periods = (_find_week_start(rule, day) - _find_week_start(rule, anchor)).days // 7
        case Frequency.MONTHLY:
            periods = (day.year - anchor.year) * 12 + day.month - anchor.month
        case Frequency.YEARLY:
            periods = day.year - anchor.year
        case _:
            assert_never(rule.frequency)
    return periods % rule.interval == 0


def _is_named(rule: Recurrence, day: date) -> bool:
    """Return whether every BY… part that is given names the day."""
    return (
        (rule.months is None or day.month in rule.months)
        and (rule.month_days is None or _is_among(day.day, _count_days_in_month(day), rule.month_days))
        and (
            rule.year_days is None
            or _is_among(_find_day_of_year(day), _count_days_in_year(day), rule.year_days)
        )
        and (rule.week_numbers is None or _is_among(*_find_week_number(rule, day), rule.week_numbers))
        and (rule.weekdays is None or any(_is_weekday(rule, day, one) for one in rule.weekdays))
    )


def _is_weekday(rule: Recurrence, day: date, wanted: NthWeekday) -> bool:
    if day.weekday() != wanted.weekday:
        return False
    if wanted.nth is None:
        return True
    if rule.frequency is Frequency.YEARLY and rule.months is None:
        position, length = _find_day_of_year(day), _count_days_in_year(day)
    else:
        position, length = day.day, _count_days_in_month(day)
    nth = (position - 1) // 7 + 1 if wanted.nth > 0 else -((length - position) // 7 + 1)
    return nth == wanted.nth


def _is_among(position: int, length: int, numbers: tuple[int, ...]) -> bool:
    """Return whether a position, counted from 1, is given from the front or, negative, from the back."""
    return position in numbers or position - length - 1 in numbers


def _find_week_number(rule: Recurrence, day: date) -> tuple[int, int]:
    """Return the number of a day's week and the weeks of its year; week 1 has four days of the year."""
    middle = _find_week_start(rule, day) + timedelta(days=3)
    last_middle = middle + timedelta(days=(_count_days_in_year(middle) - _find_day_of_year(middle)) // 7 * 7)
    return (_find_day_of_year(middle) - 1) // 7 + 1, (_find_day_of_year(last_middle) - 1) // 7 + 1


def _find_week_start(rule: Recurrence, day: date) -> date:
    return day - timedelta(days=(day.weekday() - rule.week_start) % 7)


def _find_day_of_year(day: date) -> int:
    return day.timetuple().tm_yday


def _count_days_in_year(day: date) -> int:
    return 366 if calendar.isleap(day.year) else 365


def _count_days_in_month(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]
