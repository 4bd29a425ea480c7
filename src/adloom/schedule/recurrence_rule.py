"""Parses and checks an RFC 5545 recurrence rule.

It takes an RRULE with or without its name, and a DTSTART line before it:

    FREQ=WEEKLY;BYDAY=MO,FR
    DTSTART:20261102
    RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9,10,11

A rule names days, or with BYHOUR whole hours of days. Finer rules are refused: the daily window says
minutes better, and no rule can name every second of a century.
"""

import contextlib
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import Final, NoReturn

import msgspec

from adloom.core.errors import make_field_error

FIELD: Final = "recurrenceRule"
TEXT_CHARACTERS_MAX: Final = 500
INTERVAL_MAX: Final = 1000
COUNT_MAX: Final = 366
END_OF_DAY: Final = time(23, 59, 59)


class Frequency(StrEnum):
    """How often the rule comes round."""

    YEARLY = "YEARLY"
    MONTHLY = "MONTHLY"
    WEEKLY = "WEEKLY"
    DAILY = "DAILY"


class NthWeekday(msgspec.Struct, frozen=True):
    """A weekday (0 is Monday); in a month or year the nth one, or every one if there is no n."""

    weekday: int
    nth: int | None


class Recurrence(msgspec.Struct, frozen=True, kw_only=True):
    """A checked rule; moments without a zone are in the schedule's."""

    frequency: Frequency
    starts_at: datetime | None = None
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    week_start: int = 0
    months: tuple[int, ...] | None = None
    week_numbers: tuple[int, ...] | None = None
    year_days: tuple[int, ...] | None = None
    month_days: tuple[int, ...] | None = None
    weekdays: tuple[NthWeekday, ...] | None = None
    hours: tuple[int, ...] | None = None
    positions: tuple[int, ...] | None = None


def parse_recurrence(text: str) -> Recurrence:
    """Raise ValidationFailedError with what is wrong."""
    if len(text) > TEXT_CHARACTERS_MAX:
        _refuse(f"The rule is longer than {TEXT_CHARACTERS_MAX} characters.")
    starts_at, rule = _parse_lines(text)
    parts = _parse_parts(rule)
    if "FREQ" not in parts:
        _refuse("FREQ is missing: say FREQ=DAILY, WEEKLY, MONTHLY or YEARLY.")
    recurrence = Recurrence(
        frequency=_parse_frequency(parts["FREQ"]),
        starts_at=starts_at,
        interval=_parse_one(parts, "INTERVAL", 1, INTERVAL_MAX) or 1,
        count=_parse_one(parts, "COUNT", 1, COUNT_MAX),
        until=_parse_moment("UNTIL", parts["UNTIL"], END_OF_DAY) if "UNTIL" in parts else None,
        week_start=_parse_week_start(parts),
        months=_parse_many(parts, "BYMONTH", 1, 12),
        week_numbers=_parse_many(parts, "BYWEEKNO", 1, 53, has_negative=True),
        year_days=_parse_many(parts, "BYYEARDAY", 1, 366, has_negative=True),
        month_days=_parse_many(parts, "BYMONTHDAY", 1, 31, has_negative=True),
        weekdays=_parse_weekdays(parts),
        hours=_parse_many(parts, "BYHOUR", 0, 23),
        positions=_parse_many(parts, "BYSETPOS", 1, 366, has_negative=True),
    )
    _check_together(recurrence, parts)
    return recurrence


def _parse_lines(text: str) -> tuple[datetime | None, str]:
    """Split off the DTSTART line, if there is one."""
    lines = [line for line in (one.strip().upper() for one in text.splitlines()) if line]
    starts_at = None
    if len(lines) > 1 and lines[0].startswith("DTSTART"):
        name, _, value = lines.pop(0).partition(":")
        if name not in {"DTSTART", "DTSTART;VALUE=DATE"}:
            _refuse("DTSTART is in scheduleTimezone: write DTSTART:20261102 or DTSTART:20261102T090000.")
        starts_at = _parse_moment("DTSTART", value, time.min)
    if len(lines) != 1:
        _refuse("Give one RRULE, with a DTSTART line before it if you need one, and nothing else.")
    return starts_at, lines[0].removeprefix("RRULE:")


def _parse_parts(rule: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in rule.removesuffix(";").split(";"):
        name, is_pair, value = part.partition("=")
        if not is_pair or not value:
            _refuse(f"{part!r} is not a part like FREQ=DAILY.")
        if name not in KNOWN_PARTS:
            _refuse(f"There is no part {name!r}; there are {', '.join(KNOWN_PARTS)}.")
        if name in parts:
            _refuse(f"{name} is there twice.")
        parts[name] = value
    return parts


KNOWN_PARTS: Final = (
    *("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST"),
    *("BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY", "BYSETPOS"),
    *("BYHOUR", "BYMINUTE", "BYSECOND"),
)
WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
NTH_WEEKDAY: Final = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
NTH_MAX: Final = 53
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,5}")
DAY: Final = re.compile(r"[0-9]{8}")
YEARS: Final = range(1970, 2200)
MOMENT: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z?")


def _parse_frequency(word: str) -> Frequency:
    if word not in Frequency.__members__:
        _refuse(
            f"FREQ={word} is not DAILY, WEEKLY, MONTHLY or YEARLY: "
            "the rule names days, BYHOUR hours of them, and the daily window says the minutes."
        )
    return Frequency[word]


def _parse_number(name: str, text: str, least: int, most: int, *, has_negative: bool = False) -> int:
    expected = f"{least} to {most}" + (f" or -{most} to -{least}" if has_negative else "")
    if not NUMBER.fullmatch(text):
        _refuse(f"{name}: {text!r} is not a whole number ({expected}).")
    number = int(text)
    if not least <= (abs(number) if has_negative else number) <= most:
        _refuse(f"{name}: {number} is not in {expected}.")
    return number


def _parse_one(parts: dict[str, str], name: str, least: int, most: int) -> int | None:
    return _parse_number(name, parts[name], least, most) if name in parts else None


def _parse_many(
    parts: dict[str, str], name: str, least: int, most: int, *, has_negative: bool = False
) -> tuple[int, ...] | None:
    if name not in parts:
        return None
    texts = parts[name].split(",")
    return tuple(
        sorted({_parse_number(name, text, least, most, has_negative=has_negative) for text in texts})
    )


def _parse_weekdays(parts: dict[str, str]) -> tuple[NthWeekday, ...] | None:
    if "BYDAY" not in parts:
        return None
    return tuple(dict.fromkeys(_parse_weekday(text) for text in parts["BYDAY"].split(",")))


def _parse_weekday(text: str) -> NthWeekday:
    match = NTH_WEEKDAY.fullmatch(text)
    if match is None:
        _refuse(f"BYDAY: {text!r} is not one of {', '.join(WEEKDAYS)}, like MO, 1MO or -1FR.")
    nth = None if match[1] is None else _parse_number("BYDAY", match[1], 1, NTH_MAX, has_negative=True)
    return NthWeekday(WEEKDAYS.index(match[2]), nth)


def _parse_week_start(parts: dict[str, str]) -> int:
    day = parts.get("WKST", "MO")
    if day not in WEEKDAYS:
        _refuse(f"WKST: {day!r} is not one of {', '.join(WEEKDAYS)}.")
    return WEEKDAYS.index(day)


def _parse_moment(name: str, text: str, time_of_a_day: time) -> datetime:
    """Parse a day or a moment; one that ends in Z is UTC, others are in the schedule's zone."""
    moment = None
    with contextlib.suppress(ValueError):
        if DAY.fullmatch(text):
            moment = datetime.combine(date.fromisoformat(text), time_of_a_day)
        elif MOMENT.fullmatch(text):
            moment = datetime.fromisoformat(text.removesuffix("Z"))
    if moment is None:
        _refuse(f"{name}: {text!r} is not a moment like 20261231, 20261231T235959 or 20261231T225959Z.")
    if moment.year not in YEARS:
        _refuse(f"{name}: {moment.year} is not a year from {YEARS.start} to {YEARS.stop - 1}.")
    return moment.replace(tzinfo=UTC) if text.endswith("Z") else moment


def _check_together(rule: Recurrence, parts: dict[str, str]) -> None:
    for name, is_wrong, message in COMBINATIONS:
        if name in parts and is_wrong(rule, parts):
            _refuse(message)


COMBINATIONS: Final[tuple[tuple[str, Callable[[Recurrence, dict[str, str]], bool], str], ...]] = (
    ("COUNT", lambda _, parts: "UNTIL" in parts, "Give COUNT or UNTIL, not both."),
    (
        "BYMINUTE",
        lambda _, parts: parts["BYMINUTE"] != "0",
        "BYMINUTE is not used: give the minutes as recurrenceWindowStart and recurrenceWindowEnd.",
    ),
    (
        "BYSECOND",
        lambda _, parts: parts["BYSECOND"] != "0",
        "BYSECOND is not used: give the seconds as recurrenceWindowStart and recurrenceWindowEnd.",
    ),
    ("BYWEEKNO", lambda rule, _: rule.frequency is not Frequency.YEARLY, "BYWEEKNO needs FREQ=YEARLY."),
    ("BYYEARDAY", lambda rule, _: rule.frequency is not Frequency.YEARLY, "BYYEARDAY needs FREQ=YEARLY."),
    (
        "BYMONTHDAY",
        lambda rule, _: rule.frequency is Frequency.WEEKLY,
        "BYMONTHDAY does not go with FREQ=WEEKLY: say FREQ=MONTHLY or FREQ=DAILY.",
    ),
    (
        "BYDAY",
        lambda rule, _: (
            any(day.nth is not None for day in rule.weekdays or ())
            and (rule.frequency in {Frequency.WEEKLY, Frequency.DAILY} or rule.week_numbers is not None)
        ),
        "BYDAY with a number (1MO, -1FR) needs FREQ=MONTHLY or FREQ=YEARLY, without BYWEEKNO.",
    ),
    (
        "BYSETPOS",
        lambda _, parts: not any(name.startswith("BY") and name != "BYSETPOS" for name in parts),
        "BYSETPOS chooses among what other BY… parts name: give one of them too.",
    ),
    (
        "BYSETPOS",
        lambda rule, _: rule.hours is not None,
        "BYSETPOS chooses days here: give the hours as recurrenceWindowStart and recurrenceWindowEnd.",
    ),
)


def _refuse(message: str) -> NoReturn:
    raise make_field_error(FIELD, message, "The recurrence rule cannot be used.")
