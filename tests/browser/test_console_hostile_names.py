"""Names that contain scripts, in a real browser: in charts, addresses and the guide the console shows them as text."""

from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import msgspec
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from adloom.core.clock import ManualClock
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.events.auction_log.store import AuctionTables
from adloom.events.ports import DecodedEntry
from adloom.runtime.postgres import Pool
from tests.events.builders import a_bid, a_win, an_auction
from tests.stats.event_writer import EventWriter, seen
from tests.support import builders
from tests.support.builders import Json
from tests.support.chromium import a_visit_again
from tests.support.console import RunningConsole, a_console
from tests.support.console_walk import HOSTILE as NAME
from tests.support.console_walk import PWNED
from tests.support.services import Services

pytestmark = pytest.mark.browser

PIXEL_OF = "([chart, at]) => getElement(chart.id.slice(1)).chart.convertToPixel({ gridIndex: 0 }, at)"
# Names in addresses, and where a name is a part of something else; `test_console_pictures` opens all other pages.
PAGES = (
    "/console/auctions?campaign={campaign}&placement=front",
    "/console/auctions/{auction}",
    "/console/why?auction={auction}",
    "/console/why?auction={auction}%23{name}",  # more than an id
    "/console/why?campaign={campaign}",
    "/console/why?placement=front&segment={name}",
    "/console/why?placement=front&device={name}",
    "/console/why?placement=direct&userId={name}",
    "/console/reports?by=campaign,banner,placement",
    "/console/reports?by=day,campaign",
    "/console/reports?by=campaign&campaignId={name}",
    "/console/campaigns?search={name}",
    "/console/campaigns/{campaign}?tab=targeting",
    "/console/requests?tab=accepted",
    "/console/jobs?queue={name}",
)


class World(msgspec.Struct, frozen=True):
    """A console over a catalog in which everything has the same hostile name, and the ids of its items."""

    console: RunningConsole
    ids: dict[str, str]


@pytest.fixture(scope="module")
def world(services: Services) -> Iterator[World]:
    with a_console(services) as console, console.api() as api:
        advertiser = _made(api, "/admin/advertisers", {"name": NAME, "dailyBudgetPaisa": 900})
        publisher = _made(api, "/admin/publishers", {"name": NAME})
        owned = {"publisherId": publisher["id"]}
        site = _made(api, "/admin/sites", builders.site_body(name=NAME, **owned))
        front = builders.placement_body(
            slug="front", label=NAME, delivery="auction", siteId=site["id"], **owned
        )
        placement = _made(api, "/admin/placements", front)
        direct = _made(api, "/admin/placements", builders.placement_body(slug="direct", label=NAME))
        body = builders.campaign_body(
            name=NAME, description=NAME, bidAmount=9, advertiserId=advertiser["id"], budgetDailyPaisa=900
        )
        campaign = _made(api, "/admin/campaigns", body)
        banner = _made(
            api, "/admin/banners", builders.banner_body(title=NAME, headline=NAME, primaryImageAlt=NAME)
        )
        for place in (placement, direct):
            path = f"/admin/campaigns/{campaign['id']}/placements"
            _made(api, path, {"placementId": place["id"]})
            _made(api, f"{path}/{place['id']}/banners", {"bannerId": banner["id"]})
        segments = {
            "campaignId": campaign["id"],
            "ruleType": "user_segment",
            "operator": "not_in",
            "value": [NAME],
        }
        _made(api, "/admin/targeting-rules", segments)
        api.patch(f"/admin/campaigns/{campaign['id']}/activate").raise_for_status()
        auction_id = uuid4()
        console.in_database(lambda pool: _fill(pool, auction_id, placement, campaign, banner))
        things = {
            "advertiser": advertiser, "publisher": publisher, "site": site, "placement": placement,
            "campaign": campaign, "banner": banner,
        }  # fmt: skip
        ids = {noun: str(thing["id"]) for noun, thing in things.items()}
        yield World(console, {**ids, "auction": str(auction_id), "name": quote(NAME)})


def _made(api: httpx.Client, path: str, body: Json) -> Json:
    answer = api.post(path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def _fill(pool: Pool, auction_id: UUID, placement: Json, campaign: Json, banner: Json) -> None:
    """Store an auction that the campaign won, and an impression."""
    now = datetime.now(UTC)
    own = CampaignId(UUID(campaign["id"]))
    ad = BannerId(UUID(banner["id"]))
    auction = an_auction(
        auction_id,
        held_at=now,
        winner=a_win(campaign_id=own, banner_id=ad, placement_id=PlacementId(UUID(placement["id"]))),
        bids=a_bid(banner=ad, campaign=own),
        removed=(),
    )
    tables = AuctionTables(pool, clock=ManualClock(now), kept_days=7)
    await tables.commit([DecodedEntry("1-0", auction)], after=await tables.read_cursor(), cursor="1-0")
    await EventWriter(pool).write(seen(banner, placement, campaign, at=now, country="FR"))


@pytest.fixture
def page(profile: BrowserContext) -> Iterator[Page]:
    with a_visit_again(profile) as visit:
        yield visit.page


def point_at(page: Page, chart: Locator, at: tuple[float, float]) -> None:
    """Move the mouse to a value of a chart."""
    chart.locator("canvas").first.wait_for()
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    across, up = page.evaluate(PIXEL_OF, [chart.element_handle(), at])
    assert box is not None
    page.mouse.move(box["x"] + across - 3, box["y"] + up)
    page.mouse.move(box["x"] + across, box["y"] + up)


def test_the_tooltip_of_a_dot_shows_the_campaign_name_as_text(world: World, page: Page) -> None:
    world.console.log_in(page, goal="/console/auctions")
    chart = page.get_by_role("img", name="Price against eCPM")

    point_at(page, chart, (9.0, 7.01))

    expect(chart.get_by_text("Price: 7.01")).to_be_visible()
    assert page.evaluate(PWNED) == [None, 0]
    expect(chart.get_by_text(NAME)).to_be_visible()


def test_the_tooltips_of_bars_show_names_as_text(world: World, page: Page) -> None:
    world.console.log_in(page, goal="/console/reports?by=campaign,banner")
    chart = page.locator(".al-chart")

    point_at(page, chart, (0, 0.5))

    expect(chart.get_by_text(NAME).first).to_be_visible()
    assert page.evaluate(PWNED) == [None, 0]


def test_a_name_never_runs_as_a_script(world: World, page: Page) -> None:
    world.console.log_in(page, goal="/console")
    ran: list[str] = []

    for path in PAGES:
        page.goto(f"{world.console.url}{path.format(**world.ids)}")
        page.locator("h1").first.wait_for()
        page.wait_for_function("() => window.did_handshake")
        ran += [path] if page.evaluate(PWNED) != [None, 0] else []

    assert ran == []


def test_a_name_never_runs_as_a_script_in_the_guide(world: World, page: Page) -> None:
    world.console.log_in(page, goal="/console/first-campaign")

    page.get_by_text("On a new placement").click()
    page.get_by_role("button", name="Next").click()

    page.locator(".al-pictures button").first.wait_for()
    assert page.evaluate(PWNED) == [None, 0]
