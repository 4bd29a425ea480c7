"""A calendar of the next weeks: the hours of each day in which a campaign or a banner can run."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec
from markupsafe import Markup

from adloom.console.components.format import format_moment, format_percent
from adloom.console.components.layout import add_html
from adloom.schedule.schedule import Schedule, ScheduleStatus, find_zone
from adloom.schedule.schedule_window import is_open
from adloom.targeting.context import Context
from adloom.targeting.evaluate import matches_all
from adloom.targeting.rules import parse_rule

WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

WEEKS: Final = 4
DAYS_A_WEEK: Final = 7
STEP: Final = timedelta(minutes=15)
STEPS_A_DAY: Final = 96
STEPS_AN_HOUR: Final = 4
SPANS_MAX: Final = 2
ANYBODY: Final = Context(
    device=None,
    country=None,
    language=None,
    is_logged_in=False,
    is_new_visitor=False,
    referrer_domain=None,
    segment=None,
    hour=0,
    day=0,
)

IsOn = Callable[[datetime], bool]


class CalendarDay(msgspec.Struct, frozen=True):
    """A day, and in which quarter hours something is on."""

    day: date
    steps: tuple[bool, ...]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Runs of quarter hours that are on, as first and one past the last."""
        found: list[tuple[int, int]] = []
        for number, is_on in enumerate(self.steps):
            if is_on and found and found[-1][1] == number:
                found[-1] = (found[-1][0], number + 1)
            elif is_on:
                found.append((number, number + 1))
        return found

    @property
    def hours(self) -> str:
        spans = self.spans
        if not spans:
            return "off"
        if spans == [(0, STEPS_A_DAY)]:
            return "all day"
        shown = ", ".join(f"{_write_clock(first)}–{_write_clock(last)}" for first, last in spans[:SPANS_MAX])
        return f"{shown} …" if len(spans) > SPANS_MAX else shown


def list_days(is_on: IsOn, *, zone: str, now: datetime) -> list[CalendarDay]:
    """List the days from Monday of this week until at least four weeks from today."""
    where = find_zone(zone) or ZoneInfo("UTC")
    today = now.astimezone(where).date()
    monday = today - timedelta(days=today.weekday())
    # Fill up the last week.
    count = -(-((today - monday).days + WEEKS * DAYS_A_WEEK) // DAYS_A_WEEK) * DAYS_A_WEEK
    return [_build_day(is_on, monday + timedelta(days=number), where) for number in range(count)]


def is_banner_on(banner: Mapping[str, Any]) -> IsOn:
    """Return a function of time that applies the banner's schedule as delivery does."""
    schedule = Schedule(
        status=ScheduleStatus(banner["scheduleStatus"]),
        publish_at=format_moment(banner["publishAt"]),
        expires_at=format_moment(banner["expiresAt"]),
        timezone=banner["scheduleTimezone"],
        recurrence_rule=banner["recurrenceRule"],
        window_start=_parse_time(banner["recurrenceWindowStart"]),
        window_end=_parse_time(banner["recurrenceWindowEnd"]),
        created_at=format_moment(banner.get("createdAt")),
    )
    return lambda at: is_open(schedule, now=at)


def is_timed(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule of a campaign depends on the hour or the day."""
    return rule["isActive"] and rule["ruleType"] in {"hour_of_day", "day_of_week"}


def is_campaign_on(campaign: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> IsOn:
    """Return a function of time that applies the campaign's dates and its rules about hours and days."""
    starts_at, ends_at = format_moment(campaign["startsAt"]), format_moment(campaign["endsAt"])
    zone = find_zone(campaign["timezone"]) or ZoneInfo("UTC")
    timed = [
        parse_rule(rule["ruleType"], rule["operator"], rule["value"]) for rule in rules if is_timed(rule)
    ]

    def is_on(at: datetime) -> bool:
        if (starts_at is not None and at < starts_at) or (ends_at is not None and at >= ends_at):
            return False
        local = at.astimezone(zone)
        context = msgspec.structs.replace(ANYBODY, hour=local.hour, day=local.isoweekday() % DAYS_A_WEEK)
        return matches_all(timed, context)

    return is_on


def show_calendar(days: Sequence[CalendarDay], *, now: datetime, zone: str) -> None:
    today = now.astimezone(find_zone(zone) or ZoneInfo("UTC")).date()
    head = Markup("").join(Markup("<div class='weekday'>{}</div>").format(name) for name in WEEKDAYS)
    cells = Markup("").join(_build_cell(day, today) for day in days)
    ahead = [step for day in days if day.day >= today for step in day.steps]
    share = sum(ahead) / max(1, len(ahead))
    summary = f"On for {format_percent(share, places=0)} of the time in the next four weeks."
    if share in {0, 1}:
        summary = "On all the time." if share else "Never on in the next four weeks."
    add_html(
        Markup(
            '<div class="al-calendar" role="group" aria-label="{}">{}{}</div><p class="quiet small">{} {}</p>'
        ).format("Calendar of the next four weeks", head, cells, summary, f"Hours of {zone}"),
    )


def _build_cell(day: CalendarDay, today: date) -> Markup:
    state = "past" if day.day < today else ("today" if day.day == today else "")
    number = f"{day.day:%-d %b}" if day.day.day == 1 else f"{day.day.day}"
    bars = Markup("").join(
        Markup('<i style="left:{:.2f}%;width:{:.2f}%"></i>').format(
            first / STEPS_A_DAY * 100, (last - first) / STEPS_A_DAY * 100
        )
        for first, last in day.spans
    )
    return Markup(
        '<div class="day {} {}" title="{}"><b>{}</b><div class="bar">{}</div><span>{}</span></div>'
    ).format(
        state,
        "on" if day.spans else "off",
        f"{day.day:%a %d %b %Y}: {day.hours}",
        number,
        bars,
        day.hours,
    )


def _build_day(is_on: IsOn, day: date, zone: ZoneInfo) -> CalendarDay:
    # Test the middle of each quarter: the last second of a window often begins the next quarter.
    begin = datetime.combine(day, time(), tzinfo=zone) + STEP / 2
    # Local time: an hour that daylight saving skips counts as the one after it.
    return CalendarDay(day, tuple(is_on(begin + number * STEP) for number in range(STEPS_A_DAY)))


def _write_clock(step: int) -> str:
    hour, quarter = divmod(step, STEPS_AN_HOUR)
    return f"{hour:02}:{quarter * 15:02}"


def _parse_time(text: str | None) -> time | None:
    return None if not text else time.fromisoformat(text)
