"""Approvals in the console: an inbox for publishers of their own sites, and for admins of all."""

from uuid import UUID

import pytest

from adloom.core.caller import Role
from adloom.runtime.postgres import Pool
from tests.console.visitor import Visitor, make_person
from tests.support.builders import NOON, Json
from tests.support.control import ControlPlane
from tests.support.pages import insert_approval

FAILED = "This could not be loaded"


@pytest.fixture
async def site(console: ControlPlane, pool: Pool) -> Json:
    """A site where one ad waits and one is rejected."""
    async with console.acting_as(Role.ADMIN) as admin:
        publisher, advertiser = await admin.make_publisher(), await admin.make_advertiser(name="Tea & Sons")
        site = await admin.make_site(domain="magazine.test", publisherId=publisher["id"])
        campaign = await admin.make_campaign(
            name="Autumn", advertiserId=advertiser["id"], adProductCategory="1004"
        )
        for title, state in (("<b>Assam</b>", "pending"), ("Too loud", "rejected")):
            banner = await admin.make_banner(
                title=title, advertiserId=advertiser["id"], ctaUrl="https://tea.example.com/"
            )
            await insert_approval(pool, site["id"], banner["id"], campaign["id"], at=NOON, state=state)
    return site


async def test_an_ad_that_waits_is_shown_with_what_a_publisher_must_know(ann: Visitor, site: Json) -> None:
    for address in ("/console/approvals", f"/console/sites/{site['id']}?tab=approvals"):
        shown = (await ann.get(address)).text

        assert FAILED not in shown
        assert "<b>Assam" not in shown
        assert "Too loud" not in shown
        for text in ("Assam", "Tea &", "Autumn", "tea.example.com", "Beer", "Waiting (1)", "Rejected (1)"):
            assert text.replace("&", "\\u0026amp;") in shown or text in shown, text


async def test_what_was_decided_is_in_a_list_of_its_own(ann: Visitor, site: Json) -> None:
    rejected = (await ann.get(f"/console/approvals?site={site['id']}&state=rejected")).text
    approved = (await ann.get(f"/console/sites/{site['id']}?tab=approvals&state=approved")).text

    assert "Too loud" in rejected
    assert "No ad is approved" in approved


async def test_a_publisher_decides_about_its_own_sites_only(console: ControlPlane, site: Json) -> None:
    await make_person(console, "owner@example.com", Role.PUBLISHER, account_id=UUID(site["publisherId"]))
    await make_person(console, "other@example.com", Role.PUBLISHER)
    await make_person(console, "buyer@example.com", Role.ADVERTISER)

    async with Visitor(console) as visitor:
        await visitor.log_in("owner@example.com")
        own = (await visitor.get("/console/approvals")).text
        await visitor.log_in("other@example.com")
        others = (await visitor.get(f"/console/approvals?site={site['id']}")).text
        await visitor.log_in("buyer@example.com")
        refused = await visitor.get("/console/approvals")

    assert "Assam" in own
    assert "Assam" not in others
    assert "No site yet" in others
    assert refused.status_code == 403


async def test_a_viewer_looks_and_decides_nothing(console: ControlPlane, site: Json) -> None:
    await make_person(console, "viewer@example.com", Role.VIEWER)

    async with Visitor(console) as viewer:
        await viewer.log_in("viewer@example.com")
        shown = (await viewer.get(f"/console/approvals?site={site['id']}")).text

    assert "Assam" in shown
    assert '"label":"Approve"' not in shown
    assert "<kbd>a" not in shown
