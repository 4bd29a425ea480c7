"""Whether a banner may be shown now, and when that may change.

Dates are moments. The window and the rule use local time in the schedule's zone: a window in the hour that
spring skips does not open that night; one in the hour that autumn repeats is open both times.
"""

from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Final

from adloom.schedule.recurrence import ONE_DAY, RecurringDays, build_recurring_days
from adloom.schedule.schedule import Schedule, ScheduleStatus, find_zone

DAY_SECONDS: Final = 86_400
HOUR_SECONDS: Final = 3_600

# Looking a member up in its class costs more than comparing it.
_EVERGREEN: Final = ScheduleStatus.EVERGREEN
_DRAFT: Final = ScheduleStatus.DRAFT
_EXPIRED: Final = ScheduleStatus.EXPIRED


class ClosedReason(StrEnum):
    """Why a banner may not be shown; the first reason counts."""

    DRAFT = "draft"
    EXPIRED = "expired"
    NOT_YET_PUBLISHED = "not_yet_published"
    UNREADABLE = "unreadable"
    OUTSIDE_WINDOW = "outside_window"
    NOT_RECURRING_NOW = "not_recurring_now"


def is_open(schedule: Schedule, *, now: datetime) -> bool:
    return find_closed_reason(schedule, now=now) is None


def find_closed_reason(schedule: Schedule, *, now: datetime) -> ClosedReason | None:
    """Return why the banner may not be shown, if there is a reason."""
    status = schedule.status
    if status is not _EVERGREEN:
        if status is _DRAFT:
            return ClosedReason.DRAFT
        if status is _EXPIRED or (schedule.expires_at is not None and schedule.expires_at <= now):
            return ClosedReason.EXPIRED
        if schedule.publish_at is not None and now < schedule.publish_at:
            return ClosedReason.NOT_YET_PUBLISHED
    if schedule.window_start is None and schedule.recurrence_rule is None:
        return None
    return _find_why_not_recurring(schedule, now)


def find_next_change(schedule: Schedule, *, now: datetime) -> datetime | None:
    """Return until when the answer certainly stays the same; None is forever.

    It may be earlier than the next change, never later.
    """
    if schedule.status is _DRAFT or schedule.status is _EXPIRED:
        return None
    expires_at = None
    if schedule.status is not _EVERGREEN:
        expires_at = schedule.expires_at
        if expires_at is not None and expires_at <= now:
            return None
        if schedule.publish_at is not None and now < schedule.publish_at:
            return schedule.publish_at
    recurs_at = _find_next_recurrence_change(schedule, now)
    if expires_at is None or recurs_at is None:
        return expires_at or recurs_at
    return min(expires_at, recurs_at)


def _find_why_not_recurring(schedule: Schedule, now: datetime) -> ClosedReason | None:
    zone = find_zone(schedule.timezone)
    if zone is None:
        return ClosedReason.UNREADABLE
    local = now.astimezone(zone)
    is_after_midnight = False
    if schedule.window_start is not None and schedule.window_end is not None:
        second = _count_second_of_day(local)
        start, end = _count_second_of_day(schedule.window_start), _count_second_of_day(schedule.window_end)
        if not (start <= second <= end if start <= end else second >= start or second <= end):
            return ClosedReason.OUTSIDE_WINDOW
        is_after_midnight = start > end >= second
    if schedule.recurrence_rule is None:
        return None
    days = _build_days(schedule)
    if days is None:
        return ClosedReason.UNREADABLE
    return (
        None if _recurs(days, local, is_after_midnight=is_after_midnight) else ClosedReason.NOT_RECURRING_NOW
    )


def _recurs(days: RecurringDays, local: datetime, *, is_after_midnight: bool) -> bool:
    if days.has_hours:
        return bool(days.find_hours(local.date()) >> local.hour & 1)
    # A window over midnight belongs to the day on which it opens.
    day = local.date() - ONE_DAY if is_after_midnight else local.date()
    return days.find_hours(day) != 0


def _find_next_recurrence_change(schedule: Schedule, now: datetime) -> datetime | None:
    """Return when local time next reaches a boundary, or the zone's offset changes."""
    zone = find_zone(schedule.timezone)
    boundaries = _list_boundaries(schedule)
    if zone is None or not boundaries:
        return None
    local = now.astimezone(zone)
    second = _count_second_of_day(local)
    ahead = min((boundary - second - 1) % DAY_SECONDS + 1 for boundary in boundaries)
    moment = now.replace(microsecond=0) + timedelta(seconds=ahead)
    offset = local.utcoffset()
    if moment.astimezone(zone).utcoffset() == offset:
        return moment
    # Daylight saving begins or ends on the way: stop there, whatever the clock shows then.
    early, late = 0, ahead
    while late - early > 1:
        middle = (early + late) // 2
        is_moved = (now + timedelta(seconds=middle)).astimezone(zone).utcoffset() != offset
        early, late = (early, middle) if is_moved else (middle, late)
    return now.replace(microsecond=0) + timedelta(seconds=late)


def _list_boundaries(schedule: Schedule) -> list[int]:
    """List the seconds of the day at which the window or the rule may open or close."""
    boundaries: list[int] = []
    if schedule.window_start is not None and schedule.window_end is not None:
        boundaries += [
            _count_second_of_day(schedule.window_start),
            _count_second_of_day(schedule.window_end) + 1,
        ]
    if schedule.recurrence_rule is not None:
        days = _build_days(schedule)
        if days is None:
            return []
        boundaries.append(0)
        if days.has_hours:
            boundaries += range(0, DAY_SECONDS, HOUR_SECONDS)
    return boundaries


def _build_days(schedule: Schedule) -> RecurringDays | None:
    assert schedule.recurrence_rule is not None
    return build_recurring_days(
        schedule.recurrence_rule, schedule.timezone, schedule.publish_at or schedule.created_at
    )


def _count_second_of_day(moment: datetime | time) -> int:
    return moment.hour * HOUR_SECONDS + moment.minute * 60 + moment.second
