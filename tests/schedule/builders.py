"""Schedules with defaults: a test names only what it is about."""

from datetime import UTC, datetime, time
from typing import Any

import msgspec

from adloom.schedule.schedule import Schedule, ScheduleStatus

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)  # A Sunday.


def a_schedule(**fields: Any) -> Schedule:
    return msgspec.structs.replace(Schedule(status=ScheduleStatus.EVERGREEN), **fields)


def a_window(start: str, end: str, **fields: Any) -> Schedule:
    return a_schedule(window_start=time.fromisoformat(start), window_end=time.fromisoformat(end), **fields)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
