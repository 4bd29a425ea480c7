"""Campaigns and sites in the contextual market, as the console shows them."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from adloom.auction.floor_sweep import SweepPhase, SweepState, TickResult, advance
from adloom.console.pages.auctions.page import make_page_address
from adloom.console.pages.campaigns.contextual import WAITS, describe_band, describe_waits, list_rates
from adloom.console.pages.sites.market import REMOVED, describe_ticks
from adloom.console.pages.why.campaign import CHECKS
from adloom.console.pages.why.candidates import make_slot_question_url
from adloom.core.caller import Role
from adloom.core.ids import PlacementId, SiteId
from adloom.core.money import Micros
from adloom.events.log.event import RemovedCandidates
from adloom.explain.campaign.check import PASSES
from adloom.market.auctioneer.floors import FloorRow
from adloom.market.report.reach import BEST_FIRST, CAMPAIGN_INACTIVE, NO_SLOTS, REACHED, SITE_SUSPENDED
from adloom.market.store import MarketWriter
from adloom.runtime.postgres import Pool
from tests.console.visitor import Visitor, make_person
from tests.events.builders import a_bid, an_auction
from tests.support.auctions import apply_auctions
from tests.support.builders import Json
from tests.support.control import ControlPlane
from tests.support.pages import a_candidate, write_page, write_shortlist

CATS, PETS = "424", "422"
FAILED = "This could not be loaded"
COUNTS = """
    INSERT INTO events.event_counts (hour, banner_id, placement_id, campaign_id, impressions, clicks)
    SELECT date_trunc('hour', $4::timestamptz), banners.id, placements.id, campaigns.id, 1234, 7
      FROM banners, placements, campaigns
     WHERE banners.public_id = $1 AND placements.public_id = $2 AND campaigns.public_id = $3
"""
SPEND = """
    INSERT INTO spend_hours (hour, banner_id, placement_id, campaign_id, charges, spent_micros)
    SELECT date_trunc('hour', $4::timestamptz), banners.id, placements.id, campaigns.id, 7, 5670000
      FROM banners, placements, campaigns
     WHERE banners.public_id = $1 AND placements.public_id = $2 AND campaigns.public_id = $3
"""


class Market:
    """A site with a page about cats and a slot, and a campaign of an advertiser that wants pages about pets."""

    def __init__(self, site: Json, campaign: Json, banner: Json, slot: Json) -> None:
        self.site, self.campaign, self.banner, self.slot = site, campaign, banner, slot


@pytest.fixture
async def market(console: ControlPlane, pool: Pool) -> Market:
    async with console.acting_as(Role.ADMIN) as admin:
        publisher, advertiser = await admin.make_publisher(), await admin.make_advertiser(name="Tea & Sons")
        site = await admin.make_site(domain="magazine.test", publisherId=publisher["id"])
        slot = await admin.make_placement(
            slug="aside", publisherId=publisher["id"], siteId=site["id"], delivery="contextual"
        )
        banner = await admin.make_banner(title="Assam", advertiserId=advertiser["id"], width=300, height=250)
        campaign = await admin.make_campaign(
            name="Autumn", advertiserId=advertiser["id"], categories=[PETS], bidAmount=2
        )
        await admin.made(f"/admin/campaigns/{campaign['id']}/creatives", {"bannerId": banner["id"]})
    at = datetime.now(UTC)
    await write_page(pool, SiteId(UUID(site["id"])), "magazine.test/paws", at=at, categories={CATS: 0.9})
    return Market(site, campaign, banner, slot)


def test_all_that_keeps_a_campaign_from_pages_has_words() -> None:
    # Its pages are judged whether it can pay now or not.
    assert set(WAITS) == {*BEST_FIRST, SITE_SUSPENDED, NO_SLOTS} - {REACHED, CAMPAIGN_INACTIVE}
    assert set(PASSES) <= set(CHECKS)


def test_what_keeps_a_campaign_from_pages_is_said_with_counts() -> None:
    said = describe_waits({"removed": {"not_approved": 2, "below_floor": 12}, "bidMissing": 0.4}).striptags()

    assert said == "12 are above its bid by 0.40 2 wait for approval"


@pytest.mark.parametrize(
    ("low", "high", "said"), [(None, None, ""), (1, 3, "1.00 to 3.00"), (200, None, "200.00 or more")]
)
def test_a_going_rate_is_a_band_or_nothing(low: float | None, high: float | None, said: str) -> None:
    assert describe_band({"lowCpm": low, "highCpm": high}) == said


def test_a_category_without_pages_is_said_to_have_none() -> None:
    shown = list_rates([CATS], {}).striptags()

    assert "Cats" in shown
    assert "no pages yet" in shown
    assert "too few bid to say" in shown


async def test_a_campaign_says_which_pages_it_reaches_and_what_others_wait_for(
    ann: Visitor, market: Market
) -> None:
    shown = (await ann.get(f"/console/campaigns/{market.campaign['id']}?tab=contextual")).text

    assert FAILED not in shown
    for text in ("Assam", "300 \u00d7 250", "magazine.test", "1 wait for approval", "not active"):
        assert text in shown, text


async def test_a_campaign_that_wants_no_pages_says_how_to_choose_some(
    console: ControlPlane, ann: Visitor
) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        campaign = await admin.make_campaign()

    shown = (await ann.get(f"/console/campaigns/{campaign['id']}?tab=contextual")).text

    assert "It wants no pages yet" in shown
    assert "Choose categories" in shown
    assert "nothing is shown in contextual slots" in shown


async def test_the_form_of_a_campaign_has_categories_with_their_pages(ann: Visitor, market: Market) -> None:
    new = (await ann.get("/console/campaigns/new")).text
    settings = (await ann.get(f"/console/campaigns/{market.campaign['id']}?tab=settings")).text

    for field in ("categories", "excludedCategories", "adProductCategory", "bidStrategy", "targetCpa"):
        assert f'"data-field":"{field}"' in new, field
    assert "Pets · 1 page" in new
    assert "1 page on 1 site" in settings
    assert "Also pages that are about nothing clear" in settings


async def test_the_form_of_a_banner_has_its_size(ann: Visitor, market: Market) -> None:
    shown = (await ann.get(f"/console/banners/{market.banner['id']}")).text

    assert '"data-field":"width"' in shown
    assert '"data-field":"height"' in shown


async def test_an_advertiser_sees_its_own_reach_only(console: ControlPlane, market: Market) -> None:
    owner = UUID(market.campaign["advertiserId"])
    await make_person(console, "owner@example.com", Role.ADVERTISER, account_id=owner)
    await make_person(console, "other@example.com", Role.ADVERTISER)
    address = f"/console/campaigns/{market.campaign['id']}?tab=contextual"

    async with Visitor(console) as visitor:
        await visitor.log_in("owner@example.com")
        own = await visitor.get(address)
        await visitor.log_in("other@example.com")
        refused = await visitor.get(address)

    assert "magazine.test" in own.text
    assert refused.status_code == 404
    assert "magazine.test" not in refused.text


async def test_why_names_every_step_of_a_contextual_campaign(ann: Visitor, market: Market) -> None:
    shown = (await ann.get(f"/console/why?campaign={market.campaign['id']}")).text

    assert FAILED not in shown
    assert "Banners for contextual slots" in shown


async def list_candidates(pool: Pool, market: Market, *, is_pending: bool) -> None:
    candidate = a_candidate(
        market.banner["id"], market.campaign["id"], category=PETS, is_pending=is_pending, cpm=2_500_000
    )
    slots = {market.slot["slug"]: [candidate]}
    await write_shortlist(pool, market.site["id"], "magazine.test/paws", slots, at=datetime.now(UTC))


async def test_floors_that_move_are_shown_with_their_evidence(
    ann: Visitor, market: Market, pool: Pool, console: ControlPlane
) -> None:
    """With what a sweep itself has come to, as its store writes it."""
    sweep = SweepState(floor=Micros(500_000), floor_min=Micros(100_000))
    tick = TickResult(bids=(Micros(3_000_000), Micros(5_000_000)), impressions=40, revenue=Micros(80_000))
    while sweep.phase is not SweepPhase.USING:
        sweep = advance(sweep, tick)
    async with console.acting_as(Role.ADMIN) as admin:
        await admin.patch(f"/admin/sites/{market.site['id']}", json={"floorMode": "sweep"})
    row = FloorRow(site_id=SiteId(UUID(market.site["id"])), category=CATS, tick=1, state=sweep)
    async with pool.acquire() as connection:
        await MarketWriter().write(connection, [row])

    shown = (await ann.get(f"/console/sites/{market.site['id']}?tab=market")).text

    assert FAILED not in shown
    assert "moving, by category" in shown
    assert f"{sweep.floor / 1_000_000:,.2f}" in shown
    assert all(f"{one.floor / 1_000_000:,.2f}" in shown for one in sweep.tried)


async def test_a_page_links_to_the_auctions_on_record_of_each_slot(
    ann: Visitor, market: Market, pool: Pool, console: ControlPlane
) -> None:
    await list_candidates(pool, market, is_pending=False)
    async with console.acting_as(Role.ADMIN) as admin:
        [page] = (await admin.get(f"/admin/sites/{market.site['id']}/pages")).json()["items"]
    held = an_auction(
        placement_type="contextual",
        page_url="magazine.test/paws",
        placement_id=PlacementId(UUID(market.slot["id"])),
        held_at=datetime.now(UTC),
        winner=None,
        bid_count=0,
        bids=a_bid(outcome=2),
        removed=(RemovedCandidates("not_approved", 1),),
    )
    await apply_auctions(pool, held)

    address = make_page_address("magazine.test/paws", "aside")
    shown = (await ann.get(f"/console/sites/{market.site['id']}/pages/{page['id']}")).text
    listed = (await ann.get(address)).text
    detail = (await ann.get(f"/console/auctions/{held.auction_id}")).text

    assert address.partition("&")[0] in shown
    assert "Only auctions of the slot aside on magazine.test/paws." in listed
    assert FAILED not in listed + detail
    assert "The publisher has not approved the banner." in detail
    assert "magazine.test/paws" in detail
    question = make_slot_question_url("magazine.test/paws", "aside").partition("&")[0]
    assert question in shown
    assert question in detail, "the same can be asked now"


async def test_why_explains_a_slot_for_a_page(ann: Visitor, market: Market, console: ControlPlane) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        await admin.patch(f"/admin/campaigns/{market.campaign['id']}/activate")
    nameless = (await ann.get("/console/why?placement=aside")).text
    explained = (await ann.get(make_slot_question_url("magazine.test/paws", "aside"))).text
    elsewhere = (await ann.get(make_slot_question_url("other.test/paws", "aside"))).text

    assert "Which page?" in nameless
    assert FAILED not in explained
    for text in ("Cats (90", "Assam", "Autumn", "The publisher has not approved the banner."):
        assert text in explained, text
    assert "is not one of the site" in elsewhere


@pytest.mark.parametrize(("ticks", "said"), [(1, "15 minutes"), (4, "60 minutes"), (60, "15 hours")])
def test_quarters_of_an_hour_are_said_as_people_do(ticks: int, said: str) -> None:
    assert describe_ticks(ticks) == said


def test_all_that_keeps_campaigns_from_a_site_has_words() -> None:
    assert set(REMOVED) >= set(BEST_FIRST) - {REACHED, "not_approved"}


async def test_a_site_shows_who_wants_what_and_pages_that_nobody_wants(
    ann: Visitor, market: Market, pool: Pool
) -> None:
    before = (await ann.get(f"/console/sites/{market.site['id']}?tab=market")).text
    await list_candidates(pool, market, is_pending=True)
    after = (await ann.get(f"/console/sites/{market.site['id']}?tab=market")).text

    assert FAILED not in before
    for text in ("Demand by category", "Cats", "Nobody", "fixed", "0.50", "magazine.test/paws"):
        assert text in before, text
    assert "An ad wants a slot of every fresh page" in after
    assert "magazine.test/paws" not in after


async def test_a_site_without_pages_has_nothing_to_sell(console: ControlPlane, ann: Visitor) -> None:
    async with console.acting_as(Role.ADMIN) as admin:
        site = await admin.make_site(domain="empty.test")

    assert "Nothing to sell yet" in (await ann.get(f"/console/sites/{site['id']}?tab=market")).text


async def test_a_page_shows_who_competes_for_its_slots_by_name(
    console: ControlPlane, ann: Visitor, market: Market, pool: Pool
) -> None:
    owner = UUID(market.site["publisherId"])
    await make_person(console, "publisher@example.com", Role.PUBLISHER, account_id=owner)
    async with console.acting_as(Role.ADMIN) as admin:
        (page,) = (await admin.get(f"/admin/sites/{market.site['id']}/pages")).json()["items"]
    address = f"/console/sites/{market.site['id']}/pages/{page['id']}"

    async with Visitor(console) as visitor:
        await visitor.log_in("publisher@example.com")
        before = (await visitor.get(address)).text
        await list_candidates(pool, market, is_pending=True)
        after = (await visitor.get(address)).text

    assert "Nobody wants its slots" in before
    assert FAILED not in after
    for text in ("Assam", "Autumn", "Sons", "Waits for approval", "Decide about those that wait"):
        assert text in after, text
    assert "2.50" not in after, "bids are the advertisers'"
    assert "2.50" in (await ann.get(address)).text
    assert market.banner["id"] not in after


async def test_a_publisher_sees_what_was_shown_in_its_contextual_slot_with_its_revenue(
    console: ControlPlane, market: Market, pool: Pool
) -> None:
    owner = UUID(market.site["publisherId"])
    await make_person(console, "publisher@example.com", Role.PUBLISHER, account_id=owner)
    address = f"/console/placements/{market.slot['id']}?tab=ads"
    things = [UUID(one["id"]) for one in (market.banner, market.slot, market.campaign)]

    async with Visitor(console) as visitor:
        await visitor.log_in("publisher@example.com")
        before = (await visitor.get(address)).text
        for insert in (COUNTS, SPEND):
            await pool.execute(insert, *things, console.clock.now())
        after = (await visitor.get(address)).text

    assert "once they are approved for the site" in before
    assert FAILED not in after
    for text in ("Assam", "Autumn", "Revenue", "1,234", "5.67", "Preview and decide"):
        assert text in after, text


async def test_pages_are_found_by_whether_an_ad_wants_them(ann: Visitor, market: Market, pool: Pool) -> None:
    await list_candidates(pool, market, is_pending=False)
    tab = f"/console/sites/{market.site['id']}?tab=pages&hasCandidates="

    assert "magazine.test/paws" in (await ann.get(f"{tab}true")).text
    assert "magazine.test/paws" not in (await ann.get(f"{tab}false")).text
