"""The plan of the guide: slugs made from labels, and a second try that continues where the first failed."""

import pytest

from adloom.console.client import ApiClient, ProblemError
from adloom.console.pages.first_campaign.steps import (
    STEPS,
    CampaignPlan,
    describe_placement,
    describe_slug,
    make_slug,
    summary,
)
from adloom.core.actor import Role
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
        ("首页", "place"),
        ("x" * 300, "x" * 60),
    ],
)
def test_a_slug_is_made_from_the_label(label: str, slug: str) -> None:
    assert make_slug(label) == slug


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

    assert summary(free) == "“Hello” on “Home, at the top”, until you pause it, at no cost."
    assert summary(paid) == (
        "“Hello” on “Home, at the top”, until 2026-12-24, for 2.50 per thousand impressions and at most 1,234.00 a day."
    )
