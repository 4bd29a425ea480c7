"""The palette of Ctrl-K: pages by name, and things that somebody may see."""

from adloom.console.shell import Hit, find_pages, find_things
from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from tests.console.visitor import Visitor
from tests.stats.saved_report.people import a_person, logged_in
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane

PAGES = [Hit(label, "page", f"/{label}", "x") for label in ("Overview", "Campaigns", "My first campaign")]


class Api:
    """The client of a page, by a test's own."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get_items(self, path: str, **query: object) -> list[Json]:
        answer = await self._client.get(path, params={name: str(value) for name, value in query.items()})
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]


def test_pages_that_begin_with_a_text_come_first() -> None:
    assert [one.label for one in find_pages(PAGES, "CAMP")] == ["Campaigns", "My first campaign"]
    assert find_pages(PAGES, "") == PAGES
    assert find_pages(PAGES, "nowhere") == []


async def test_things_are_found_by_name_as_far_as_somebody_may_see_them(console: ControlPlane) -> None:
    async with (
        console.acting_as(Role.ADMIN) as admin,
        console.acting_as(Role.ADVERTISER, SystemIds().make()) as advertiser,
    ):
        campaign = await admin.make_campaign(name="Harvest festival")
        await admin.make_placement(label="Harvest corner")
        own = await advertiser.make_campaign(name="Harvest of ours")

        to_admin = await find_things(Api(admin), Role.ADMIN, "harvest")  # pyright: ignore[reportArgumentType]
        to_advertiser = await find_things(Api(advertiser), Role.ADVERTISER, "harvest")  # pyright: ignore[reportArgumentType]
        one_letter = await find_things(Api(admin), Role.ADMIN, "h")  # pyright: ignore[reportArgumentType]

    assert {one.label for one in to_admin} == {"Harvest festival", "Harvest corner", "Harvest of ours"}
    assert f"/console/campaigns/{campaign['id']}" in {one.path for one in to_admin}
    assert [one.path for one in to_advertiser] == [f"/console/campaigns/{own['id']}"]
    assert one_letter == []


async def test_saved_reports_are_found_by_their_owner(console: ControlPlane) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        owner, stranger = await a_person(admin, "viewer"), await a_person(admin, "admin")
    async with logged_in(console, owner) as bob, logged_in(console, stranger) as eve:
        report = await bob.made(
            "/admin/saved-reports", {"name": "Harvest of last month", "period": "last_month"}
        )

        found = await find_things(Api(bob), Role.VIEWER, "harvest")  # pyright: ignore[reportArgumentType]
        nothing = await find_things(Api(eve), Role.ADMIN, "harvest")  # pyright: ignore[reportArgumentType]

    assert [(one.label, one.path) for one in found] == [
        ("Harvest of last month", f"/console/reports?report={report['id']}")
    ]
    assert nothing == []


async def test_every_page_has_the_palette(ann: Visitor) -> None:
    assert "Go to a page or a thing (Ctrl-K)" in (await ann.get("/console/campaigns")).text
