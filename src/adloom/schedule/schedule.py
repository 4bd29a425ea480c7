"""A banner's schedule, and the status that follows from its dates."""

from datetime import datetime, time
from enum import StrEnum
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from adloom.core.errors import make_field_error

ZONES_KEPT = 1024  # More than there are in the world.
# Files beside the zones that are another zone on another machine, or nothing.
OF_A_MACHINE = frozenset({"localtime", "posixrules"})


class ScheduleStatus(StrEnum):
    """Where a banner is in its life."""

    DRAFT = "draft"
    EVERGREEN = "evergreen"
    SCHEDULED = "scheduled"
    ACTIVE = "active"
    EXPIRED = "expired"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """When a banner may be shown. Dates are moments; window and rule are in the schedule's zone."""

    status: ScheduleStatus
    publish_at: datetime | None = None
    expires_at: datetime | None = None
    timezone: str = "UTC"
    recurrence_rule: str | None = None
    window_start: time | None = None
    window_end: time | None = None
    # A rule without a DTSTART takes its rhythm from `publish_at`, or from this where there is none.
    created_at: datetime | None = None


class ScheduleCache:
    """Builds schedules from columns of the catalog; equal ones are the same object."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Schedule] = {}

    def get(self, *columns: Any) -> Schedule:  # noqa: ANN401 - as the driver returns them
        schedule = self._known.get(columns)
        if schedule is None:
            status, publish_at, expires_at, timezone, rule, window_start, window_end, created_at = columns
            schedule = self._known[columns] = Schedule(
                status=ScheduleStatus(status),
                publish_at=publish_at,
                expires_at=expires_at,
                timezone=timezone,
                recurrence_rule=rule,
                window_start=window_start,
                window_end=window_end,
                created_at=created_at,
            )
        return schedule


def derive_status(
    *, publish_at: datetime | None, expires_at: datetime | None, now: datetime
) -> ScheduleStatus:
    """Return the status of a banner that has only dates."""
    if publish_at is None and expires_at is None:
        return ScheduleStatus.EVERGREEN
    if expires_at is not None and expires_at < now:
        return ScheduleStatus.EXPIRED
    if publish_at is not None and publish_at > now:
        return ScheduleStatus.SCHEDULED
    return ScheduleStatus.ACTIVE


def check_window(start: time | None, end: time | None) -> str | None:
    """Return what is wrong with a daily window, if anything."""
    if (start is None) != (end is None):
        return "recurrenceWindowStart and recurrenceWindowEnd belong together: give both or neither."
    if start is not None and start == end:
        return (
            "recurrenceWindowStart and recurrenceWindowEnd are the same: leave both out for the whole day, "
            "or give 00:00:00 and 23:59:59."
        )
    return None


def parse_timezone(text: str) -> ZoneInfo:
    """Raise ValidationFailedError if there is no such zone."""
    zone = find_zone(text)
    if zone is None:
        message = f"There is no zone {text!r}: give an IANA name like Europe/Berlin."
        raise make_field_error(
            "scheduleTimezone", message, "scheduleTimezone is not the name of a time zone."
        )
    return zone


@lru_cache(maxsize=ZONES_KEPT)
def find_zone(text: str) -> ZoneInfo | None:
    if text in OF_A_MACHINE:
        return None
    try:
        return ZoneInfo(text)
    except (ValueError, OSError, LookupError):
        # Not a name at all, a folder of names, and an unknown one, in this order.
        return None
