"""The list of assignments over all campaigns, and the tag that a publisher copies into a page."""

import asyncio
import uuid

import pytest

from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from tests.support.control import Client, ControlPlane, problem


async def test_assignments_are_listed_with_campaign_placement_and_banner_names(admin: Client) -> None:
    placement = await admin.make_placement(label="Hero", slug="hero", layoutType="half_pair")
    banner, campaign = await admin.make_banner(title="Leaves"), await admin.make_campaign(name="Autumn")
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner, weight=7, overrideHeadline="Now")

    answer = (await admin.get("/admin/assignments", params={"placementId": placement["id"]})).json()

    [row] = answer["items"]
    assert answer["totalCount"] == 1
    assert (row["campaignName"], row["campaignStatus"]) == ("Autumn", "draft")
    assert (row["placementLabel"], row["placementSlug"]) == ("Hero", "hero")
    assert (row["placementLayoutType"], row["placementDelivery"]) == ("half_pair", "direct")
    assert (row["bannerTitle"], row["bannerImageUrl"]) == ("Leaves", banner["primaryImageUrl"])
    assert (row["weight"], row["displayOrder"], row["overrideHeadline"]) == (7, 0, "Now")


async def test_assignments_are_listed_in_the_order_in_which_slots_are_filled(admin: Client) -> None:
    placement, campaign = await admin.make_placement(), await admin.make_campaign()
    await admin.link(campaign, placement)
    wanted = [
        {"displayOrder": 0, "weight": 200},
        {"displayOrder": 0, "weight": 100},
        {"displayOrder": 1, "weight": 900},
        {"displayOrder": 0, "weight": 999, "isFallback": True},
    ]
    banners = [await admin.make_banner() for _ in wanted]
    for number in (2, 0, 3, 1):
        await admin.assign(campaign, placement, banners[number], **wanted[number])

    answer = (await admin.get("/admin/assignments", params={"campaignId": campaign["id"]})).json()

    assert [row["bannerId"] for row in answer["items"]] == [banner["id"] for banner in banners]


async def test_a_link_without_banners_is_listed_too(admin: Client) -> None:
    placement, campaign = await admin.make_placement(), await admin.make_campaign()
    await admin.link(campaign, placement)

    [row] = (await admin.get("/admin/assignments", params={"campaignId": campaign["id"]})).json()["items"]

    assert (row["placementId"], row["bannerId"], row["weight"]) == (placement["id"], None, None)


async def test_deleted_campaigns_and_banners_are_not_listed(admin: Client) -> None:
    placement, campaign, other = (
        await admin.make_placement(),
        await admin.make_campaign(),
        await admin.make_campaign(),
    )
    banner = await admin.make_banner()
    for one in (campaign, other):
        await admin.link(one, placement)
        await admin.assign(one, placement, banner)
    await admin.delete(f"/admin/campaigns/{other['id']}")
    used = (await admin.get("/admin/assignments", params={"bannerId": banner["id"]})).json()
    await admin.delete(f"/admin/banners/{banner['id']}")

    left = (await admin.get("/admin/assignments", params={"placementId": placement["id"]})).json()

    assert [row["campaignId"] for row in used["items"]] == [campaign["id"]]
    assert [row["bannerId"] for row in left["items"]] == [None]


async def test_assignments_are_listed_in_pages(admin: Client) -> None:
    placement, campaign = await admin.make_placement(), await admin.make_campaign()
    await admin.link(campaign, placement)
    for _ in range(3):
        await admin.assign(campaign, placement, await admin.make_banner())

    pages = [
        (await admin.get("/admin/assignments", params={"page": page, "pageSize": 2})).json()
        for page in (1, 2)
    ]

    assert [len(page["items"]) for page in pages] == [2, 1]
    assert pages[0]["totalPages"] == 2


async def test_an_advertiser_lists_its_own_and_a_publisher_none(control: ControlPlane, admin: Client) -> None:
    placement = await admin.make_placement()
    async with control.acting_as(Role.ADVERTISER) as advertiser:
        campaign, banner = await advertiser.make_campaign(), await advertiser.make_banner()
        await advertiser.link(campaign, placement)
        await advertiser.assign(campaign, placement, banner)
        own = (await advertiser.get("/admin/assignments")).json()
    async with control.acting_as(Role.ADVERTISER) as other:
        others = (await other.get("/admin/assignments")).json()
    async with control.acting_as(Role.PUBLISHER) as publisher:
        refused = await publisher.get("/admin/assignments")

    assert [row["bannerId"] for row in own["items"]] == [banner["id"]]
    assert others["items"] == []
    problem(refused, 403, "FORBIDDEN")


async def test_lists_can_be_filtered_by_owner(admin: Client) -> None:
    advertiser, publisher = await admin.make_advertiser(), await admin.make_publisher()
    campaign = await admin.make_campaign(advertiserId=advertiser["id"])
    banner = await admin.make_banner(advertiserId=advertiser["id"])
    site = await admin.make_site(publisherId=publisher["id"])
    placement = await admin.make_placement(publisherId=publisher["id"], siteId=site["id"])
    await admin.make_campaign()
    await admin.make_banner()
    await admin.make_placement(siteId=(await admin.make_site())["id"])

    async def ids(path: str, **query: str) -> list[str]:
        return [row["id"] for row in (await admin.get(path, params=query)).json()["items"]]

    assert await ids("/admin/campaigns", advertiserId=advertiser["id"]) == [campaign["id"]]
    assert await ids("/admin/banners", advertiserId=advertiser["id"]) == [banner["id"]]
    assert await ids("/admin/sites", publisherId=publisher["id"]) == [site["id"]]
    assert await ids("/admin/placements", publisherId=publisher["id"]) == [placement["id"]]
    assert await ids("/admin/placements", siteId=site["id"]) == [placement["id"]]
    assert await ids("/admin/placements", siteId=str(uuid.uuid4())) == []


async def test_the_tag_of_a_placement_is_two_lines(admin: Client) -> None:
    placement = await admin.make_placement(slug="home-hero")

    tag = (await admin.get(f"/admin/placements/{placement['id']}/tag")).json()

    assert tag["html"].splitlines() == [
        '<script async src="http://127.0.0.1:8080/tag.js"></script>',
        '<div data-adloom="home-hero"></div>',
    ]
    assert tag["pageUrl"] == "http://127.0.0.1:8080/serve/home-hero.html"
    assert tag["pageUrl"] in tag["frameHtml"]


@pytest.mark.parametrize(
    ("fields", "style"),
    [
        ({"recommendedWidth": 300, "recommendedHeight": 250}, "aspect-ratio: 300 / 250; max-width: 300px"),
        ({"recommendedAspectRatio": "16:9"}, "aspect-ratio: 16 / 9"),
        ({"recommendedAspectRatio": '1"><b>'}, None),
        ({"recommendedAspectRatio": "4/0"}, None),
        ({"recommendedHeight": 90}, "height: 90px"),
        ({"recommendedWidth": 300, "recommendedHeight": 250, "layoutType": "popup"}, None),
    ],
)
async def test_the_tag_reserves_the_space_that_a_placement_recommends(
    admin: Client, fields: dict[str, object], style: str | None
) -> None:
    placement = await admin.make_placement(slug="home-hero", **fields)

    tag = (await admin.get(f"/admin/placements/{placement['id']}/tag")).json()

    space = "" if style is None else f' style="{style}"'
    assert tag["html"].splitlines()[1] == f'<div data-adloom="home-hero"{space}></div>'


async def test_the_trail_of_a_campaign_includes_its_rules_and_links(admin: Client) -> None:
    campaign, other = await admin.make_campaign(), await admin.make_campaign()
    placement, banner = await admin.make_placement(), await admin.make_banner()
    rules = [await admin.make_rule(one) for one in (campaign, other)]
    await admin.link(campaign, placement)
    await admin.assign(campaign, placement, banner)
    for rule in rules:
        await admin.delete(f"/admin/targeting-rules/{rule['id']}")

    trail = (await admin.get("/admin/audit", params={"campaignId": campaign["id"]})).json()

    assert [(entry["noun"], entry["action"]) for entry in trail["items"]] == [
        ("targeting_rule", "delete"),
        ("assignment", "create"),
        ("link", "create"),
        ("targeting_rule", "create"),
        ("campaign", "create"),
    ]


async def test_who_removes_a_placement_and_who_changes_its_links_do_not_wait_for_each_other(
    admin: Client, pool: Pool
) -> None:
    campaign, placement, banner = (
        await admin.make_campaign(),
        await admin.make_placement(),
        await admin.make_banner(),
    )
    await admin.link(campaign, placement)
    link = f"/admin/campaigns/{campaign['id']}/placements/{placement['id']}"
    decision = f"/admin/placements/{placement['id']}/links/{campaign['id']}"
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM placements FOR UPDATE")
        requests = [
            asyncio.create_task(one)
            for one in (
                admin.patch(link, json={"isActive": False}),
                admin.post(f"{link}/banners", json={"bannerId": banner["id"]}),
                admin.post(decision, json={"decision": "refuse"}),
            )
        ]
        await asyncio.wait(requests, timeout=0.5)
        await connection.execute("SELECT FROM campaign_placements FOR UPDATE NOWAIT")
    assert [(await one).status_code for one in requests] == [200, 201, 200]
