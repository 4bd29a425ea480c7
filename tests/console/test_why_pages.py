"""The page "Why?" over HTTP: for a visitor, for a past auction, and for a campaign that does not deliver."""

import html
import re
from collections.abc import AsyncGenerator
from uuid import UUID, uuid4

import pytest

from adloom.console.pages.why.candidates import STEPS
from adloom.core.caller import Role
from adloom.core.ids import BannerId, CampaignId
from adloom.events.log.auction_bids import LOST
from adloom.runtime.postgres import Pool
from tests.console.visitor import Visitor, make_person
from tests.events.builders import a_bid, a_win, an_auction
from tests.support.auctions import apply_auctions
from tests.support.builders import Json
from tests.support.control import Client, ControlPlane
from tests.support.documents import Importer, a_large_market


@pytest.fixture
async def api(console: ControlPlane) -> AsyncGenerator[Client]:
    async with console.acting_as(Role.ADMIN) as client:
        yield client


async def an_ad(api: Client, placement: Json, **fields: object) -> tuple[Json, Json]:
    """Create an active campaign that shows a banner on the placement."""
    campaign = await api.make_campaign(**fields)
    banner = await api.make_banner(
        title=f"Banner of {campaign['name']}", advertiserId=campaign["advertiserId"]
    )
    await api.link(campaign, placement)
    await api.assign(campaign, placement, banner)
    await api.patch(f"/admin/campaigns/{campaign['id']}/activate")
    return campaign, banner


async def test_the_explanation_for_a_visitor_links_to_what_can_be_changed(ann: Visitor, api: Client) -> None:
    placement = await api.make_placement()
    shown, _ = await an_ad(api, placement, name="Spring")
    other, _ = await an_ad(api, placement, name="Summer")
    paused, _ = await an_ad(api, placement, name="Winter")
    await api.make_rule(other, ruleType="country", operator="in", value=["DE"])
    await api.patch(f"/admin/campaigns/{paused['id']}/pause")

    page = await ann.get(f"/console/why?placement={placement['slug']}&country=FR")

    assert page.status_code == 200
    assert "The campaign wants the country to be DE, and it is FR." in page.text
    assert f"/console/campaigns/{other['id']}?tab=targeting" in page.text
    assert "The campaign is paused." in page.text
    assert "Banner of Spring" in page.text
    assert shown["name"] in page.text


async def test_an_auction_is_explained_for_the_time_in_the_address(ann: Visitor, api: Client) -> None:
    placement = await api.make_placement(delivery="auction")
    await an_ad(api, placement, name="Spring", bidAmount=8)
    await an_ad(api, placement, name="Over soon", bidAmount=9, endsAt="2026-11-20T00:00:00Z")

    now = await ann.get(f"/console/why?placement={placement['slug']}")
    later = await ann.get(f"/console/why?placement={placement['slug']}&at=2026-11-21T10:00")

    assert "“Banner of Over soon” would win, and pay 8.01" in now.text
    assert "“Banner of Spring” would win" in later.text
    assert "The campaign was over at 2026-11-20 00:00:00 UTC." in later.text


async def test_the_funnel_also_counts_candidates_that_are_not_sent(ann: Visitor, api: Client) -> None:
    await Importer(api).imported(a_large_market(1_050))

    page = html.unescape((await ann.get("/console/why?placement=hero")).text)

    left = dict(re.findall(r'class=\\"name\\">([^<]*)</span>.*?class=\\"num\\">([^<]*)<', page))
    assert [
        left["All candidates"],
        left[STEPS["status"].label],
        left[STEPS["won"].label],
    ] == [
        "1,050",
        "2",
        "1",
    ]


async def test_a_question_that_makes_no_sense_shows_the_error_of_the_api(ann: Visitor, api: Client) -> None:
    placement = await api.make_placement()

    unknown = await ann.get("/console/why?placement=nowhere")
    wrong = await ann.get(f"/console/why?placement={placement['slug']}&device=toaster")
    empty = await ann.get(f"/console/why?placement={placement['slug']}")

    assert "There is no placement with this slug." in unknown.text
    assert "device must be" in wrong.text
    assert "Nothing is assigned to this placement" in empty.text


async def test_a_recorded_auction_shows_the_bid_that_would_have_won(
    ann: Visitor, api: Client, pool: Pool
) -> None:
    placement = await api.make_placement(delivery="auction")
    campaign, banner = await an_ad(api, placement, name="Spring", bidAmount=7)
    bids = a_bid(campaign=CampaignId(uuid4())) + a_bid(
        banner=BannerId(UUID(banner["id"])),
        campaign=CampaignId(UUID(campaign["id"])),
        bid=7_000_000,
        ecpm=7_000_000,
        outcome=LOST,
    )
    auction = an_auction(uuid4(), winner=a_win(campaign_id=CampaignId(uuid4())), bids=bids, removed=())
    await apply_auctions(pool, auction)

    why = await ann.get(f"/console/why?auction={auction.auction_id}")
    whole = await ann.get(f"/console/auctions/{auction.auction_id}")

    for page in (why, whole):
        assert "Another ad had a higher eCPM." in page.text
        assert "9.0001" in page.text
        assert "Banner of Spring" in page.text
    gone = await ann.get(f"/console/auctions/{uuid4()}")
    assert (gone.status_code, "There is no auction with this id." in gone.text) == (404, True)


async def test_a_campaign_shows_what_stops_it(ann: Visitor, api: Client) -> None:
    campaign, _ = await an_ad(api, await api.make_placement(), name="Winter")
    await api.patch(f"/admin/campaigns/{campaign['id']}/pause")

    page = await ann.get(f"/console/why?campaign={campaign['id']}")

    assert "Why does “Winter” not deliver?" in page.text
    assert "Resume the campaign." in page.text
    assert "Nobody has looked at its placements." in page.text


async def test_an_advertiser_asks_about_its_own_campaign(console: ControlPlane, api: Client) -> None:
    advertiser = await api.make_advertiser()
    own = await api.make_campaign(name="Own", advertiserId=advertiser["id"])
    foreign = await api.make_campaign(name="Foreign")
    await make_person(console, "bob@example.com", Role.ADVERTISER, account_id=UUID(advertiser["id"]))

    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")

        assert "The campaign is still a draft." in (await bob.get(f"/console/why?campaign={own['id']}")).text
        assert "There is no campaign" in (await bob.get(f"/console/why?campaign={foreign['id']}")).text


async def test_a_losing_advertiser_sees_that_another_account_won(
    console: ControlPlane, api: Client, pool: Pool
) -> None:
    advertiser = await api.make_advertiser()
    campaign = await api.make_campaign(name="Spring", advertiserId=advertiser["id"])
    banner = await api.make_banner(title="Tulips", advertiserId=advertiser["id"])
    others = b"".join(a_bid(campaign=CampaignId(uuid4()), outcome=LOST) for _ in range(13))
    own = a_bid(
        banner=BannerId(UUID(banner["id"])), campaign=CampaignId(UUID(campaign["id"])), ecpm=1, outcome=LOST
    )
    lost = an_auction(
        uuid4(),
        winner=a_win(campaign_id=CampaignId(uuid4())),
        bids=a_bid(campaign=CampaignId(uuid4())) + others + own,
        bid_count=15,
        removed=(),
    )
    unsold = an_auction(uuid4(), winner=None, bids=own, bid_count=1, removed=())
    await apply_auctions(pool, lost, unsold)
    await make_person(console, "bob@example.com", Role.ADVERTISER, account_id=UUID(advertiser["id"]))

    async with Visitor(console) as bob:
        await bob.log_in("bob@example.com")
        page = (await bob.get(f"/console/auctions/{lost.auction_id}")).text
        of_unsold = (await bob.get(f"/console/auctions/{unsold.auction_id}")).text

    assert [winner_in(page), winner_in(of_unsold)] == ["somebody else", "nobody"]
    assert '"type":"category","data":["Tulips"]' in page


def winner_in(page: str) -> str | None:
    found = re.search(r"<dt>Winner</dt><dd><[^>]*>([^<]*)<", html.unescape(page))
    return found and found[1]


async def test_every_link_of_an_answer_opens_for_the_account_that_asked(
    console: ControlPlane, api: Client
) -> None:
    publisher, advertiser = await api.make_publisher(), await api.make_advertiser()
    placement = await api.make_placement(publisherId=publisher["id"], isOpen=True)
    auction = await api.make_placement(publisherId=publisher["id"], delivery="auction")
    empty = await api.make_placement(publisherId=publisher["id"])
    own = {"advertiserId": advertiser["id"], "bidAmount": 5}
    await an_ad(api, placement, name="Spring", **own)
    await an_ad(api, placement, name="Summer", **own)
    paused, _ = await an_ad(api, placement, name="Winter", **own)
    waiting, refused = await an_ad(api, placement, name="May", **own)
    await api.patch(f"/admin/campaigns/{paused['id']}/pause")
    path = f"/admin/placements/{placement['id']}/links/{waiting['id']}"
    answer = await api.post(f"{path}/banners/{refused['id']}", json={"decision": "refuse"})
    assert answer.status_code == 200, answer.text
    slugs = [one["slug"] for one in (placement, auction, empty)]
    people = {
        "pia@example.com": (Role.PUBLISHER, publisher["id"]),
        "adam@example.com": (Role.ADVERTISER, advertiser["id"]),
    }

    pages: dict[str, str] = {}
    for email, (role, account) in people.items():
        await make_person(console, email, role, account_id=UUID(account))
        async with Visitor(console) as person:
            await person.log_in(email)
            found = [(await person.get(f"/console/why?placement={slug}")).text for slug in slugs]
            blank = links_in((await person.get("/console/why")).text)
            links = {one for page in found for one in links_in(page)} - blank
            opened = {link: (await person.get(link)).status_code for link in sorted(links)}
            assert {link: status for link, status in opened.items() if status != 200} == {}
            pages[email] = "".join(found)

    of_publisher = pages["pia@example.com"]
    assert "You have refused the banner." in of_publisher
    assert f"/console/placements/{placement['id']}?tab=ads" in of_publisher
    assert "/console/campaigns" not in of_publisher
    assert "Campaigns bid for every request of this placement" in of_publisher
    assert f"/console/campaigns/{paused['id']}" in pages["adam@example.com"]


def links_in(page: str) -> set[str]:
    """Return the addresses of the console's own pages that a page links to."""
    unescaped = html.unescape(page).replace("\\", "")
    found = re.findall(r"""["']?href["']?\s*[=:]\s*["']([^"']+)["']""", unescaped)
    return {one for one in found if one.startswith("/console") and "/assets/" not in one}
