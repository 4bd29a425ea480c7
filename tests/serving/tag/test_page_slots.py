"""All slots of a page in one request: directly filled, auctioned and contextual ones side by side."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from adloom.auction.bid import BidType
from adloom.auction.site_modes import ApprovalMode
from adloom.core.delivery import Delivery
from adloom.core.ids import BannerId, CampaignId, PlacementId, SiteId, SystemIds
from adloom.core.money import Micros
from adloom.events.frequency.counts import BannerFrequency
from adloom.events.frequency.windows import Window
from adloom.events.ingest.ivt.pages import PageCheck
from adloom.events.ingest.token import OfferToken
from adloom.market.approval import ApprovalRules
from adloom.market.results.window import NO_RESULTS
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.market.shortlist.table import ListedPage, ShortlistTable
from adloom.pages.follow.page_table import NO_PAGES, PageEntry
from adloom.pages.model import PageCategory, compute_expiry
from adloom.runtime.http.fast.fast_routes import DeferredAnswer, FastAnswer, FastRequest
from adloom.runtime.random import make_chance
from adloom.serving.contextual.api import SlotRoutes
from adloom.serving.contextual.fill import SlotFiller
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.contextual.slot_auctions import SlotAuctions
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.index.compile import Interner, compile_creatives
from adloom.serving.index.contextual import CreativeRow, CreativeTerms
from adloom.serving.index.index import Index, replace_placements
from adloom.serving.index.rows import AssignmentRow, FrequencyLimit, PlacementRow, compute_price
from adloom.serving.index.site import NO_SITES, compile_site
from adloom.serving.index.steps import run_steps
from adloom.serving.leases.reserve import Reserver
from adloom.serving.tag.page_slots import PageSlotRoutes
from adloom.serving.tag.unknown_slugs import SLUGS_MAX, UnknownSlugs
from adloom.targeting.rules import parse_rule
from tests.serving.auction.auction_server import KEYS, USER, AuctionServer
from tests.serving.auction.marketplace import NOON, a_row, a_slot
from tests.support.contextual import FakePages, FakeShortlists
from tests.support.rows import a_placement_row, a_site_row, an_assignment_row, an_id

SITE = SiteId(an_id(100))
TENNIS, SPORTS = "539", "483"
PAGE = "https://example.com/a"
DIRECT, AUCTION, TOP, SIDE = 1, 2, 3, 4
AGENT = (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0")


def a_place(key: int, slug: str, delivery: Delivery, **fields: Any) -> PlacementRow:
    return a_placement_row(key=key, id=PlacementId(an_id(key)), slug=slug, delivery=delivery, **fields)


PLACES = (
    a_place(DIRECT, "hero", Delivery.DIRECT, max_banners=1),
    a_slot(AUCTION, slug="feed-1"),
    a_place(TOP, "top", Delivery.CONTEXTUAL, site_key=1, max_banners=1, site="example.com"),
    a_place(SIDE, "side", Delivery.CONTEXTUAL, site_key=1, max_banners=1, site="example.com"),
)


def a_banner(number: int, **fields: Any) -> AssignmentRow:
    return an_assignment_row(
        placement_key=DIRECT,
        campaign_key=number,
        campaign_id=CampaignId(an_id(1_000 + number)),
        banner_key=number,
        banner_id=BannerId(an_id(2_000 + number)),
        title=f"direct {number}",
        **fields,
    )


def a_bid(number: int, bid: str = "2", **fields: Any) -> AssignmentRow:
    return a_row(number, bid, placement_key=AUCTION, title=f"bid {number}", **fields)


def a_creative(number: int, **fields: Any) -> CreativeRow:
    bid = Micros(5_000_000)
    row = a_row(number, bid, placement_key=-number, title=f"creative {number}", headline=None, **fields)
    row = msgspec.structs.replace(row, price=compute_price(BidType.CPM, bid))
    return CreativeRow(row, CreativeTerms(categories=(SPORTS,)))


class Publisher:
    """A page with slots of every kind, and what delivery holds of it."""

    def __init__(
        self,
        *rows: AssignmentRow,
        creatives: tuple[CreativeRow, ...] = (),
        places: Any = PLACES,
        draw: float = 1.0,
    ) -> None:
        self.server = server = AuctionServer(*rows, slots=places, draw=lambda: draw)
        self.pages, self.recent = FakePages(), RecentTexts()
        server.index = _with_creatives(server.index, creatives)
        self.know("example.com/a")
        listed = tuple(map(_candidate, creatives))
        until = NOON + timedelta(hours=48)
        page = ListedPage("example.com/a", 7, {"top": listed, "side": listed}, until)
        shortlists = FakeShortlists({SITE: ShortlistTable(version=7, pages={"example.com/a": page})})
        reserver = Reserver(server.states, server.leases)
        signer, frequency = KEYS.signer, DirectFrequency(server.frequency)
        parts = (lambda: server.index, server.clock, SystemIds())
        contextual = SlotRoutes(
            parts[0],
            self.pages,
            server.clock,
            SystemIds(),
            recent=self.recent,
            shortlists=shortlists,
            auctions=SlotAuctions(
                SlotFiller(
                    server.states,
                    reserver,
                    signer,
                    public_url="https://ads.example",
                    chance=make_chance(),
                    read_results=lambda _site_id: NO_RESULTS,
                )
            ),
            seal_user=signer.seal_user,
            page_check=PageCheck("https://ads.example"),
        )
        direct = ServeRoutes(
            parts[0],
            signer,
            server.clock,
            SystemIds(),
            public_url="https://ads.example",
            states=server.states,
            leases=server.leases,
        )
        self.routes = PageSlotRoutes(
            *parts,
            direct=direct,
            auctions=server.routes,
            contextual=contextual,
            states=server.states,
            frequency=frequency,
            is_paced=server.leases.registry.is_paced,
            unknown=(unknown := UnknownSlugs()),
        )
        self.read_unknown = lambda: unknown.read(server.index, server.clock.now())

    def know(self, url: str) -> None:
        entry = PageEntry(url, 1, (PageCategory(TENNIS, 0.9),), NOON, compute_expiry(NOON))
        self.pages.tables[SITE] = NO_PAGES.with_changes([entry])

    def serve(
        self, *slots: str, url: str | None = PAGE, origin: str = "https://example.com", **fields: Any
    ) -> FastAnswer | DeferredAnswer:
        body = {"url": url, "slots": slots or ("hero", "feed-1", "top", "side"), **fields}
        headers = [AGENT, (b"origin", origin.encode())]
        return self.routes.serve(
            FastRequest(b"POST", b"/v1/serve/page", headers=headers, body=json.dumps(body).encode())
        )

    def ask(self, *slots: str, **fields: Any) -> dict[str, Any]:
        answer = self.serve(*slots, **fields)
        assert isinstance(answer, FastAnswer)
        return json.loads(answer.body)


def _with_creatives(index: Index, creatives: tuple[CreativeRow, ...]) -> Index:
    return replace_placements(
        index,
        version=2,
        gone=(),
        placements=[
            run_steps(compile_creatives(one.assignment.campaign_id, [one], Interner())) for one in creatives
        ],
        banner_ids=index.banner_ids,
        campaign_ids=index.campaign_ids,
        sites=NO_SITES.replaced(
            (),
            [
                compile_site(
                    a_site_row(
                        key=1,
                        id=SITE,
                        domain="example.com",
                        verified_host="example.com",
                        floor=Micros(1_000_000),
                    ),
                    ApprovalRules(ApprovalMode.AUTOMATIC),
                )
            ],
        ),
    )


def _candidate(creative: CreativeRow) -> ShortlistCandidate:
    one = creative.assignment
    return ShortlistCandidate(
        banner_id=one.banner_id,
        campaign_id=one.campaign_id,
        advertiser_id=one.advertiser_id,
        category=SPORTS,
        category_score=0.5,
        cpm=one.bid or Micros(0),
    )


def titles(page: dict[str, Any]) -> dict[str, list[str]]:
    return {slug: [one["title"] for one in answer["banners"]] for slug, answer in page["slots"].items()}


def reasons(page: dict[str, Any]) -> dict[str, str | None]:
    return {slug: answer["reason"] for slug, answer in page["slots"].items()}


def read_token(banner: dict[str, Any]) -> OfferToken:
    offer = KEYS.verify(banner["trackingToken"].encode(), now=NOON)
    assert isinstance(offer, OfferToken)
    return offer


def test_slots_of_every_kind_are_filled_in_the_form_of_direct_delivery() -> None:
    publisher = Publisher(
        a_banner(11), a_bid(21, mobile_image_url="https://x.example/m.png"), creatives=(a_creative(31),)
    )

    page = publisher.ask("hero", "feed-1", "top")

    assert titles(page) == {"hero": ["direct 11"], "feed-1": ["bid 21"], "top": ["creative 31"]}
    slots = page["slots"]
    assert [one["delivery"] for one in slots.values()] == ["direct", "auction", "contextual"]
    assert set(reasons(page).values()) == {None}
    [direct], [auctioned], [contextual] = (one["banners"] for one in slots.values())
    assert direct.keys() | {"category"} == auctioned.keys() == contextual.keys()
    assert auctioned["mobileImageUrl"] == "https://x.example/m.png"
    assert contextual["headline"] is None
    assert contextual["category"] == {"id": SPORTS, "name": "Sports"}
    assert page["page"]["url"] == "https://example.com/a"
    assert page["page"]["state"] == "known"
    for slug, key in (("hero", DIRECT), ("feed-1", AUCTION), ("top", TOP)):
        offer = read_token(slots[slug]["banners"][0])
        assert offer.placement_id == an_id(key)
        assert str(offer.request_id) == slots[slug]["requestId"]
        assert slots[slug]["placement"]["slug"] == slug


def test_slugs_that_no_placement_has_are_remembered_for_an_hour_if_the_site_is_known() -> None:
    publisher = Publisher(a_banner(11))

    publisher.ask("hero", "heroo")
    publisher.ask("elsewhere", url="https://stranger.example/a")
    for number in range(30):
        publisher.ask(f"slot-{number}", "heroo", "Pay at evil.example", "evil.example", "a\nb", "\u202ex", "")

    known = publisher.read_unknown()
    publisher.server.clock.advance(timedelta(hours=1))
    assert known["heroo"] == "example.com"
    assert len(known) == SLUGS_MAX
    assert all(slug == "heroo" or slug.startswith("slot-") for slug in known)
    assert publisher.read_unknown() == {}


def test_a_page_without_contextual_slots_needs_no_address() -> None:
    page = Publisher(a_banner(11)).ask("hero", url=None)

    assert titles(page) == {"hero": ["direct 11"]}
    assert page["page"] is None


def test_no_campaign_and_no_banner_is_twice_in_contextual_slots() -> None:
    publisher = Publisher(creatives=(a_creative(31), a_creative(32)))

    for _ in range(20):
        shown = titles(publisher.ask("top", "side"))
        assert sorted([*shown["top"], *shown["side"]]) == ["creative 31", "creative 32"]
    page = Publisher(creatives=(a_creative(31),)).ask("top", "side")
    assert reasons(page) == {"top": None, "side": "on_page_already"}


def test_a_banner_that_is_on_the_page_wins_an_auction_only_if_no_other_can() -> None:
    places = (*PLACES, a_slot(5, slug="feed-2"))
    both = [a_bid(21, "9"), a_bid(22, "2")]
    again = [msgspec.structs.replace(one, placement_key=5) for one in both]

    page = Publisher(*both, *again, places=places).ask("feed-1", "feed-2")
    alone = Publisher(both[0], again[0], places=places).ask("feed-1", "feed-2")

    assert titles(page) == {"feed-1": ["bid 21"], "feed-2": ["bid 22"]}
    assert titles(alone) == {"feed-1": ["bid 21"], "feed-2": ["bid 21"]}


@pytest.mark.parametrize("times", [None, 1])
async def test_where_the_winner_is_left_out_by_its_pace_the_next_best_is_one_that_is_not_on_the_page(
    times: int | None,
) -> None:
    frequency = () if times is None else (FrequencyLimit(Window.DAY, times),)
    paced = a_bid(21, "9", is_limited=True)
    rows = (paced, a_bid(22, "5", frequency=frequency), a_bid(23, "2"))
    again = tuple(msgspec.structs.replace(one, placement_key=5) for one in rows)
    places = (*PLACES, a_slot(5, slug="feed-2"))

    async def ask(*bids: AssignmentRow) -> dict[str, list[str]]:
        publisher = Publisher(*bids, places=places, draw=0.0)
        publisher.server.grant(1_000_000, throttle=0.5)
        user = {} if times is None else {"userId": str(USER)}
        answer = publisher.serve("feed-1", "feed-2", **user)
        return titles(json.loads((answer if isinstance(answer, FastAnswer) else await answer).body))

    assert await ask(*rows, *again) == {"feed-1": ["bid 22"], "feed-2": ["bid 23"]}
    alone = await ask(*rows[:2], *again[:2])
    assert alone == {"feed-1": ["bid 22"], "feed-2": ["bid 22"] if times is None else []}


def test_a_banner_that_is_on_the_page_wins_where_all_others_are_left_out_by_their_pace() -> None:
    rows = (a_bid(21, "9"), a_bid(22, "5", is_limited=True))
    again = tuple(msgspec.structs.replace(one, placement_key=5) for one in rows)
    publisher = Publisher(*rows, *again, places=(*PLACES, a_slot(5, slug="feed-2")), draw=0.0)
    publisher.server.grant(1_000_000, throttle=0.5)

    page = publisher.ask("feed-1", "feed-2")

    assert titles(page) == {"feed-1": ["bid 21"], "feed-2": ["bid 21"]}


def test_an_empty_slot_says_why() -> None:
    publisher = Publisher()
    assert reasons(publisher.ask()) == dict.fromkeys(("hero", "feed-1", "top", "side"), "no_demand")

    only_phones = (parse_rule("device", "in", ["mobile"]),)
    publisher = Publisher(a_banner(11, rules=only_phones), a_bid(21, rules=only_phones))
    publisher.pages.tables[SITE] = NO_PAGES
    assert reasons(publisher.ask("hero", "feed-1", "top")) == {
        "hero": "targeting",
        "feed-1": "no_demand",
        "top": "page_unknown",
    }

    later = Publisher(a_banner(11, starts_at=NOON + timedelta(days=1)))
    assert reasons(later.ask("hero")) == {"hero": "campaign_inactive"}

    limited = a_banner(11, is_limited=True, price=compute_price(BidType.CPM, Micros(5_000_000)))
    assert reasons(Publisher(limited).ask("hero")) == {"hero": "budget"}
    paced = Publisher(limited, draw=0.0)
    paced.server.grant(10**9, throttle=0.5)
    assert reasons(paced.ask("hero")) == {"hero": "pacing"}


def test_a_slug_that_is_not_there_is_told_and_the_others_are_filled() -> None:
    page = Publisher(a_banner(11)).ask("hero", "hreo")

    assert page["slots"]["hreo"]["errorCode"] == "PLACEMENT_NOT_FOUND"
    assert page["slots"]["hero"]["banners"][0]["title"] == "direct 11"


@pytest.mark.parametrize(
    ("url", "canonical", "expected"),
    [
        pytest.param("http://127.0.0.1:8080/x", PAGE, "https://example.com/a", id="seen elsewhere"),
        pytest.param(PAGE, "https://original.example/a", "https://example.com/a", id="syndicated"),
        pytest.param(PAGE + "?q=1", PAGE, "https://example.com/a", id="its own"),
        pytest.param("about:srcdoc", None, None, id="no address"),
        pytest.param("https://evil.example/", "javascript:1", None, id="another site"),
    ],
)
def test_a_page_is_known_by_the_address_that_is_of_the_site(
    url: str, canonical: str | None, expected: str | None
) -> None:
    page = Publisher(creatives=(a_creative(31),)).ask("top", url=url, canonicalUrl=canonical)

    if expected is None:
        assert page["page"] is None
        assert page["slots"]["top"]["errorCode"] == "SITE_HOST_MISMATCH"
    else:
        assert page["page"]["url"] == expected
        assert titles(page) == {"top": ["creative 31"]}


def test_offers_to_a_page_of_another_site_are_free() -> None:
    publisher = Publisher(creatives=(a_creative(31),))

    own = publisher.ask("top")
    claimed = publisher.ask(
        "top", url="https://evil.example/", canonicalUrl=PAGE, origin="https://evil.example"
    )

    assert read_token(own["slots"]["top"]["banners"][0]).charge
    stolen = read_token(claimed["slots"]["top"]["banners"][0])
    assert stolen.is_void
    assert not stolen.lease


@pytest.mark.parametrize(
    ("origin", "is_wanted"), [("https://example.com", True), ("https://evil.example", False)]
)
def test_the_text_of_an_unknown_page_is_wanted_only_from_itself(origin: str, *, is_wanted: bool) -> None:
    publisher = Publisher()
    publisher.pages.tables[SITE] = NO_PAGES

    page = publisher.ask("top", origin=origin, canonicalUrl=PAGE, url=f"{origin}/a")

    assert page["page"]["state"] == "unknown"
    assert (page["page"]["reclassifyInMs"] <= 0) is is_wanted


async def test_one_look_up_keeps_what_a_visitor_has_seen_often_enough_from_all_slots() -> None:
    once = (FrequencyLimit(Window.DAY, 1),)
    rows = [a_banner(11, frequency=once), a_bid(21, "9", frequency=once), a_bid(22, "2")]
    publisher = Publisher(*rows, creatives=(a_creative(31, frequency=once), a_creative(32)))
    publisher.server.counts.shown[USER] = [
        BannerFrequency(Window.DAY, str(an_id(2_000 + number)), 1) for number in (11, 21, 31)
    ]

    answer = publisher.serve("hero", "feed-1", "top", userId=str(USER))
    assert isinstance(answer, DeferredAnswer)
    page = json.loads((await answer).body)

    assert titles(page) == {"hero": [], "feed-1": ["bid 22"], "top": ["creative 32"]}
    assert reasons(page)["hero"] == "frequency"
    assert len(publisher.server.counts.asked) == 1


def test_what_the_page_shows_already_is_shown_again_only_if_nothing_else_can_be() -> None:
    rows = [a_banner(11), a_banner(12), a_bid(21, "9"), a_bid(22, "2")]
    publisher = Publisher(*rows, creatives=(a_creative(31), a_creative(32)))
    publisher.server.index = msgspec.structs.replace(
        publisher.server.index,
        banner_ids=publisher.server.index.banner_ids.with_more(
            (an_id(2_000 + number), number) for number in (31, 32)
        ),
    )

    def ask_beside(*shown: dict[str, Any]) -> dict[str, list[str]]:
        return titles(publisher.ask("hero", "feed-1", "top", shown=shown))

    def name(number: int) -> dict[str, Any]:
        return {"bannerId": str(an_id(2_000 + number))}

    alone = titles(publisher.ask("hero", "feed-1"))
    others = ask_beside(*map(name, (11, 21, 31)))
    again = ask_beside(*map(name, (11, 12, 21, 22)), {"bannerId": str(USER)})
    campaign = ask_beside({**name(99), "campaignId": str(a_creative(31).assignment.campaign_id)})

    assert alone == {"hero": ["direct 11"], "feed-1": ["bid 21"]}
    assert others == {"hero": ["direct 12"], "feed-1": ["bid 22"], "top": ["creative 32"]}
    assert again | alone == again
    assert campaign["top"] == ["creative 32"]


@pytest.mark.parametrize("times", [1, 3])
async def test_what_has_a_frequency_cap_is_not_twice_on_a_page(times: int) -> None:
    capped = (FrequencyLimit(Window.WEEK, 9), FrequencyLimit(Window.DAY, times))
    hero, feed = msgspec.structs.replace(PLACES[0], key=6, slug="hero-2"), a_slot(5, slug="feed-2")
    rows = [a_banner(11, frequency=capped), a_bid(21, frequency=capped)]
    others = [msgspec.structs.replace(one, placement_key=key) for one, key in zip(rows, (6, 5), strict=True)]
    publisher = Publisher(*rows, *others, places=(*PLACES, hero, feed))
    publisher.server.counts.shown[USER] = [
        BannerFrequency(Window.DAY, str(an_id(2_000 + number)), times - 1) for number in (11, 21)
    ]

    answer = publisher.serve("hero", "hero-2", "feed-1", "feed-2", userId=str(USER))
    assert isinstance(answer, DeferredAnswer)
    page = json.loads((await answer).body)

    assert titles(page) == {"hero": ["direct 11"], "hero-2": [], "feed-1": ["bid 21"], "feed-2": []}
    assert [reasons(page)[slug] for slug in ("hero-2", "feed-2")] == ["frequency", "frequency"]


def test_capped_bids_are_withheld_from_a_visitor_without_an_id() -> None:
    once = (FrequencyLimit(Window.DAY, 1),)
    publisher = Publisher(a_bid(21, "9", frequency=once), a_bid(22, "2"))

    assert titles(publisher.ask("feed-1")) == {"feed-1": ["bid 22"]}
