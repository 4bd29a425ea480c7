"""Pages in a real browser: why a campaign is not shown, one auction, a report and its CSV, forms that help."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import msgspec
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from adloom.core.clock import ManualClock
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.events.auction_log.store import AuctionTables
from adloom.events.log.auction_bids import LOST
from adloom.events.ports import DecodedEntry
from adloom.runtime.postgres import Pool
from tests.events.builders import a_bid, a_win, an_auction
from tests.stats.event_writer import EventWriter, clicked, seen
from tests.support.builders import Json, banner_body, campaign_body, placement_body, rule_body
from tests.support.chromium import Visit, a_visit_again
from tests.support.console import RunningConsole, a_console
from tests.support.services import Services

pytestmark = pytest.mark.browser


class World(msgspec.Struct, frozen=True):
    """A console over a placement with three campaigns, of which some are not shown."""

    console: RunningConsole
    placement: Json
    shown: Json
    paused: Json
    for_germans: Json
    auction_id: UUID


@pytest.fixture(scope="module")
def world(services: Services) -> Iterator[World]:
    with a_console(services) as console, console.api() as api:
        placement = _made(
            api,
            "/admin/placements",
            placement_body(slug="front", label="Front page", layoutType="full_slider", maxBanners=3),
        )
        shown, banner = _an_ad(api, placement, "Spring")
        paused, _ = _an_ad(api, placement, "Winter")
        for_germans, _ = _an_ad(api, placement, "Herbst")
        rule = rule_body(campaignId=for_germans["id"], ruleType="country", operator="in", value=["DE"])
        _made(api, "/admin/targeting-rules", rule)
        api.patch(f"/admin/campaigns/{paused['id']}/pause").raise_for_status()
        auction_id = uuid4()
        console.in_database(lambda pool: _fill(pool, auction_id, placement, shown, banner))
        yield World(console, placement, shown, paused, for_germans, auction_id)


def _made(api: httpx.Client, path: str, body: Json) -> Json:
    return api.post(path, json=body).raise_for_status().json()


def _an_ad(api: httpx.Client, placement: Json, name: str) -> tuple[Json, Json]:
    campaign = _made(api, "/admin/campaigns", campaign_body(name=name))
    banner = _made(api, "/admin/banners", banner_body(title=f"Banner of {name}"))
    path = f"/admin/campaigns/{campaign['id']}/placements"
    _made(api, path, {"placementId": placement["id"]})
    _made(api, f"{path}/{placement['id']}/banners", {"bannerId": banner["id"]})
    api.patch(f"/admin/campaigns/{campaign['id']}/activate").raise_for_status()
    return campaign, banner


async def _fill(pool: Pool, auction_id: UUID, placement: Json, campaign: Json, banner: Json) -> None:
    """Store an auction that another account won, and some impressions, as of now."""
    now = datetime.now(UTC)
    place = PlacementId(UUID(placement["id"]))
    own = a_bid(
        banner=BannerId(UUID(banner["id"])),
        campaign=CampaignId(UUID(campaign["id"])),
        bid=7_000_000,
        ecpm=7_000_000,
        outcome=LOST,
    )
    auction = an_auction(
        auction_id,
        held_at=now,
        winner=a_win(campaign_id=CampaignId(uuid4()), placement_id=place),
        bids=a_bid(campaign=CampaignId(uuid4())) + own,
        removed=(),
    )
    tables = AuctionTables(pool, clock=ManualClock(now), kept_days=7)
    after = await tables.read_cursor()
    await tables.commit([DecodedEntry("1-0", auction)], after=after, cursor="1-0")
    events = [seen(banner, placement, campaign, at=now, country="FR") for _ in range(4)]
    await EventWriter(pool).write(*events, clicked(banner, placement, campaign, at=now, country="FR"))


@pytest.fixture
def visit(profile: BrowserContext, world: World) -> Iterator[Visit]:
    """A page that logs no error and sends no request to another host."""
    with a_visit_again(profile) as visit:
        yield visit
        assert visit.errors == []
        own = (world.console.url, world.console.url.replace("http", "ws"), "data:", "blob:")
        assert [request.url for request in visit.requests if not request.url.startswith(own)] == []


def choose(page: Page, field: str, text: str) -> None:
    """Choose from a list by typing."""
    page.locator(f'[data-field="{field}"] input, input[data-field="{field}"]').first.fill(text)
    page.get_by_role("option", name=text).first.click()


def test_the_page_says_why_a_paused_and_a_targeted_campaign_are_not_shown(world: World, visit: Visit) -> None:
    page = visit.page
    world.console.log_in(page, goal="/console/why")

    choose(page, "placement", "Front page")
    choose(page, "country", "France")
    page.get_by_role("button", name="Explain").click()

    page.wait_for_url("**/console/why?**placement=front**")
    assert "country=FR" in page.url
    expect(page.get_by_text("“Banner of Spring” would be shown to this reader.")).to_be_visible()
    expect(page.get_by_role("list", name="From all candidates to what is shown")).to_be_visible()
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="Banner of Winter")).to_contain_text("The campaign is paused.")
    germans = rows.filter(has_text="Banner of Herbst")
    expect(germans).to_contain_text("The campaign wants the country to be DE, and it is FR.")
    link = germans.get_by_role("link", name="Open the campaign")
    expect(link).to_have_attribute("href", f"/console/campaigns/{world.for_germans['id']}?tab=targeting")


def test_the_url_of_a_question_repeats_it(world: World, visit: Visit) -> None:
    page = visit.page

    world.console.log_in(page, goal="/console/why?placement=front&country=DE")

    expect(page.get_by_text("2 banners would be shown to this reader.")).to_be_visible()
    expect(page.locator('[data-field="country"]').first).to_have_value("Germany")


def test_the_page_says_why_a_campaign_does_not_deliver(world: World, visit: Visit) -> None:
    page = visit.page

    world.console.log_in(page, goal=f"/console/why?campaign={world.paused['id']}")

    expect(page.get_by_text("Why does “Winter” not deliver?")).to_be_visible()
    status = page.locator('[data-check="status"]')
    expect(status).to_have_attribute("data-state", "stops")
    expect(status).to_contain_text("Resume the campaign.")
    page.goto(f"{world.console.url}/console/why?campaign={world.for_germans['id']}")
    targeting = page.locator('[data-check="targeting"]')
    expect(targeting).to_have_attribute("data-state", "stops")
    expect(targeting).to_contain_text("0 of 4")


def test_an_auction_is_found_in_the_list_and_shown_in_detail(world: World, visit: Visit) -> None:
    page = visit.page
    world.console.log_in(page, goal="/console/auctions")
    expect(page.get_by_text("Price against eCPM")).to_be_visible()

    page.locator(f'tr[data-href="/console/auctions/{world.auction_id}"]').click()

    page.wait_for_url(f"**/console/auctions/{world.auction_id}")
    own = page.get_by_role("row").filter(has_text="Banner of Spring")
    expect(own).to_contain_text("lost")
    expect(own).to_contain_text("9.0001")
    page.get_by_role("link", name="Why?").last.click()
    page.wait_for_url(f"**/console/why?auction={world.auction_id}")
    expect(page.get_by_text("From all candidates to the winner")).to_be_visible()


def test_a_report_is_shown_and_downloaded_as_csv(world: World, visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    world.console.log_in(page, goal="/console/reports?by=campaign,country")

    expect(page.get_by_role("row").filter(has_text="Spring")).to_contain_text("France")
    expect(page.locator(".al-chart canvas")).to_be_visible()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download CSV").click()
    downloading.value.save_as(tmp_path / "sheet.csv")

    lines = (tmp_path / "sheet.csv").read_text(encoding="utf-8-sig").splitlines()
    assert lines[0].startswith("campaignId,country,campaignName,impressions,clicks")
    assert lines[1].startswith(f"{world.shown['id']},FR,Spring,4,1,0.25")


def test_a_form_suggests_and_refuses_before_it_is_sent(world: World, visit: Visit) -> None:
    page = visit.page
    world.console.log_in(page, goal="/console/placements/new")
    label, slug = page.get_by_label("Label", exact=True), page.get_by_label("Slug", exact=True)
    label.fill("Home page, top")
    expect(slug).to_have_value("home-page-top")
    label.fill("Home page, below")
    expect(slug).to_have_value("home-page-below")
    slug.fill("my-own")
    label.fill("Elsewhere")
    label.press("Tab")
    expect(slug).to_have_value("my-own")

    page.get_by_role("button", name="Your account").click()
    page.get_by_text("Change password").click()
    dialog = page.get_by_role("dialog")
    new = dialog.get_by_label("New password", exact=True)
    again = dialog.get_by_label("New password, again")
    new.fill("short")
    expect(dialog.get_by_text("must have at least 10 characters")).to_be_visible()
    new.fill("a much longer one")
    expect(dialog.get_by_text("must have at least 10 characters")).to_have_count(0)
    again.fill("a much longer two")
    expect(dialog.get_by_text("is not the same as above")).to_be_visible()
    again.fill("a much longer one")
    expect(dialog.get_by_text("is not the same as above")).to_have_count(0)
