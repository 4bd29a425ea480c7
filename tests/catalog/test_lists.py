"""Every filter and every order of every list, over HTTP."""

from typing import Any

import pytest

from tests.support.control import Client, problem

# What to create, and which of them a filter finds; each has one unique word.
WORDS = {"banners": "title", "placements": "slug", "campaigns": "name", "sites": "domain"}
LATER = "2026-11-16T00:00:00Z"


async def make_banners(admin: Client) -> None:
    await admin.make_reference("brand", id=7)
    await admin.make_reference("category", id=8)
    await admin.make_banner(title="plain", priority=3)
    await admin.make_banner(title="off", isActive=False, headline="Leaves FALL", expiresAt=LATER)
    await admin.make_banner(
        title="later", publishAt=LATER, source="sponsored", tags=["sale", "x"], priority=1
    )
    await admin.make_banner(title="ours", brandId=7, categoryId=8, priority=2)
    gone = await admin.make_banner(title="gone", brandId=7)
    assert (await admin.delete(f"/admin/banners/{gone['id']}")).status_code == 204


async def make_placements(admin: Client) -> None:
    await admin.make_placement(slug="plain", label="B", sortOrder=3)
    await admin.make_placement(slug="off", label="A", isActive=False, layoutType="popup", sortOrder=1)
    await admin.make_placement(
        slug="auction", label="C", delivery="auction", placementType="feed", sortOrder=2
    )


async def make_campaigns(admin: Client) -> None:
    birch, ash = [(await admin.make_advertiser(name=name))["id"] for name in ("birch", "Ash")]
    await admin.make_campaign(
        name="plain",
        priority=3,
        description="Leaves FALL",
        budgetDailyPaisa=200,
        bidAmount=2,
        advertiserId=birch,
    )
    running = await admin.make_campaign(
        name="running", source="affiliate", priority=1, startsAt=LATER, budgetDailyPaisa=100, bidAmount=1.5,
        advertiserId=ash,
    )  # fmt: skip
    assert (await admin.patch(f"/admin/campaigns/{running['id']}/schedule")).status_code == 200
    gone = await admin.make_campaign(name="gone", priority=2, advertiserName="Oak & Co")
    assert (await admin.delete(f"/admin/campaigns/{gone['id']}")).status_code == 204


async def make_sites(admin: Client) -> None:
    await admin.make_site(domain="b.example.com", name="Alpha")
    await admin.make_site(domain="a.example.com", name="Beta", timezone="Asia/Tokyo")


MAKERS = {
    "banners": make_banners,
    "placements": make_placements,
    "campaigns": make_campaigns,
    "sites": make_sites,
}

FILTERS: dict[str, list[tuple[dict[str, Any], set[str]]]] = {
    "banners": [
        ({}, {"plain", "off", "later", "ours"}),
        ({"isActive": "false"}, {"off"}),
        ({"isActive": "true", "source": "sponsored"}, {"later"}),
        ({"scheduleStatus": "evergreen"}, {"plain", "ours"}),
        ({"scheduleStatus": "scheduled"}, {"later"}),
        ({"scheduleStatus": "active"}, {"off"}),
        ({"scheduleStatus": "expired"}, set()),
        ({"source": "internal"}, {"plain", "off", "ours"}),
        ({"brandId": "7"}, {"ours"}),
        ({"brandId": "8"}, set()),
        ({"categoryId": "8"}, {"ours"}),
        ({"brandId": "7", "includeDeleted": "true"}, {"ours", "gone"}),
        ({"tag": "sale"}, {"later"}),
        ({"tag": "SALE"}, set()),
        ({"search": "leaves fall"}, {"off"}),
    ],
    "placements": [
        ({}, {"plain", "off", "auction"}),
        ({"isActive": "false"}, {"off"}),
        ({"layoutType": "popup"}, {"off"}),
        ({"delivery": "auction"}, {"auction"}),
        ({"delivery": "direct", "isActive": "true"}, {"plain"}),
        ({"delivery": "contextual"}, set()),
        ({"search": "AUC"}, {"auction"}),
    ],
    "campaigns": [
        ({}, {"plain", "running"}),
        ({"status": "draft"}, {"plain"}),
        ({"status": "scheduled"}, {"running"}),
        ({"source": "affiliate"}, {"running"}),
        ({"search": "leaves"}, {"plain"}),
        ({"search": "oak & co", "includeDeleted": "true"}, {"gone"}),
        ({"status": "draft", "includeDeleted": "true"}, {"plain", "gone"}),
    ],
    "sites": [
        ({}, {"a.example.com", "b.example.com"}),
        ({"search": "ALPHA"}, {"b.example.com"}),
        ({"search": "a.example"}, {"a.example.com"}),
    ],
}

# One field of each kind of order; equal items are in the order of creation.
ORDERS: dict[str, list[tuple[str, list[str]]]] = {
    "banners": [
        ("createdAt", ["plain", "off", "later", "ours"]),
        ("updatedAt", ["plain", "off", "later", "ours"]),
        ("title", ["later", "off", "ours", "plain"]),
        ("priority", ["off", "later", "ours", "plain"]),
        ("source", ["plain", "off", "ours", "later"]),
        ("isActive", ["off", "plain", "later", "ours"]),
        ("scheduleStatus", ["plain", "ours", "later", "off"]),
        ("publishAt", ["later", "plain", "off", "ours"]),
        ("expiresAt", ["off", "plain", "later", "ours"]),
    ],
    "placements": [
        ("createdAt", ["plain", "off", "auction"]),
        ("updatedAt", ["plain", "off", "auction"]),
        ("slug", ["auction", "off", "plain"]),
        ("label", ["off", "plain", "auction"]),
        ("sortOrder", ["off", "auction", "plain"]),
        ("isActive", ["off", "plain", "auction"]),
        ("delivery", ["plain", "off", "auction"]),
        ("placementType", ["plain", "off", "auction"]),
    ],
    "campaigns": [
        ("createdAt", ["plain", "running"]),
        ("updatedAt", ["plain", "running"]),
        ("name", ["plain", "running"]),
        ("status", ["plain", "running"]),
        ("source", ["plain", "running"]),
        ("priority", ["running", "plain"]),
        ("startsAt", ["running", "plain"]),
        ("endsAt", ["plain", "running"]),
        ("budgetDailyPaisa", ["running", "plain"]),
        ("bidAmount", ["running", "plain"]),
        ("advertiser", ["running", "plain"]),
    ],
    "sites": [
        ("createdAt", ["b.example.com", "a.example.com"]),
        ("updatedAt", ["b.example.com", "a.example.com"]),
        ("domain", ["a.example.com", "b.example.com"]),
        ("name", ["b.example.com", "a.example.com"]),
    ],
}


async def found(admin: Client, noun: str, **query: Any) -> list[str]:
    answer = await admin.get(f"/admin/{noun}", params=query)
    assert answer.status_code == 200, answer.text
    return [one[WORDS[noun]] for one in answer.json()["items"]]


@pytest.mark.parametrize("noun", MAKERS)
async def test_a_filter_finds_exactly_the_matching_items(noun: str, admin: Client) -> None:
    await MAKERS[noun](admin)

    for query, expected in FILTERS[noun]:
        assert set(await found(admin, noun, **query)) == expected, query


@pytest.mark.parametrize("noun", MAKERS)
async def test_a_list_has_the_requested_order(noun: str, admin: Client) -> None:
    await MAKERS[noun](admin)

    for field, expected in ORDERS[noun]:
        assert await found(admin, noun, sort=field) == expected, field
        assert await found(admin, noun, sort=f"-{field}") == expected[::-1], field


@pytest.mark.parametrize("noun", MAKERS)
async def test_every_sort_field_is_tested(noun: str, admin: Client) -> None:
    body = problem(await admin.get(f"/admin/{noun}", params={"sort": "x"}), 400, "VALIDATION_FAILED")

    listed = body["errors"][0]["message"].removeprefix("must be one of ").partition(", with or")[0]
    assert set(listed.split(", ")) == {field for field, _ in ORDERS[noun]}


async def test_campaigns_without_a_bid_budget_or_advertiser_come_last_in_both_orders(admin: Client) -> None:
    await make_campaigns(admin)
    await admin.make_campaign(name="of the house")

    for field in ("bidAmount", "budgetDailyPaisa", "advertiser"):
        assert await found(admin, "campaigns", sort=field) == ["running", "plain", "of the house"], field
        assert await found(admin, "campaigns", sort=f"-{field}") == ["plain", "running", "of the house"], (
            field
        )


@pytest.mark.parametrize("noun", ["advertisers", "publishers"])
async def test_accounts_are_searched_and_sorted(noun: str, admin: Client) -> None:
    names = ["Birch", "Ash tree", "Cedar tree"]
    made = {name: await admin.made(f"/admin/{noun}", {"name": name}) for name in names}
    assert (await admin.delete(f"/admin/{noun}/{made['Ash tree']['id']}")).status_code == 204

    async def listed(**query: str) -> list[str]:
        items = (await admin.get(f"/admin/{noun}", params=query)).json()["items"]
        return [one["name"] for one in items]

    assert await listed() == ["Cedar tree", "Birch"]
    assert await listed(sort="name", includeDeleted="true") == ["Ash tree", "Birch", "Cedar tree"]
    assert await listed(search="TREE", includeDeleted="true", sort="-name") == ["Cedar tree", "Ash tree"]
    assert await listed(sort="-updatedAt", includeDeleted="true") == ["Ash tree", "Cedar tree", "Birch"]
