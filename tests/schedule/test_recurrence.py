"""Recurring days, computed one day at a time, compared with dateutil, which walks from the start."""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Final

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st

from adloom.schedule.recurrence import ALL_HOURS, RecurringDays, build_recurring_days
from adloom.schedule.recurrence_rule import WEEKDAYS
from tests.support.for_each import for_each

FIRST: Final = datetime.fromisoformat("2025-01-01T00:00:00")
LAST: Final = datetime.fromisoformat("2027-12-31T23:59:59")
ANCHOR: Final = datetime(2026, 1, 31, 15, 30, tzinfo=UTC)  # A Saturday.


def days_of(text: str, *, timezone: str = "UTC", anchor: datetime | None = ANCHOR) -> RecurringDays:
    days = build_recurring_days(text, timezone, anchor)
    assert days is not None
    return days


def days_named_by(text: str, first: date, count: int, *, timezone: str = "UTC") -> list[date]:
    days = days_of(text, timezone=timezone)
    range_ = [first + timedelta(days=number) for number in range(count)]
    return [day for day in range_ if days.find_hours(day)]


def november(*days: int) -> list[date]:
    return [date(2026, 11, day) for day in days]


@for_each(
    ("text", "days"),
    [
        ("FREQ=WEEKLY;BYDAY=MO,FR", [2, 6, 9, 13, 16, 20, 23, 27, 30]),
        ("FREQ=WEEKLY", [7, 14, 21, 28]),  # the anchor's weekday
        ("DTSTART:20261102\nFREQ=WEEKLY;INTERVAL=2", [2, 16, 30]),
        ("DTSTART:20261110\nFREQ=DAILY;INTERVAL=7", [10, 17, 24]),
        ("FREQ=MONTHLY;BYDAY=-1FR", [27]),
        ("FREQ=MONTHLY;BYDAY=1MO,3MO", [2, 16]),
        ("FREQ=MONTHLY;BYMONTHDAY=1,-1", [1, 30]),
        ("FREQ=MONTHLY", []),  # the anchor's 31st is not in November
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", [30]),
        ("FREQ=DAILY;UNTIL=20261103", [1, 2, 3]),
        ("FREQ=DAILY;BYDAY=SA,SU", [1, 7, 8, 14, 15, 21, 22, 28, 29]),
        ("DTSTART:20261128\nFREQ=DAILY", [28, 29, 30]),
        ("DTSTART:20261125\nFREQ=DAILY;COUNT=3", [25, 26, 27]),
        ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", [26]),
        ("FREQ=YEARLY;BYMONTH=11;BYMONTHDAY=11", [11]),
        ("FREQ=YEARLY;BYWEEKNO=45;BYDAY=MO", [2]),
        ("FREQ=YEARLY;BYYEARDAY=-32", [30]),
    ],
)
def test_a_rule_names_these_days_of_november(text: str, days: list[int]) -> None:
    assert days_named_by(text, date(2026, 11, 1), 30) == november(*days)


def test_a_rule_with_byhour_names_hours() -> None:
    days = days_of("FREQ=WEEKLY;BYDAY=SU;BYHOUR=9,10")

    assert days.find_hours(date(2026, 11, 15)) == 0b110_0000_0000
    assert days.find_hours(date(2026, 11, 16)) == 0


def test_a_rule_without_byhour_names_whole_days() -> None:
    assert days_of("FREQ=DAILY").find_hours(date(2026, 11, 15)) == ALL_HOURS


def test_an_until_in_utc_is_converted_to_the_zone() -> None:
    rule = "FREQ=DAILY;BYHOUR=0;UNTIL=20261102T190000Z"  # 00:30 on the 3rd in Kolkata

    assert days_named_by(rule, date(2026, 11, 1), 5, timezone="Asia/Kolkata") == november(1, 2, 3)
    assert days_named_by(rule, date(2026, 11, 1), 5, timezone="UTC") == november(1, 2)


def test_a_rule_without_a_start_repeats_from_the_banners_date_in_its_zone() -> None:
    late = datetime(2026, 11, 1, 20, tzinfo=UTC)  # Monday the 2nd in Kolkata
    kolkata = days_of("FREQ=WEEKLY", timezone="Asia/Kolkata", anchor=late)

    assert kolkata.find_hours(date(2026, 11, 9))
    assert not kolkata.find_hours(date(2026, 11, 8))


def test_a_rule_without_any_date_repeats_from_a_monday() -> None:
    assert days_of("FREQ=WEEKLY", anchor=None).find_hours(date(2026, 11, 16))


def test_an_unreadable_rule_or_zone_gives_no_recurring_days() -> None:
    assert build_recurring_days("FREQ=SECONDLY", "UTC", None) is None
    assert build_recurring_days("FREQ=DAILY", "Europe/Atlantis", None) is None


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;COUNT=366;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=-366,-1,1",
        "DTSTART:19700101\nFREQ=DAILY;INTERVAL=999",
    ],
)
def test_no_rule_takes_more_than_200_milliseconds(text: str) -> None:
    build_recurring_days.cache_clear()
    before = time.process_time()

    days_of(text).find_hours(date(2199, 12, 31))

    # Some milliseconds; dateutil takes seconds for the first.
    assert time.process_time() - before < 0.2


def list_of(*numbers: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(numbers), min_size=1, max_size=4).map(
        lambda some: ",".join(map(str, some))
    )


WEEKDAY = st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3).map(",".join)
NTH_WEEKDAY = st.lists(
    st.builds("{}{}".format, st.sampled_from([-2, -1, 1, 2, 5]), st.sampled_from(WEEKDAYS)),
    min_size=1,
    max_size=3,
).map(",".join)
ANY: Final = {
    "INTERVAL": st.integers(1, 9).map(str),
    "WKST": st.sampled_from(WEEKDAYS),
    "COUNT": st.integers(1, 40).map(str),
    "UNTIL": st.sampled_from(["20260601T000000", "20270101T120000", "20261115T235959"]),
    "BYHOUR": list_of(*range(24)),
    "BYSETPOS": st.sampled_from(["1", "-1", "-1,1"]),
}
# Each of these names some day: for a rule that names none, dateutil searches until the year 9999.
DAYS: Final = [
    {},
    {"BYDAY": WEEKDAY},
    {"BYDAY": NTH_WEEKDAY},
    {"BYMONTH": list_of(*range(1, 13))},
    {"BYMONTH": list_of(*range(1, 13)), "BYDAY": WEEKDAY | NTH_WEEKDAY},
    {"BYMONTH": list_of(*range(1, 13)), "BYMONTHDAY": list_of(*range(1, 29), -1, -2, -28)},
    {"BYMONTHDAY": list_of(*range(1, 32), -1, -2, -30)},
    {"BYMONTHDAY": list_of(*range(1, 32), -1), "BYDAY": WEEKDAY},
    {"BYYEARDAY": list_of(1, 60, 100, 365, 366, -1, -40)},
    {"BYYEARDAY": list_of(1, 60, 100, 365, -1, -40), "BYDAY": WEEKDAY},
    {"BYWEEKNO": list_of(1, 2, 20, 51)},
    {"BYWEEKNO": list_of(1, 2, 20, 51), "BYDAY": WEEKDAY},
]


@st.composite
def rules(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(sorted(ANY)), max_size=3, unique=True))
    chosen = {name: ANY[name] for name in names} | draw(st.sampled_from(DAYS))
    parts = [f"{name}={draw(values)}" for name, values in chosen.items()]
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    start = draw(st.datetimes(FIRST, LAST - timedelta(days=366)))
    return f"DTSTART:{start:%Y%m%dT%H%M00}\nRRULE:" + ";".join([f"FREQ={frequency}", *parts])


@given(rules())
def test_recurring_days_agree_with_dateutil(text: str) -> None:
    days = build_recurring_days(text, "UTC", None)
    if days is None or is_different_in_dateutil(text):
        return
    walked: dict[date, int] = {}
    for one in rrulestr(start_at_whole_hour(text)).between(FIRST, LAST, inc=True):
        walked[one.date()] = walked.get(one.date(), 0) | (1 << one.hour if days.has_hours else ALL_HOURS)

    range_ = (FIRST.date() + timedelta(days=number) for number in range((LAST - FIRST).days + 1))
    assert {day: bits for day in range_ if (bits := days.find_hours(day))} == walked


def start_at_whole_hour(text: str) -> str:
    """An occurrence with BYHOUR is a whole hour here; dateutil adds the minute of DTSTART."""
    start, rule = text.splitlines()
    return f"{start[:-4]}0000\n{rule}" if "BYHOUR" in rule else text


def is_different_in_dateutil(text: str) -> bool:
    # The first week of a rule begins for dateutil with DTSTART, for RFC 5545 with WKST.
    return "FREQ=WEEKLY" in text and "BYSETPOS" in text
