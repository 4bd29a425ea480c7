"""Parsing recurrence rules: which are accepted, and the errors for the others."""

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.errors import ValidationFailedError
from adloom.schedule.recurrence_rule import Frequency, NthWeekday, Recurrence, parse_recurrence
from tests.support.for_each import for_each


@for_each(
    ("text", "expected"),
    [
        ("FREQ=DAILY", Recurrence(frequency=Frequency.DAILY)),
        ("rrule:freq=daily;interval=2;", Recurrence(frequency=Frequency.DAILY, interval=2)),
        (
            "FREQ=WEEKLY;BYDAY=MO,FR,MO;WKST=SU",
            Recurrence(
                frequency=Frequency.WEEKLY,
                weekdays=(NthWeekday(0, None), NthWeekday(4, None)),
                week_start=6,
            ),
        ),
        (
            "FREQ=MONTHLY;BYDAY=1MO,-1FR",
            Recurrence(frequency=Frequency.MONTHLY, weekdays=(NthWeekday(0, 1), NthWeekday(4, -1))),
        ),
        (
            "FREQ=MONTHLY;BYMONTHDAY=1,-1;COUNT=12",
            Recurrence(frequency=Frequency.MONTHLY, month_days=(-1, 1), count=12),
        ),
        (
            "FREQ=DAILY;UNTIL=20261231",
            Recurrence(frequency=Frequency.DAILY, until=datetime.fromisoformat("2026-12-31T23:59:59")),
        ),
        (
            "FREQ=DAILY;UNTIL=20261231T120000Z",
            Recurrence(frequency=Frequency.DAILY, until=datetime(2026, 12, 31, 12, tzinfo=UTC)),
        ),
        (
            "DTSTART:20261102T093000\nRRULE:FREQ=DAILY;BYHOUR=9,10;BYMINUTE=0;BYSECOND=0",
            Recurrence(
                frequency=Frequency.DAILY,
                starts_at=datetime.fromisoformat("2026-11-02T09:30:00"),
                hours=(9, 10),
            ),
        ),
        (
            "DTSTART;VALUE=DATE:20261102\r\nFREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
            Recurrence(
                frequency=Frequency.YEARLY,
                starts_at=datetime.fromisoformat("2026-11-02T00:00:00"),
                week_numbers=(20,),
                weekdays=(NthWeekday(0, None),),
            ),
        ),
    ],
)
def test_a_rule_is_parsed(text: str, expected: Recurrence) -> None:
    assert parse_recurrence(text) == expected


@for_each(
    ("text", "message"),
    [
        ("", "one RRULE"),
        ("every day", "'EVERY DAY' is not a part like FREQ=DAILY"),
        ("INTERVAL=2", "FREQ is missing"),
        ("FREQ=SECONDLY", "FREQ=SECONDLY is not DAILY"),
        ("FREQ=MINUTELY;INTERVAL=5", "the daily window says the minutes"),
        ("FREQ=HOURLY", "BYHOUR hours of them"),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ is there twice"),
        ("FREQ=DAILY;BYEASTER=1", "no part 'BYEASTER'"),
        ("FREQ=DAILY;COUNT=", "'COUNT=' is not a part"),
        ("FREQ=DAILY;COUNT=0", "COUNT: 0 is not in 1 to 366"),
        ("FREQ=DAILY;COUNT=367", "COUNT: 367 is not in 1 to 366"),
        ("FREQ=DAILY;COUNT=3;UNTIL=20261231", "COUNT or UNTIL, not both"),
        ("FREQ=DAILY;INTERVAL=99999", "INTERVAL: 99999 is not in 1 to 1000"),
        ("FREQ=DAILY;INTERVAL=two", "'TWO' is not a whole number"),
        ("FREQ=DAILY;BYMONTH=13", "BYMONTH: 13 is not in 1 to 12"),
        ("FREQ=DAILY;BYMONTHDAY=0", "BYMONTHDAY: 0 is not in 1 to 31 or -31 to -1"),
        ("FREQ=DAILY;BYDAY=MONDAY", "BYDAY: 'MONDAY' is not one of MO"),
        ("FREQ=DAILY;WKST=XX", "WKST: 'XX'"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL: 'TOMORROW' is not a moment"),
        ("FREQ=DAILY;UNTIL=20260231", "UNTIL: '20260231' is not a moment"),
        ("FREQ=DAILY;UNTIL=00010101", "UNTIL: 1 is not a year from 1970 to 2199"),
        ("FREQ=DAILY;BYMINUTE=30", "BYMINUTE is not used"),
        ("FREQ=DAILY;BYSECOND=30", "BYSECOND is not used"),
        ("FREQ=WEEKLY;BYDAY=1MO", "needs FREQ=MONTHLY or FREQ=YEARLY"),
        ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO", "without BYWEEKNO"),
        ("FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO needs FREQ=YEARLY"),
        ("FREQ=MONTHLY;BYYEARDAY=1", "BYYEARDAY needs FREQ=YEARLY"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY does not go with FREQ=WEEKLY"),
        ("FREQ=MONTHLY;BYSETPOS=1", "give one of them too"),
        ("FREQ=MONTHLY;BYDAY=MO;BYHOUR=9;BYSETPOS=1", "BYSETPOS chooses days"),
        ("DTSTART;TZID=Europe/Berlin:20261102\nFREQ=DAILY", "DTSTART is in scheduleTimezone"),
        ("DTSTART:20261102", "not a part like FREQ=DAILY"),
        ("FREQ=DAILY\nEXDATE:20261102", "nothing else"),
        ("FREQ=DAILY;" + "BYMONTH=1," * 100, "longer than 500 characters"),
    ],
)
def test_the_error_says_what_is_wrong_with_a_rule(text: str, message: str) -> None:
    with pytest.raises(ValidationFailedError) as raised:
        parse_recurrence(text)

    [problem] = raised.value.errors
    assert problem.field == "recurrenceRule"
    assert message in problem.message


@given(
    st.text()
    | st.lists(
        st.sampled_from(
            ["FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTH", "BYHOUR", "WKST", "BYSETPOS"]
        ).flatmap(lambda name: st.text(max_size=12).map(lambda value: f"{name}={value}"))
    ).map(";".join)
)
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(ValidationFailedError):
        parse_recurrence(text)
