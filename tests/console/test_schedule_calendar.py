"""The calendar of a campaign or a banner."""

from datetime import date, datetime
from typing import Any

from adloom.console.components.schedule_calendar import is_banner_on, is_campaign_on, list_days
from tests.support.builders import NOON


def a_schedule(**fields: object) -> dict[str, Any]:
    return {
        "scheduleStatus": "evergreen",
        "publishAt": None,
        "expiresAt": None,
        "scheduleTimezone": "UTC",
        "recurrenceRule": None,
        "recurrenceWindowStart": None,
        "recurrenceWindowEnd": None,
        "createdAt": "2026-11-01T00:00:00Z",
        **fields,
    }


def some_dates(**fields: object) -> dict[str, Any]:
    return {"startsAt": None, "endsAt": None, "timezone": "UTC", **fields}


def hours(is_on: Any, day: str, zone: str = "UTC", now: datetime = NOON) -> str:
    found = {one.day: one.hours for one in list_days(is_on, zone=zone, now=now)}
    # As one types it; the page has the longer dash.
    return found[date.fromisoformat(day)].replace("\u2013", "-")


def test_a_calendar_has_whole_weeks_and_at_least_the_next_four() -> None:
    days = list_days(lambda _: True, zone="UTC", now=NOON)

    assert (days[0].day, days[-1].day) == (date(2026, 11, 9), date(2026, 12, 13))
    assert all(day.hours == "all day" for day in days)


def test_a_daily_window_is_shown_by_its_hours() -> None:
    is_on = is_banner_on(a_schedule(recurrenceWindowStart="09:00:00", recurrenceWindowEnd="17:30:00"))

    assert hours(is_on, "2026-11-16") == "09:00-17:30"


def test_a_window_over_midnight_has_two_parts() -> None:
    is_on = is_banner_on(a_schedule(recurrenceWindowStart="22:00:00", recurrenceWindowEnd="01:59:59"))

    assert hours(is_on, "2026-11-16") == "00:00-02:00, 22:00-24:00"


def test_a_recurrence_rule_can_leave_days_out() -> None:
    is_on = is_banner_on(a_schedule(recurrenceRule="FREQ=WEEKLY;BYDAY=SA,SU"))

    assert hours(is_on, "2026-11-20") == "off"
    assert hours(is_on, "2026-11-21") == "all day"


def test_a_draft_is_never_on() -> None:
    assert hours(is_banner_on(a_schedule(scheduleStatus="draft")), "2026-11-16") == "off"


def test_a_campaign_is_on_between_its_dates() -> None:
    is_on = is_campaign_on(
        some_dates(startsAt="2026-11-16T06:00:00Z", endsAt="2026-11-18T00:00:00Z"), rules=[]
    )

    assert [hours(is_on, f"2026-11-{day}") for day in (15, 16, 17, 18)] == [
        "off",
        "06:00-24:00",
        "all day",
        "off",
    ]


def test_hours_are_those_of_the_zone() -> None:
    is_on = is_campaign_on(some_dates(startsAt="2026-11-16T06:00:00Z", timezone="Europe/Berlin"), rules=[])

    assert hours(is_on, "2026-11-16", "Europe/Berlin") == "07:00-24:00"


def test_rules_about_hours_and_days_count_and_others_do_not() -> None:
    rules = [
        {"ruleType": "hour_of_day", "operator": "between", "value": [9, 16], "isActive": True},
        {"ruleType": "day_of_week", "operator": "not_in", "value": [0], "isActive": True},
        {"ruleType": "day_of_week", "operator": "in", "value": [2], "isActive": False},
        {"ruleType": "country", "operator": "in", "value": ["DE"], "isActive": True},
    ]
    is_on = is_campaign_on(some_dates(), rules=rules)

    assert hours(is_on, "2026-11-16") == "09:00-17:00"
    assert hours(is_on, "2026-11-22") == "off"
