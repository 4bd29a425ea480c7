"""What a campaign buys in contextual delivery, and the banners that it shows there."""

from typing import Any

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from tests.support.builders import Json, campaign_body
from tests.support.control import Client, ControlPlane, problem
from tests.support.for_each import for_each

SPORTS, TENNIS, CATS, BEER = "483", "539", "424", "1004"
WAR, ATHLETICS = "389", "540"
UNKNOWN = "01890000-0000-7000-8000-000000000000"


def path_of(campaign: Json) -> str:
    return f"/admin/campaigns/{campaign['id']}/creatives"


async def add(client: Client, campaign: Json, banner: Json) -> Json:
    return await client.made(path_of(campaign), {"bannerId": banner["id"]})


async def listed(client: Client, campaign: Json) -> list[str]:
    return [one["bannerId"] for one in (await client.get(path_of(campaign))).json()["items"]]


async def test_a_campaign_has_the_published_defaults(admin: Client) -> None:
    campaign = await admin.make_campaign()

    wanted: Json = {
        "categories": [],
        "excludedCategories": [],
        "adProductCategory": None,
        "bidsOnUnmatched": False,
        "targetCpa": None,
        "bidStrategy": "fixed",
    }
    assert {field: campaign[field] for field in wanted} == wanted


async def test_a_campaign_comes_back_as_it_was_made_and_changed(admin: Client) -> None:
    fields: Json = {
        "categories": [TENNIS, CATS],
        "excludedCategories": [WAR, ATHLETICS],
        "adProductCategory": BEER,
        "bidsOnUnmatched": True,
        "targetCpa": 2.5,
        "bidStrategy": "fleet",
    }
    campaign = await admin.make_campaign(**fields)
    path = f"/admin/campaigns/{campaign['id']}"
    changed = await admin.patch(path, json={"categories": [CATS, SPORTS, CATS], "targetCpa": None})

    assert {field: campaign[field] for field in fields} == fields
    assert (changed.json()["categories"], changed.json()["targetCpa"]) == ([CATS, SPORTS], None)
    assert (await admin.get(path)).json() == changed.json()


@for_each(
    ("field", "value"),
    [
        ("categories", ["no-such"]),
        ("categories", [BEER]),
        ("categories", [TENNIS] * 51),
        ("excludedCategories", ["no-such"]),
        ("excludedCategories", [BEER]),
        ("excludedCategories", [WAR] * 51),
        ("adProductCategory", "no-such"),
        ("adProductCategory", TENNIS),
        ("bidsOnUnmatched", 1),
        ("targetCpa", -1),
        ("targetCpa", 0),
        ("targetCpa", 0.00001),
        ("bidStrategy", "luck"),
    ],
)
async def test_a_bad_field_of_a_campaign_is_refused_by_name(field: str, value: Any, admin: Client) -> None:
    answer = await admin.post("/admin/campaigns", json=campaign_body(**{field: value}))

    errors = problem(answer, 400, "VALIDATION_FAILED")["errors"]
    assert {error["field"].split(".")[0] for error in errors} == {field}


async def test_a_campaign_excludes_below_what_it_wants_and_nothing_of_that(admin: Client) -> None:
    fields: Json = {"categories": [SPORTS], "excludedCategories": [TENNIS, WAR, TENNIS]}
    campaign = await admin.make_campaign(**fields)
    path = f"/admin/campaigns/{campaign['id']}"
    assert campaign["excludedCategories"] == [TENNIS, WAR]

    both = await admin.patch(path, json={"categories": [SPORTS, WAR]})
    above = await admin.patch(path, json={"categories": [TENNIS], "excludedCategories": [SPORTS]})

    assert [problem(one, 400, "VALIDATION_FAILED")["errors"] for one in (both, above)] == [
        [
            {
                "field": "excludedCategories",
                "message": "has 389 (War and Conflicts), and the campaign bids on it: no page would be left. "
                "Take 389 out of categories, or 389 out of excludedCategories",
            }
        ],
        [
            {
                "field": "excludedCategories",
                "message": "has 483 (Sports), and the campaign bids on 539 (Tennis) below it: "
                "no page would be left. Take 539 out of categories, or 483 out of excludedCategories",
            }
        ],
    ]


async def test_a_banner_has_a_size(admin: Client) -> None:
    sized, plain = await admin.make_banner(width=300, height=250), await admin.make_banner()
    path = f"/admin/banners/{sized['id']}"

    assert (sized["width"], sized["height"]) == (300, 250)
    assert (plain["width"], plain["height"]) == (None, None)
    for field in ("width", "height"):
        errors = problem(await admin.patch(path, json={field: 0}), 400, "VALIDATION_FAILED")["errors"]
        assert errors[0]["field"] == field


async def test_a_creative_is_added_listed_and_removed(admin: Client) -> None:
    campaign, banner = await admin.make_campaign(), await admin.make_banner()

    creative = await add(admin, campaign, banner)

    assert creative == {
        "campaignId": campaign["id"],
        "bannerId": banner["id"],
        "createdAt": "2026-11-15T12:00:00Z",
    }
    assert (await admin.get(path_of(campaign))).json()["items"] == [creative]
    assert (await admin.delete(f"{path_of(campaign)}/{banner['id']}")).status_code == 204
    assert await listed(admin, campaign) == []
    problem(await admin.delete(f"{path_of(campaign)}/{banner['id']}"), 404, "CREATIVE_NOT_FOUND")


async def test_a_change_of_creatives_is_one_of_the_campaign(admin: Client, pool: Pool) -> None:
    campaign, banner = await admin.make_campaign(), await admin.make_banner()
    newest = "SELECT noun FROM catalog_changes ORDER BY version DESC LIMIT 1"

    await add(admin, campaign, banner)
    assert await pool.fetchval(newest) == "campaign"
    await admin.delete(f"{path_of(campaign)}/{banner['id']}")

    entries = (await admin.get(f"/admin/audit?campaignId={campaign['id']}")).json()["items"]
    assert [(one["noun"], one["action"]) for one in entries[:2]] == [
        ("creative", "delete"),
        ("creative", "create"),
    ]
    assert await pool.fetchval(newest) == "campaign"


async def test_what_cannot_be_added_is_refused(admin: Client) -> None:
    campaign, banner = await admin.make_campaign(), await admin.make_banner()
    gone, ended = await admin.make_banner(), await admin.make_campaign()
    await admin.delete(f"/admin/banners/{gone['id']}")
    await admin.delete(f"/admin/campaigns/{ended['id']}")
    await add(admin, campaign, banner)

    problem(await admin.post(path_of(campaign), json={"bannerId": UNKNOWN}), 404, "BANNER_NOT_FOUND")
    problem(await admin.post(path_of(campaign), json={"bannerId": gone["id"]}), 404, "BANNER_NOT_FOUND")
    problem(
        await admin.post(path_of(campaign), json={"bannerId": banner["id"]}), 409, "CREATIVE_ALREADY_EXISTS"
    )
    problem(
        await admin.post(path_of({"id": UNKNOWN}), json={"bannerId": banner["id"]}), 404, "CAMPAIGN_NOT_FOUND"
    )
    problem(
        await admin.post(path_of(ended), json={"bannerId": banner["id"]}), 409, "CAMPAIGN_ALREADY_DELETED"
    )
    problem(await admin.post(path_of(campaign), json={}), 400, "VALIDATION_FAILED")


async def test_an_advertiser_shows_its_own_banners_in_its_own_campaigns(control: ControlPlane) -> None:
    async with (
        control.acting_as(Role.ADVERTISER, SystemIds().make()) as advertiser,
        control.acting_as(Role.ADVERTISER, SystemIds().make()) as other,
    ):
        campaign, banner = await advertiser.make_campaign(), await advertiser.make_banner()
        theirs = await other.make_banner()
        await add(advertiser, campaign, banner)

        problem(
            await advertiser.post(path_of(campaign), json={"bannerId": theirs["id"]}), 404, "BANNER_NOT_FOUND"
        )
        problem(await other.get(path_of(campaign)), 404, "CAMPAIGN_NOT_FOUND")
        problem(
            await other.post(path_of(campaign), json={"bannerId": theirs["id"]}), 404, "CAMPAIGN_NOT_FOUND"
        )
        problem(await other.delete(f"{path_of(campaign)}/{banner['id']}"), 404, "CAMPAIGN_NOT_FOUND")
        assert await listed(advertiser, campaign) == [banner["id"]]


async def test_a_campaign_has_so_many_creatives(admin: Client, pool: Pool) -> None:
    campaign, banner = await admin.make_campaign(), await admin.make_banner()
    document = {
        "banners": [
            {"key": str(number), "title": "Tea", "primaryImageUrl": "https://cdn.example.com/tea.png"}
            for number in range(201)
        ],
        "creatives": [{"campaignId": campaign["id"], "bannerId": str(number)} for number in range(201)],
    }

    refused = problem(await admin.post("/admin/import", json=document), 400, "VALIDATION_FAILED")
    document["creatives"].pop()
    taken = await admin.post("/admin/import", json=document)

    assert [error["field"] for error in refused["errors"]] == ["creatives[200]"]
    assert taken.status_code == 200, taken.text
    assert await pool.fetchval("SELECT count(*) FROM creatives") == 200
    answer = await admin.post(path_of(campaign), json={"bannerId": banner["id"]})
    problem(answer, 409, "CREATIVE_LIMIT_REACHED")


async def test_an_imported_creative_of_another_account_is_refused(control: ControlPlane) -> None:
    async with (
        control.acting_as(Role.ADVERTISER, SystemIds().make()) as advertiser,
        control.acting_as(Role.ADVERTISER, SystemIds().make()) as other,
    ):
        campaign, theirs = await advertiser.make_campaign(), await other.make_banner()
        document = {"creatives": [{"campaignId": campaign["id"], "bannerId": theirs["id"]}]}

        problem(await advertiser.post("/admin/import", json=document), 400, "VALIDATION_FAILED")
        assert await listed(advertiser, campaign) == []
