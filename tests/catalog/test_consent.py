"""An account asks for a placement; its publisher or an admin decides, and only what is accepted serves."""

from typing import Any
from uuid import UUID

import msgspec
import pytest

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.documents import Importer


class Asked(msgspec.Struct, frozen=True):
    """A campaign of an advertiser with a link to a placement of a publisher, and a banner on it."""

    advertiser: Client
    publisher: Client
    placement: Json
    campaign: Json
    banner: Json

    @property
    def link_path(self) -> str:
        return f"/admin/campaigns/{self.campaign['id']}/placements/{self.placement['id']}"

    @property
    def decision_path(self) -> str:
        return f"/admin/placements/{self.placement['id']}/links/{self.campaign['id']}"

    async def link(self) -> Json:
        listed = await self.advertiser.get(f"/admin/campaigns/{self.campaign['id']}/placements")
        return listed.json()["items"][0]

    async def removed_by(self) -> str | None:
        """Return why the banner is not shown; None where it is."""
        answer = await self.publisher.get(f"/banners/explain/{self.placement['slug']}")
        assert answer.status_code == 200, answer.text
        return answer.json()["candidates"][0].get("removedBy")

    async def decide(self, decision: str, *, by: Client | None = None, **fields: object) -> Json:
        answer = await (by or self.publisher).post(self.decision_path, json={"decision": decision, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()


async def ask(
    control: ControlPlane,
    *,
    campaign: Json | None = None,
    placement: Json | None = None,
    **assignment: object,
) -> Asked:
    publisher = control.acting_as(Role.PUBLISHER, SystemIds().make())
    advertiser = control.acting_as(Role.ADVERTISER, SystemIds().make())
    place = await publisher.make_placement(**placement or {})
    own = await advertiser.make_campaign(**{"bidAmount": 5, **(campaign or {})})
    banner = await advertiser.make_banner()
    await advertiser.link(own, place)
    await advertiser.assign(own, place, banner, **assignment)
    await advertiser.patch(f"/admin/campaigns/{own['id']}/activate")
    return Asked(advertiser, publisher, place, own, banner)


async def test_a_link_of_an_account_serves_only_when_the_publisher_has_accepted_it(
    control: ControlPlane,
) -> None:
    asked = await ask(control)

    before = await asked.link(), await asked.removed_by()
    accepted = await asked.decide("accept"), await asked.removed_by()
    refused = await asked.decide("refuse", reason="Not on our front page"), await asked.removed_by()

    assert (before[0]["state"], before[0]["isAskedFor"], before[1]) == ("requested", True, "link_requested")
    assert (accepted[0]["state"], accepted[1]) == ("accepted", None)
    assert (refused[0]["state"], refused[1]) == ("refused", "link_refused")
    assert (await asked.link())["reason"] == "Not on our front page"


async def test_an_admin_decides_too_and_is_on_record(control: ControlPlane, admin: Client) -> None:
    asked = await ask(control)

    await asked.decide("accept", by=admin)

    assert await asked.removed_by() is None
    trail = (await asked.advertiser.get("/admin/audit", params={"noun": "link"})).json()["items"]
    assert trail[0]["action"] == "accept"
    assert trail[0]["changes"] == {"state": {"from": "requested", "to": "accepted"}}


async def test_a_publisher_finds_its_own_decisions_on_record_and_no_others(
    control: ControlPlane, admin: Client
) -> None:
    asked, other = await ask(control), await ask(control)
    await asked.decide("refuse", reason="Not on our front page")
    await other.decide("accept")
    await asked.decide("accept", by=admin)

    trail = (await asked.publisher.get("/admin/audit", params={"noun": "link"})).json()["items"]

    assert [entry["action"] for entry in trail] == ["refuse"]
    assert trail[0]["changes"]["state"] == {"from": "requested", "to": "refused"}


async def test_a_link_of_an_admin_and_one_to_an_open_or_own_placement_is_accepted_at_once(
    control: ControlPlane, admin: Client
) -> None:
    house = await admin.make_placement()
    made = await admin.link(await admin.make_campaign(), house)
    opened = await ask(control, placement={"isOpen": True})
    both = SystemIds().make()
    async with (
        control.acting_as(Role.PUBLISHER, both) as publisher,
        control.acting_as(Role.ADVERTISER, both) as advertiser,
    ):
        own = await advertiser.link(await advertiser.make_campaign(), await publisher.make_placement())
        foreign = await advertiser.link(await advertiser.make_campaign(), house)

    assert (made["state"], made["isAskedFor"]) == ("accepted", False)
    assert ((await opened.link())["state"], await opened.removed_by()) == ("accepted", None)
    assert (own["state"], foreign["state"]) == ("accepted", "requested")


async def test_nobody_else_decides(control: ControlPlane, admin: Client) -> None:
    asked = await ask(control)
    body = {"decision": "accept"}

    async with control.acting_as(Role.PUBLISHER) as other, control.acting_as(Role.VIEWER) as viewer:
        problem(await other.post(asked.decision_path, json=body), 404, "PLACEMENT_NOT_FOUND")
        problem(await viewer.post(asked.decision_path, json=body), 403, "FORBIDDEN")
    problem(await asked.advertiser.post(asked.decision_path, json=body), 403, "FORBIDDEN")
    unlinked = await admin.make_campaign()
    path = f"/admin/placements/{asked.placement['id']}/links/{unlinked['id']}"
    problem(await asked.publisher.post(path, json=body), 404, "CAMPAIGN_PLACEMENT_NOT_FOUND")
    assert (await asked.link())["state"] == "requested"


@pytest.mark.parametrize("field", ["state", "reason", "isAskedFor"])
async def test_an_account_cannot_write_the_state_itself(field: str, control: ControlPlane) -> None:
    asked = await ask(control)

    changed = await asked.advertiser.patch(asked.link_path, json={field: "accepted"})
    made = await asked.advertiser.post(
        f"/admin/campaigns/{asked.campaign['id']}/placements",
        json={"placementId": asked.placement["id"], field: "accepted"},
    )

    assert error_fields(problem(changed, 400, "VALIDATION_FAILED")) == {field}
    assert error_fields(problem(made, 400, "VALIDATION_FAILED")) == {field}


async def test_an_account_cannot_remove_a_refusal_and_ask_again(control: ControlPlane, admin: Client) -> None:
    asked = await ask(control, placement={"isOpen": True})
    await asked.decide("refuse")

    body = problem(await asked.advertiser.delete(asked.link_path), 409, "CAMPAIGN_PLACEMENT_REFUSED")

    assert "publisher" in body["detail"]
    assert await asked.removed_by() == "link_refused"
    assert (await admin.delete(asked.link_path)).status_code == 204


async def test_the_publisher_has_an_inbox_and_the_list_of_a_placement(
    control: ControlPlane, admin: Client
) -> None:
    asked = await ask(control)
    other = await ask(control)
    path = f"/admin/placements/{asked.placement['id']}/links"

    inbox = (await asked.publisher.get("/admin/links", params={"state": "requested"})).json()
    listed = (await asked.publisher.get(path, params={"state": "requested"})).json()
    await asked.decide("accept")
    after = (await asked.publisher.get(path, params={"state": "requested"})).json()
    everything = (await admin.get("/admin/links")).json()

    assert inbox == listed
    assert [(one["campaignId"], one["campaignName"], one["banners"]) for one in listed["items"]] == [
        (asked.campaign["id"], asked.campaign["name"], 1)
    ]
    assert after["totalCount"] == 0
    assert {one["campaignId"] for one in everything["items"]} == {asked.campaign["id"], other.campaign["id"]}
    problem(await other.publisher.get(path), 404, "PLACEMENT_NOT_FOUND")
    problem(await asked.advertiser.get("/admin/links"), 403, "FORBIDDEN")


async def test_an_import_of_an_account_asks_too(control: ControlPlane, admin: Client) -> None:
    asked = await ask(control)
    second = await asked.publisher.make_placement()
    importer = Importer(asked.advertiser)
    link = {"campaignId": asked.campaign["id"], "placementId": second["slug"]}
    forged = {"campaignId": asked.campaign["id"], "placementId": asked.placement["slug"], "state": "accepted"}

    problems = await importer.problems({"links": [{**link, "state": "accepted"}, forged]})
    await importer.imported({"links": [link]})

    assert set(problems) == {"links[0].state", "links[1].state"}
    states = [one["state"] for one in (await admin.get("/admin/links")).json()["items"]]
    assert states == ["requested", "requested"]
    # What is there can be imported again by whom it belongs to, and moved by an admin.
    document = await importer.exported()
    assert {one["state"] for one in document["links"]} == {"requested"}
    again = await importer.imported(document)
    assert (again["created"], again["updated"]) == (0, 0)
    document["links"] = [{**one, "state": "accepted"} for one in document["links"]]
    await Importer(admin).imported(document)
    assert (await asked.link())["state"] == "accepted"


async def test_a_document_with_an_unknown_state_is_refused(admin: Client) -> None:
    campaign, placement = await admin.make_campaign(), await admin.make_placement()
    link = {"campaignId": campaign["id"], "placementId": placement["id"], "state": "perhaps"}

    problems = await Importer(admin).problems({"links": [link]})

    assert set(problems) == {"links[0].state"}


BAND: list[tuple[Json, str, str]] = [
    ({"displayOrder": 99}, "displayOrder", "must be at least 100"),
    ({"weight": 101}, "weight", "must be at most 100"),
    ({"isFallback": True, "fallbackPriority": 99}, "fallbackPriority", "must be at least 100"),
]


@pytest.mark.parametrize(("fields", "field", "message"), BAND)
async def test_order_and_weight_of_an_account_stay_below_the_house(
    fields: Json, field: str, message: str, control: ControlPlane, admin: Client
) -> None:
    asked = await ask(control)
    banner = await asked.advertiser.make_banner()
    path = f"{asked.link_path}/banners"

    made = await asked.advertiser.post(path, json={"bannerId": banner["id"], **fields})
    changed = await asked.advertiser.patch(f"{path}/{asked.banner['id']}", json=fields)
    item = {"campaignId": asked.campaign["id"], "placementId": asked.placement["id"]}
    imported = await Importer(asked.advertiser).problems(
        {"assignments": [{**item, "bannerId": banner["id"], **fields}]}
    )

    for answer in (made, changed):
        [error] = problem(answer, 400, "VALIDATION_FAILED")["errors"]
        assert error["field"] == field
        assert error["message"].startswith(message)
    assert [text.startswith(message) for text in imported.values()] == [True]
    assert (await admin.patch(f"{path}/{asked.banner['id']}", json=fields)).status_code == 200


async def test_an_assignment_of_an_account_begins_in_its_band(control: ControlPlane, admin: Client) -> None:
    asked = await ask(control)
    assigned = f"{asked.link_path}/banners/{asked.banner['id']}"
    banner = await asked.advertiser.make_banner()
    item: dict[str, Any] = {"campaignId": asked.campaign["id"], "placementId": asked.placement["id"]}

    [made] = (await asked.advertiser.get(f"{asked.link_path}/banners")).json()["items"]
    await Importer(asked.advertiser).imported({"assignments": [{**item, "bannerId": banner["id"]}]})

    assert (made["displayOrder"], made["weight"], made["fallbackPriority"]) == (100, 100, None)
    orders = (await asked.advertiser.get(f"{asked.link_path}/banners")).json()["items"]
    assert {one["displayOrder"] for one in orders} == {100}
    # What an admin has set stays while the account changes something else.
    await admin.patch(assigned, json={"displayOrder": 0, "weight": 500})
    kept = await asked.advertiser.patch(assigned, json={"overrideHeadline": "Tea"})
    assert (kept.status_code, kept.json()["displayOrder"], kept.json()["weight"]) == (200, 0, 500)


@pytest.mark.parametrize("noun", ["campaigns", "banners"])
async def test_the_priority_of_an_account_has_a_bound(
    noun: str, control: ControlPlane, admin: Client
) -> None:
    asked = await ask(control)
    thing = asked.campaign if noun == "campaigns" else asked.banner
    path = f"/admin/{noun}/{thing['id']}"

    refused = problem(await asked.advertiser.patch(path, json={"priority": 101}), 400, "VALIDATION_FAILED")

    assert refused["errors"] == [
        {"field": "priority", "message": "must be at most 100: what is beyond is for the house"}
    ]
    assert (await asked.advertiser.patch(path, json={"priority": 100})).status_code == 200
    assert (await admin.patch(path, json={"priority": 101})).status_code == 200
    assert (await asked.advertiser.patch(path, json={"priority": 101})).status_code == 200


@pytest.mark.parametrize(
    ("bid", "floor", "removed_by"),
    [
        ({"bidAmount": None}, 0, "no_bid"),
        ({"bidAmount": 0}, 0, "no_bid"),
        ({"bidAmount": 1}, 0, None),
        ({"bidAmount": 1.9}, 2, "floor"),
        ({"bidAmount": 2}, 2, None),
        # A click in a hundred, and a bit: 0.1 a click is 1.2 a thousand impressions.
        ({"bidAmount": 0.1, "bidType": "cpc"}, 2, "floor"),
        ({"bidAmount": 0.2, "bidType": "cpc"}, 2, None),
    ],
)
async def test_a_campaign_of_an_account_pays_the_floor_of_a_direct_placement(
    bid: Json, floor: float, removed_by: str | None, control: ControlPlane
) -> None:
    asked = await ask(control, campaign=bid, placement={"floorCpm": floor})
    await asked.decide("accept")

    assert await asked.removed_by() == removed_by


async def test_the_house_pays_nobody_and_may_give_its_own_space_away(admin: Client) -> None:
    publisher = await admin.make_publisher()
    advertiser = await admin.make_advertiser()
    house, theirs = await admin.make_placement(), await admin.make_placement(publisherId=publisher["id"])
    found: dict[tuple[str, str], str | None] = {}
    for owner, fields in (("house", {}), ("account", {"advertiserId": advertiser["id"]})):
        campaign, banner = await admin.make_campaign(**fields), await admin.make_banner(**fields)
        await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")
        for place in (house, theirs):
            await admin.link(campaign, place)
            await admin.assign(campaign, place, banner)
            answer = (await admin.get(f"/banners/explain/{place['slug']}")).json()
            found[owner, place["slug"]] = next(
                one.get("removedBy") for one in answer["candidates"] if one["adId"] == banner["id"]
            )

    assert found[("house", theirs["slug"])] in {None, "slots_filled"}
    assert found[("account", house["slug"])] is None
    assert found[("account", theirs["slug"])] == "no_bid"


@pytest.mark.parametrize(("site_name", "removed_by"), [(None, "site_missing"), ("A site", None)])
async def test_who_blocks_sites_is_not_shown_where_the_site_is_unknown(
    site_name: str | None, removed_by: str | None, control: ControlPlane, admin: Client
) -> None:
    advertiser = await admin.make_advertiser(blockedSites=["bad.example.com"])
    publisher = await admin.make_publisher()
    site = await admin.make_site(publisherId=publisher["id"])
    placement = await admin.make_placement(
        publisherId=publisher["id"], siteId=site["id"] if site_name else None
    )
    campaign = await admin.make_campaign(advertiserId=advertiser["id"], bidAmount=1)
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, await admin.make_banner(advertiserId=advertiser["id"]))
    await admin.patch(f"/admin/campaigns/{campaign['id']}/activate")

    async with control.acting_as(Role.PUBLISHER, UUID(publisher["id"])) as client:
        answer = await client.get(f"/banners/explain/{placement['slug']}")

    assert answer.json()["candidates"][0].get("removedBy") == removed_by


async def test_a_publisher_sees_every_banner_on_its_placement_with_its_numbers(
    control: ControlPlane, admin: Client, pool: Pool
) -> None:
    asked = await ask(control, overrideHeadline="Only here")
    house = await admin.make_campaign()
    await admin.link(house, asked.placement)
    await admin.assign(house, asked.placement, await admin.make_banner())
    await pool.execute(
        """
        INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions, clicks)
        SELECT '2026-11-15T11:00:00Z', banners.id, placements.id, campaigns.id, 700, 7
          FROM banners, placements, campaigns
         WHERE banners.public_id = $1 AND placements.public_id = $2 AND campaigns.public_id = $3
        """,
        *(UUID(thing["id"]) for thing in (asked.banner, asked.placement, asked.campaign)),
    )
    path = f"/admin/placements/{asked.placement['id']}/banners"

    listed = (await asked.publisher.get(path, params={"sort": "createdAt"})).json()

    assert listed["totalCount"] == 2
    [theirs, ours] = listed["items"]
    assert (theirs["bannerId"], theirs["headline"]) == (asked.banner["id"], "Only here")
    assert (theirs["impressions"], theirs["clicks"], ours["impressions"]) == (700, 7, 0)
    assert (theirs["linkState"], ours["linkState"]) == ("requested", "accepted")
    async with control.acting_as(Role.PUBLISHER) as other:
        problem(await other.get(path), 404, "PLACEMENT_NOT_FOUND")
    problem(await asked.advertiser.get(path), 403, "FORBIDDEN")


async def test_a_publisher_refuses_one_banner_and_the_account_cannot_undo_it(
    control: ControlPlane, admin: Client
) -> None:
    asked = await ask(control)
    await asked.decide("accept")
    path = f"{asked.decision_path}/banners/{asked.banner['id']}"
    own = f"{asked.link_path}/banners/{asked.banner['id']}"

    refused = await asked.publisher.post(path, json={"decision": "refuse", "reason": "Too loud"})

    assert (refused.status_code, refused.json()["isRefused"], refused.json()["reason"]) == (
        200,
        True,
        "Too loud",
    )
    assert await asked.removed_by() == "banner_refused"
    changed = problem(await asked.advertiser.patch(own, json={"isRefused": False}), 400, "VALIDATION_FAILED")
    assert error_fields(changed) == {"isRefused"}
    problem(await asked.advertiser.delete(own), 409, "BANNER_ASSIGNMENT_REFUSED")
    problem(await asked.advertiser.delete(asked.link_path), 409, "BANNER_ASSIGNMENT_REFUSED")
    trail = (await asked.advertiser.get("/admin/audit", params={"noun": "assignment"})).json()["items"]
    assert trail[0]["action"] == "refuse"
    async with control.acting_as(Role.PUBLISHER) as other:
        problem(await other.post(path, json={"decision": "accept"}), 404, "PLACEMENT_NOT_FOUND")
    assert (await admin.post(path, json={"decision": "accept"})).json()["isRefused"] is False
    assert await asked.removed_by() is None


@pytest.mark.parametrize("ended_by", ["refused link", "refused banner", "deleted banner"])
async def test_what_shows_nothing_any_more_does_not_hold_a_placement_back(
    ended_by: str, control: ControlPlane
) -> None:
    asked = await ask(control)
    await asked.decide("accept")
    path = f"/admin/placements/{asked.placement['id']}"
    problem(await asked.publisher.delete(path), 409, "PLACEMENT_HAS_ACTIVE_ASSIGNMENTS")

    if ended_by == "refused link":
        await asked.decide("refuse")
    elif ended_by == "refused banner":
        address = f"{asked.decision_path}/banners/{asked.banner['id']}"
        assert (await asked.publisher.post(address, json={"decision": "refuse"})).status_code == 200
    else:
        deleted = await asked.advertiser.delete(f"/admin/banners/{asked.banner['id']}")
        assert deleted.status_code == 204

    assert (await asked.publisher.delete(path)).status_code == 204
