"""The status that follows from dates, and which windows and zones are valid."""

from datetime import datetime, time, timedelta

import pytest

from adloom.core.errors import ValidationFailedError
from adloom.schedule.schedule import check_window, derive_status, parse_timezone
from tests.schedule.builders import NOON
from tests.support.for_each import for_each

BEFORE = NOON - timedelta(hours=1)
AFTER = NOON + timedelta(hours=1)


@for_each(
    ("publish_at", "expires_at", "status"),
    [
        (None, None, "evergreen"),
        (AFTER, None, "scheduled"),
        (AFTER, AFTER + timedelta(hours=1), "scheduled"),
        (BEFORE, None, "active"),
        (NOON, None, "active"),
        (BEFORE, AFTER, "active"),
        (None, AFTER, "active"),
        (None, BEFORE, "expired"),
        (BEFORE, NOON, "active"),
        (BEFORE, NOON - timedelta(microseconds=1), "expired"),
    ],
)
def test_the_status_follows_from_the_dates(
    publish_at: datetime | None, expires_at: datetime | None, status: str
) -> None:
    assert derive_status(publish_at=publish_at, expires_at=expires_at, now=NOON) == status


def test_a_window_has_both_ends_or_none() -> None:
    assert check_window(None, None) is None
    assert check_window(time(9), time(17)) is None
    assert check_window(time(22), time(6)) is None
    assert "both or neither" in (check_window(time(9), None) or "")
    assert "both or neither" in (check_window(None, time(9)) or "")
    assert "the whole day" in (check_window(time(9), time(9)) or "")


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"])
def test_a_zone_is_found_by_its_name(name: str) -> None:
    assert str(parse_timezone(name)) == name


@for_each(
    "name",
    [
        "",
        "Berlin",
        "Europe",
        "+02:00",
        "../etc/passwd",
        "/etc/passwd",
        "a\0b",
        "é",
        "localtime",
        "posixrules",
    ],
)
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(ValidationFailedError) as raised:
        parse_timezone(name)

    assert [problem.field for problem in raised.value.errors] == ["scheduleTimezone"]
