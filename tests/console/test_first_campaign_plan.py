"""The plan of the guide: slugs made from labels, and a second try that continues where the first failed."""

import base64
from urllib.parse import parse_qs

import pytest

from adloom.console.client import ApiClient, ProblemError
from adloom.console.components.forms.checks import make_slug, suggest_slug
from adloom.console.pages.first_campaign.page import LAST, LENGTH_MAX, read_plan, write_query
from adloom.console.pages.first_campaign.steps import (
    STEPS,
    CampaignPlan,
    describe_placement,
    describe_slug,
    read_images,
    show_summary,
)
from adloom.core.caller import Role
from tests.console.visitor import Visitor
from tests.support.builders import banner_body
from tests.support.control import ControlPlane


def make_client(plane: ControlPlane) -> ApiClient:
    async def token(_is_active: bool) -> str:  # noqa: FBT001 - as its type says
        return plane.token(Role.ADMIN)

    return ApiClient(plane.app, token)


def a_plan(label: str = "Home, at the top", **campaign: object) -> CampaignPlan:
    plan = CampaignPlan()
    plan.placement = describe_placement(label, "full_static")
    plan.banner = banner_body(headline="Hello")
    plan.campaign = {"name": "First", **campaign}
    return plan


@pytest.mark.parametrize(
    ("label", "slug"),
    [
        ("Home page, at the top", "home-page-at-the-top"),
        ("  Über uns!  ", "uber-uns"),
        ("Größe", "grosse"),
        ("首页", "place"),
        ("x" * 300, "x" * 60),
    ],
)
def test_a_slug_is_made_from_the_label(label: str, slug: str) -> None:
    assert make_slug(label) == slug


@pytest.mark.parametrize(
    ("label", "current", "suggested", "slug"),
    [
        ("Home", "", "", "home"),
        ("Home page", "home", "home", "home-page"),
        ("", "home", "home", ""),
        ("Home page", "my-own", "home", "my-own"),
        ("Home page", "my-own", "", "my-own"),
    ],
)
def test_a_slug_follows_the_label_until_somebody_types_one(
    label: str, current: str, suggested: str, slug: str
) -> None:
    assert suggest_slug(label, current, suggested) == slug


def test_a_word_that_ad_blockers_look_for_is_pointed_out() -> None:
    assert describe_slug("home-hero") == "Your page will ask for it as home-hero."
    assert "'banner'" in describe_slug("home-banner")


async def test_a_plan_creates_everything_and_activates_the_campaign(console: ControlPlane) -> None:
    api, plan, steps = make_client(console), a_plan(), list[str]()

    await plan.carry_out(api, steps.append)

    assert tuple(steps) == STEPS
    assert plan.made["active"]["status"] == "active"
    [row] = (await api.get("/admin/assignments"))["items"]
    assert (row["placementSlug"], row["campaignName"], row["weight"]) == ("home-at-the-top", "First", 1000)


async def test_a_second_try_continues_where_the_first_failed(console: ControlPlane) -> None:
    api, plan, steps = make_client(console), a_plan(), list[str]()
    plan.campaign["name"] = ""

    with pytest.raises(ProblemError):
        await plan.carry_out(api, steps.append)
    refused_at = len(steps)
    plan.campaign["name"] = "Second try"
    await plan.carry_out(api, steps.append)

    assert steps[:refused_at] == ["placement", "banner"]
    assert (await api.get("/admin/placements"))["totalCount"] == 1
    assert (await api.get("/admin/banners"))["totalCount"] == 1
    assert (await api.get("/admin/campaigns"))["totalCount"] == 1


async def test_an_existing_placement_is_used(console: ControlPlane) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        placement = await admin.make_placement()
    api, plan = make_client(console), a_plan()
    plan.placement = placement

    await plan.carry_out(api, lambda _: None)

    assert (await api.get("/admin/placements"))["totalCount"] == 1


def test_a_plan_has_a_summary_of_one_sentence() -> None:
    free = a_plan()
    paid = a_plan(bidAmount=2.5, budgetDailyPaisa=123400, endsAt="2026-12-24T18:00:00Z")

    assert show_summary(free) == "“Hello” on “Home, at the top”, until you pause it, at no cost."
    assert show_summary(paid) == (
        "“Hello” on “Home, at the top”, until 2026-12-24, for 2.50 per thousand impressions and at most 1,234.00 a day."
    )


async def reload(api: ApiClient, plan: CampaignPlan, step: int) -> tuple[CampaignPlan, int]:
    return await read_plan(api, parse_qs(write_query(plan, step))["plan"][0])


async def test_a_reload_keeps_the_choices_and_what_was_made(console: ControlPlane) -> None:
    api, plan = make_client(console), a_plan(bidAmount=2.5, endsAt="2026-12-24T18:00:00Z")
    plan.where = {
        "choice": "new",
        "label": "Home, at the top",
        "layoutType": "full_static",
        "placementId": None,
    }
    plan.campaign["name"] = ""

    chosen, step = await reload(api, plan, 3)
    with pytest.raises(ProblemError):
        await plan.carry_out(api, lambda _: None)
    plan.campaign["name"] = "First"
    refused, _ = await reload(api, plan, 3)
    await refused.carry_out(api, lambda _: None)
    finished, last = await reload(api, refused, LAST)

    assert (chosen.banner, chosen.campaign, step) == (plan.banner, {**plan.campaign, "name": ""}, 3)
    assert chosen.placement == plan.placement
    assert set(refused.made) == set(STEPS)
    assert (await api.get("/admin/placements"))["totalCount"] == 1
    assert (finished.made["campaign"]["id"], last) == (refused.made["campaign"]["id"], LAST)


async def test_an_address_that_keeps_no_plan_begins_anew(console: ControlPlane) -> None:
    existing = b'{"step": 4, "where": {"choice": "existing", "placementId": "../x"}}'
    nowhere = b'{"step": 4, "where": {"choice": "existing"}}'
    encoded = [base64.urlsafe_b64encode(one).decode() for one in (b"{}", b'{"step": 3}', existing, nowhere)]

    for text in ("", "%%%", "A" * (LENGTH_MAX + 1), *encoded):
        plan, step = await read_plan(make_client(console), text)

        assert (plan.where, plan.made, step) == ({}, {}, 0), text


async def test_a_plan_without_its_choices_goes_back_to_them(console: ControlPlane) -> None:
    api, plan = make_client(console), a_plan()
    plan.where = {"choice": "new", "label": "Corner", "layoutType": "unknown"}
    plan.banner = {}

    kept, step = await reload(api, plan, LAST)

    assert (kept.placement["layoutType"], step) == ("full_static", 1)


async def test_a_reload_of_the_last_step_shows_the_live_check(console: ControlPlane, ann: Visitor) -> None:
    api, plan = make_client(console), a_plan()
    plan.where = {"choice": "new", "label": "Home, at the top", "layoutType": "full_static"}
    await plan.carry_out(api, lambda _: None)

    page = await ann.get(f"/console/first-campaign?{write_query(plan, LAST)}")

    assert page.status_code == 200
    assert "Your ad is on its way" in page.text


async def test_the_pictures_to_choose_from_are_not_an_advertisers(console: ControlPlane) -> None:
    api = make_client(console)
    owner = await api.post("/admin/advertisers", {"name": "Birch & Co"})
    await api.post("/admin/banners", banner_body(title="Ours"))
    theirs = banner_body(
        title="Theirs", advertiserId=owner["id"], primaryImageUrl="https://birch.example/1.png"
    )
    await api.post("/admin/banners", theirs)

    assert [banner["title"] for banner in await read_images(api)] == ["Ours"]
