"""The inbox of requests, the ads of a placement and the caps of a banner, as each role sees them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

from adloom.core.caller import Role
from adloom.core.ids import SystemIds
from tests.console.visitor import Visitor, make_person
from tests.support.builders import Json
from tests.support.control import ControlPlane

HTML = {"html": "https://ads.example.com/creative.html"}


async def a_request(console: ControlPlane, publisher_id: UUID, advertiser_id: UUID | None = None) -> Json:
    """Let an advertiser ask for a placement of a publisher, and return placement, campaign and banner."""
    async with (
        console.acting_as(Role.PUBLISHER, publisher_id) as publisher,
        console.acting_as(Role.ADVERTISER, advertiser_id or SystemIds().make()) as advertiser,
    ):
        placement = await publisher.make_placement(label="Front page")
        campaign = await advertiser.make_campaign(name="Lamps of autumn", bidAmount=2)
        banner = await advertiser.make_banner(title="Bright lamp", mediaVariants=HTML)
        await advertiser.link(campaign, placement)
        await advertiser.assign(campaign, placement, banner)
    return {"placement": placement, "campaign": campaign, "banner": banner}


@asynccontextmanager
async def logged_in(console: ControlPlane, role: Role, account_id: UUID | None) -> AsyncGenerator[Visitor]:
    await make_person(console, "pat@example.com", role, account_id=account_id)
    async with Visitor(console) as visitor:
        await visitor.log_in("pat@example.com")
        yield visitor


async def test_a_publisher_finds_requests_and_ads_with_the_buttons_that_decide(console: ControlPlane) -> None:
    publisher_id = SystemIds().make()
    asked = await a_request(console, publisher_id)
    await a_request(console, SystemIds().make())

    async with logged_in(console, Role.PUBLISHER, publisher_id) as publisher:
        inbox = (await publisher.get("/console/requests")).text
        refused = (await publisher.get("/console/requests?tab=refused")).text
        ads = (await publisher.get(f"/console/placements/{asked['placement']['id']}?tab=ads")).text

    assert inbox.count("Lamps of autumn") == 1
    assert '"Accept"' in inbox
    assert '"Refuse"' in inbox
    assert "No campaign was refused" in refused
    assert "Bright lamp" in ads
    assert "0 impressions · 0 clicks · revenue 0.00" in ads
    assert '"Accept"' in ads


async def test_a_publishers_overview_says_what_waits_for_its_word(console: ControlPlane) -> None:
    publisher_id = SystemIds().make()
    async with logged_in(console, Role.PUBLISHER, publisher_id) as publisher:
        before = (await publisher.get("/console")).text
        await a_request(console, publisher_id)
        await a_request(console, SystemIds().make())

        after = (await publisher.get("/console")).text

    assert "to accept or refuse" not in before
    assert "1 request for your placements to accept or refuse" in after


async def test_nothing_of_an_ad_is_loaded_before_its_preview_is_asked_for(console: ControlPlane) -> None:
    publisher_id = SystemIds().make()
    asked = await a_request(console, publisher_id)

    async with logged_in(console, Role.PUBLISHER, publisher_id) as publisher:
        pages = [
            (await publisher.get(path)).text
            for path in ("/console/requests", f"/console/placements/{asked['placement']['id']}?tab=ads")
        ]

    for page in pages:
        assert "creative.html" not in page
        assert "cdn.example.com/image.png" not in page


async def test_a_viewer_reads_the_inbox_and_has_no_buttons(console: ControlPlane) -> None:
    await a_request(console, SystemIds().make())

    async with logged_in(console, Role.VIEWER, None) as viewer:
        inbox = (await viewer.get("/console/requests")).text

    assert "Lamps of autumn" in inbox
    assert '"Accept"' not in inbox
    assert '"Refuse"' not in inbox


async def test_an_advertiser_sees_what_waits_and_what_was_refused(
    console: ControlPlane, ann: Visitor
) -> None:
    publisher_id, advertiser_id = SystemIds().make(), SystemIds().make()
    asked = await a_request(console, publisher_id, advertiser_id)
    path = f"/admin/placements/{asked['placement']['id']}/links/{asked['campaign']['id']}"
    page = f"/console/campaigns/{asked['campaign']['id']}?tab=banners"

    async with logged_in(console, Role.ADVERTISER, advertiser_id) as advertiser:
        waiting = (await advertiser.get(page)).text
        async with console.acting_as(Role.PUBLISHER, publisher_id) as publisher:
            await publisher.post(path, json={"decision": "refuse", "reason": "Too bright for us"})
        refused = (await advertiser.get(page)).text
        forbidden = await advertiser.get("/console/requests")

    assert "Waiting for the publisher" in waiting
    assert "Front page" in waiting
    assert (
        f"/console/placements/{asked['placement']['id']}" not in waiting
    )  # A page that is not for its role.
    assert "Too bright for us" in refused
    assert forbidden.status_code == 403
    assert "Too bright for us" in (await ann.get("/console/requests?tab=refused")).text


async def test_an_advertiser_without_a_bid_reads_that_it_needs_one(console: ControlPlane) -> None:
    advertiser_id = SystemIds().make()
    asked = await a_request(console, SystemIds().make(), advertiser_id)
    async with (
        console.acting_as(Role.ADVERTISER, advertiser_id) as owner,
        logged_in(console, Role.ADVERTISER, advertiser_id) as advertiser,
    ):
        bidding = (await advertiser.get(f"/console/campaigns/{asked['campaign']['id']}")).text
        await owner.patch(f"/admin/campaigns/{asked['campaign']['id']}", json={"bidAmount": None})
        free = (await advertiser.get(f"/console/campaigns/{asked['campaign']['id']}")).text
        new = (await advertiser.get("/console/campaigns/new")).text

    assert "It has no bid." not in bidding
    assert "It has no bid." in free
    assert "Empty: it is not shown on the placements of publishers." in new


async def test_the_caps_of_a_banner_have_a_page(console: ControlPlane, ann: Visitor) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        capped, free = await admin.make_banner(), await admin.make_banner()
        await admin.make_cap(capped, maxImpressionsPerUser=7, window="Week")
        await admin.make_cap(capped, maxImpressionsPerUser=2, window="Hour")

    page = (await ann.get(f"/console/banners/{capped['id']}?tab=caps")).text
    empty = (await ann.get(f"/console/banners/{free['id']}?tab=caps")).text

    assert page.index("At most 2") < page.index("At most 7")
    assert '"Add a cap"' in page
    assert "No caps yet" in empty
