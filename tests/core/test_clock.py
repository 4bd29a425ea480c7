"""Clocks return aware UTC, and time never goes back."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from adloom.core.clock import ManualClock, SystemClock

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
