"""The history in the console: who by name, over everything, and old values put back into the form."""

from datetime import UTC, datetime
from html import unescape
from urllib.parse import urlencode
from uuid import UUID

import pytest

from adloom.console.client import Json
from adloom.console.components.forms.form import Form
from adloom.console.history import name_author
from adloom.console.pages.history import bound_days
from adloom.core.caller import COMMAND_LINE, SAMPLE, Role
from tests.console.visitor import Visitor, make_person
from tests.support.control import ControlPlane


@pytest.mark.parametrize(
    ("first", "last", "zone", "bounds"),
    [
        ("2026-11-15", "2026-11-15", None, {"from": "2026-11-15T00:00:00Z", "to": "2026-11-16T00:00:00Z"}),
        ("2026-07-01", None, "Europe/Berlin", {"from": "2026-06-30T22:00:00Z"}),
        ("no day", "9999-12-31", None, {}),
        ("0001-01-01", None, "Asia/Tokyo", {}),
        (None, None, "Europe/Berlin", {}),
    ],
)
def test_days_of_the_history_are_those_of_the_person(
    first: str | None, last: str | None, zone: str | None, bounds: dict[str, str]
) -> None:
    assert bound_days(first, last, zone) == bounds


@pytest.mark.parametrize(("subject", "who"), [(COMMAND_LINE, "The command line"), (SAMPLE, "The sample")])
def test_a_change_by_a_token_of_the_product_names_what_made_it(subject: str, who: str) -> None:
    entry: Json = {"subject": subject, "role": "admin", "subjectName": None, "accountId": None, "names": {}}

    assert f">{who}<" in name_author(entry)


async def test_the_history_of_everything_names_people_and_things(console: ControlPlane, ann: Visitor) -> None:
    people = {"Authorization": f"Bearer {console.token(Role.ADMIN, subject=await _find_ann(console))}"}
    async with console.client(**people) as by_ann:
        campaign = await by_ann.make_campaign(name="Autumn <b>")
        placement = await by_ann.make_placement(label="Front page")
        await by_ann.link(campaign, placement)

    everything = (await ann.get("/console/history")).text
    links = (await ann.get("/console/history?noun=link")).text
    today = f"{datetime(2026, 11, 15, tzinfo=UTC):%Y-%m-%d}"
    of_ann = (await ann.get(f"/console/history?subject=ann%40example.com&from={today}&to={today}")).text
    before = (await ann.get("/console/history?to=2026-11-14")).text
    broken = await ann.get("/console/history?from=x&subject=%00&noun=nothing&page=1")

    assert "ann@example.com" in everything
    assert f"/console/campaigns/{campaign['id']}" in everything
    assert "Autumn <b>" not in everything
    assert "the use of a placement" in links
    assert "added the placement" not in links.replace("the use of a placement", "")
    assert f"/console/placements/{placement['id']}" in of_ann
    assert "Nothing matches" in before
    assert broken.status_code < 500


@pytest.mark.parametrize(("role", "status"), [(Role.VIEWER, 200), (Role.ADVERTISER, 403)])
async def test_the_history_of_everything_is_for_staff(role: Role, status: int, console: ControlPlane) -> None:
    await make_person(console, "bob@example.com", role)
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")

        assert (await bob.get("/console/history")).status_code == status


async def test_an_old_value_is_put_back_into_the_form(console: ControlPlane, ann: Visitor) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        campaign = await admin.make_campaign(name="Autumn", bidAmount=0.5, budgetDailyPaisa=1000)
        path = f"/admin/campaigns/{campaign['id']}"
        await admin.patch(path, json={"name": "Winter", "bidAmount": 0.75, "budgetDailyPaisa": 4321})
        entry = (await admin.get("/admin/audit", params={"nounId": campaign["id"]})).json()["items"][0]
    address = f"/console/campaigns/{campaign['id']}"
    back = f"{address}?tab=settings&back={entry['at']}&request={entry['requestId']}"

    history = (await ann.get(f"{address}?tab=history")).text
    form = (await ann.get(back)).text
    plain = (await ann.get(f"{address}?tab=settings")).text
    odd = [
        await ann.get(f"{address}?tab=settings&back={one}") for one in ("x", "9999-12-31T23:59:59.999999Z")
    ]

    assert "Put it back" in history
    assert "Old values are filled in" in form
    assert '"Autumn"' in form.replace("&quot;", '"')
    assert "Old values are filled in" not in plain
    assert [one.status_code for one in odd] == [200, 200]


async def test_an_old_schedule_is_put_back_on_its_tab(console: ControlPlane, ann: Visitor) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        banner = await admin.make_banner(scheduleTimezone="Europe/Berlin")
        path = f"/admin/banners/{banner['id']}"
        await admin.patch(f"{path}/schedule", json={"scheduleTimezone": "Asia/Tokyo"})
        await admin.patch(path, json={"title": "Other"})
        other, entry = (await admin.get("/admin/audit", params={"nounId": banner["id"]})).json()["items"][:2]
    address = f"/console/banners/{banner['id']}"

    history = unescape(unescape((await ann.get(f"{address}?tab=history")).text))
    back = urlencode({"back": entry["at"], "request": entry["requestId"]})
    form = (await ann.get(f"{address}?tab=schedule&{back}")).text

    assert f"{address}?tab=schedule&{back}" in history
    assert f"{address}?tab=look&{urlencode({'back': other['at'], 'request': other['requestId']})}" in history
    assert "Old values are filled in" in form
    assert '"Europe/Berlin"' in form.replace("&quot;", '"')
    assert "not changed here" not in form


async def test_a_viewer_puts_nothing_back(console: ControlPlane) -> None:
    await make_person(console, "bob@example.com", Role.VIEWER)
    async with console.acting_as(Role.ADMIN) as admin:
        banner = await admin.make_banner()
        await admin.patch(f"/admin/banners/{banner['id']}", json={"title": "Other"})
    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")

        history = (await bob.get(f"/console/banners/{banner['id']}?tab=history")).text

    assert "changed it" in history
    assert "Put it back" not in history


def test_suggested_values_are_a_change_based_on_what_was_read() -> None:
    form = Form(
        {"name": "Winter", "updatedAt": "now", "pacing": {"warmup": 3, "limit": 1}},
        suggested={"name": "Autumn", "pacing": {"warmup": 2, "limit": 1}},
    )

    assert form.get_initial("name") == "Autumn"
    assert form.get_initial("pacing.warmup") == 2
    assert form.get_initial("updatedAt") == "now"


async def _find_ann(console: ControlPlane) -> str:
    async with console.acting_as(Role.ADMIN) as admin:
        (ann,) = (await admin.get("/admin/accounts")).json()["items"]
    return str(UUID(ann["id"]))
