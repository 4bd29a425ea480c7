"""Clocks return aware UTC, and time never goes back."""

from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.core.clock import ManualClock, SystemClock, parse_day, parse_moment

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_the_system_clock_is_in_utc() -> None:
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_a_manual_clock_moves_only_by_advance() -> None:
    clock = ManualClock(NOON.astimezone(timezone(timedelta(hours=5, minutes=30))))

    clock.advance(timedelta(seconds=1))

    assert clock.now() == NOON + timedelta(seconds=1)
    assert clock.now().tzinfo is UTC


def test_a_manual_clock_refuses_to_go_back() -> None:
    with pytest.raises(AssertionError):
        ManualClock(NOON).advance(timedelta(seconds=-1))


@given(st.dates())
def test_a_day_is_parsed_from_how_it_is_written(day: date) -> None:
    assert parse_day(str(day)) == day


@given(
    st.dates().flatmap(
        lambda day: st.sampled_from([f"{day:%Y%m%d}", f"{day:%G-W%V-%u}", f"{day}T00:00", f"{day}\n"])
    )
)
def test_no_other_form_is_a_day(text: str) -> None:
    with pytest.raises(ValueError, match="is not a day"):
        parse_day(text)


@given(st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=30))])))
def test_a_moment_is_parsed_from_how_it_is_written(moment: datetime) -> None:
    assert parse_moment(moment.isoformat()) == moment
    assert parse_moment(f"{moment:%Y}".zfill(4) + f"{moment:-%m-%d}") == datetime.combine(moment, time(), UTC)


@pytest.mark.parametrize(
    "text", ["20261119", "20261119T10:00", "2026-W47-4", "2026-W47-4T10:00Z", "2026-1-5", ""]
)
def test_no_moment_begins_with_another_form_of_a_day(text: str) -> None:
    with pytest.raises(ValueError, match="is not a day"):
        parse_moment(text)
