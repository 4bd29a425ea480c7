"""The status of a banner follows from its dates, unless it is set explicitly."""

from datetime import timedelta
from typing import Any

import pytest

from adloom.schedule.schedule import ScheduleStatus
from tests.support.builders import NOON
from tests.support.control import Client, ControlPlane, problem
from tests.support.for_each import for_each

PAST, FUTURE, FAR = ((NOON + timedelta(days=days)).isoformat().replace("+00:00", "Z") for days in (-1, 1, 2))
EXACTLY_NOW = NOON.isoformat().replace("+00:00", "Z")

TABLE: list[tuple[dict[str, Any], str]] = [
    ({}, "evergreen"),
    ({"publishAt": FUTURE}, "scheduled"),
    ({"publishAt": FUTURE, "expiresAt": FAR}, "scheduled"),
    ({"publishAt": PAST}, "active"),
    ({"publishAt": EXACTLY_NOW}, "active"),
    ({"publishAt": PAST, "expiresAt": FUTURE}, "active"),
    ({"expiresAt": FUTURE}, "active"),
    ({"expiresAt": PAST}, "expired"),
    ({"expiresAt": EXACTLY_NOW}, "active"),
    ({"recurrenceWindowStart": "09:00", "recurrenceWindowEnd": "17:00"}, "evergreen"),
    *[({"publishAt": FUTURE, "scheduleStatus": status.value}, status.value) for status in ScheduleStatus],
]


@for_each(("schedule", "status"), TABLE)
async def test_a_new_banner_has_the_status_of_its_dates(
    schedule: dict[str, Any], status: str, admin: Client
) -> None:
    made = await admin.make_banner(**schedule)

    assert made["scheduleStatus"] == status
    assert (await admin.get(f"/admin/banners/{made['id']}")).json() == made


@pytest.mark.parametrize("route", ["", "/schedule"])
async def test_a_changed_banner_has_the_status_of_its_dates(route: str, admin: Client) -> None:
    for schedule, status in TABLE:
        banner = await admin.make_banner(publishAt=PAST)
        cleared = {"publishAt": None, "expiresAt": None}

        answer = await admin.patch(f"/admin/banners/{banner['id']}{route}", json={**cleared, **schedule})

        assert answer.json()["scheduleStatus"] == status, (schedule, answer.text)


async def test_a_change_without_dates_keeps_the_status(admin: Client) -> None:
    banner = await admin.make_banner(publishAt=FUTURE, scheduleStatus="draft")
    path = f"/admin/banners/{banner['id']}"

    for route, change in [("", {"title": "B"}), ("/schedule", {"recurrenceRule": "FREQ=DAILY"})]:
        assert (await admin.patch(f"{path}{route}", json=change)).json()["scheduleStatus"] == "draft"


async def test_an_expired_banner_is_active_again_with_a_later_end(
    control: ControlPlane, admin: Client
) -> None:
    banner = await admin.make_banner(publishAt=PAST, expiresAt=FUTURE)
    control.clock.advance(timedelta(minutes=30))

    expired = await admin.patch(f"/admin/banners/{banner['id']}/schedule", json={"expiresAt": EXACTLY_NOW})
    back = await admin.patch(f"/admin/banners/{banner['id']}/schedule", json={"expiresAt": FAR})

    assert (expired.json()["scheduleStatus"], back.json()["scheduleStatus"]) == ("expired", "active")


async def test_a_message_that_is_a_sentence_ends_with_one_full_stop(admin: Client) -> None:
    banner = await admin.make_banner()

    answer = await admin.patch(f"/admin/banners/{banner['id']}/schedule", json={"scheduleTimezone": "Berlin"})

    said = problem(answer, 400, "VALIDATION_FAILED")["detail"]
    assert said == "scheduleTimezone: There is no zone 'Berlin': give an IANA name like Europe/Berlin."
