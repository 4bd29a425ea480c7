"""One slot of a page: who may fill it, why nobody does, and at what price."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from adloom.auction.bid import BidType
from adloom.auction.site_modes import ApprovalMode, AuctionMode
from adloom.core.clock import ManualClock
from adloom.core.delivery import Delivery
from adloom.core.errors import ValidationFailedError
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, SiteId
from adloom.core.money import Micros
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.market.approval import ApprovalRules, ApprovalState
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.market.shortlist.table import ListedPage, ShortlistTable
from adloom.pages.follow.page_table import NO_PAGES, PageEntry
from adloom.pages.model import PageCategory, expiry
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.contextual.page_host import SiteHostMismatchError
from adloom.serving.index.compile import Interner, compile_creatives, compile_index
from adloom.serving.index.contextual import CreativeRow, CreativeTerms
from adloom.serving.index.index import Index, replace_placements
from adloom.serving.index.rows import AssignmentStatus, Snapshot, compute_price
from adloom.serving.index.site import NO_SITES, compile_site
from adloom.serving.index.steps import run_steps
from tests.support.contextual import FakePages, FakeShortlists, make_slot_routes
from tests.support.rows import a_placement_row, a_site_row, an_assignment_row, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SITE = SiteId(an_id(100))
UNIT = 1_000_000
TENNIS, SPORTS, FOOD = "539", "483", "210"


def campaign(number: int) -> CampaignId:
    return CampaignId(an_id(200 + number))


def banner(number: int) -> BannerId:
    return BannerId(an_id(300 + number))


def a_creative(
    number: int = 1, *, cpm: float = 5, terms: Mapping[str, Any] | None = None, **fields: Any
) -> CreativeRow:
    bid = Micros(round(cpm * UNIT))
    row = an_assignment_row(
        placement_key=-number,
        campaign_key=number,
        banner_key=number,
        campaign_id=campaign(number),
        banner_id=banner(number),
        advertiser_id=AdvertiserId(an_id(400 + number)),
        bid=bid,
        price=compute_price(BidType.CPM, bid),
        **fields,
    )
    return CreativeRow(row, msgspec.convert({"categories": (SPORTS,), **(terms or {})}, CreativeTerms))


def read_token(ad: dict[str, Any]) -> OfferToken:
    offer = TokenKeys("a secret of tests").verify(ad["trackingToken"].encode(), now=NOON)
    assert isinstance(offer, OfferToken)
    return offer


class Site:
    """A site with one known page, and what delivery holds of it."""

    def __init__(self, *creatives: CreativeRow, slot: Mapping[str, Any] | None = None, **site: Any) -> None:
        self.creatives = creatives
        self.approvals = ApprovalRules(ApprovalMode.AUTOMATIC)
        self.site = {"key": 1, "id": SITE, "domain": "example.com", "floor": Micros(UNIT // 2), **site}
        self.slot = {"key": 1, "id": PlacementId(an_id(1)), "slug": "top", **(slot or {})}
        self.clock = ManualClock(NOON)
        self.categories: tuple[str, ...] = (TENNIS,)
        self.category: str | None = SPORTS

    def index(self) -> Index:
        slots = [
            a_placement_row(**{"delivery": Delivery.CONTEXTUAL, "site_key": 1, **self.slot}),
            a_placement_row(
                delivery=Delivery.CONTEXTUAL, site_key=1, key=2, id=PlacementId(an_id(2)), slug="side"
            ),
        ]
        index = compile_index(
            Snapshot(version=1, placements=slots, assignments=[], banner_ids=[], campaign_ids=[])
        )
        own = [
            run_steps(compile_creatives(one.assignment.campaign_id, [one], Interner()))
            for one in self.creatives
        ]
        site = compile_site(a_site_row(**self.site), self.approvals)
        return replace_placements(
            index,
            version=2,
            gone=(),
            placements=own,
            banner_ids=index.banner_ids,
            campaign_ids=index.campaign_ids,
            sites=NO_SITES.replaced((), [site]),
        )

    def routes(self) -> Any:
        categories = tuple(PageCategory(one, 0.9) for one in self.categories)
        pages = FakePages()
        pages.tables[SITE] = NO_PAGES.with_changes(
            [PageEntry("example.com/a", 1, categories, NOON, expiry(NOON))]
        )
        candidates = tuple(
            ShortlistCandidate(
                banner_id=one.assignment.banner_id,
                campaign_id=one.assignment.campaign_id,
                advertiser_id=one.assignment.advertiser_id,
                category=self.category,
                category_score=0.5,
                cpm=one.assignment.bid or Micros(0),
            )
            for one in self.creatives
        )
        listed = ListedPage(
            "example.com/a", 7, {"top": candidates, "side": candidates}, NOON + timedelta(hours=48)
        )
        shortlists = FakeShortlists({SITE: ShortlistTable(version=7, pages={"example.com/a": listed})})
        return make_slot_routes(self.index(), pages, shortlists=shortlists, clock=self.clock)

    def ask(self, url: str = "https://www.example.com/a?utm_source=x", slot: str = "top") -> FastAnswer:
        query = f"slot={slot}&url={quote(url, safe='')}".encode()
        answer = self.routes().serve(FastRequest(b"GET", b"/v1/serve", query=query))
        assert isinstance(answer, FastAnswer)
        return answer

    def ad(self) -> dict[str, Any]:
        answer = self.ask()
        assert answer.body, answer.head
        return json.loads(answer.body)

    def reason(self, **asked: str) -> tuple[str, str]:
        head = self.ask(**asked).head.decode().lower()
        lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        return lines["adloom-page"], lines["adloom-reason"]

    def batch(self, *slots: str) -> dict[str, Any]:
        body = json.dumps({"url": "https://example.com/a", "slots": slots}).encode()
        answer = self.routes().serve_batch(FastRequest(b"POST", b"/v1/serve/batch", body=body))
        return json.loads(answer.body)


def test_an_ad_has_the_published_shape() -> None:
    ad = Site(
        a_creative(terms={"width": 300, "height": 250, "categories": (SPORTS,)}, description="What it is")
    ).ad()

    assert (ad["slot"], ad["bannerId"], ad["campaignId"]) == ("top", str(banner(1)), str(campaign(1)))
    assert (ad["assetUrl"], ad["mime"]) == ("https://cdn.example.com/a.png", "image/png")
    assert (ad["width"], ad["height"], ad["primaryText"]) == (300, 250, "What it is")
    assert ad["category"] == {"id": SPORTS, "name": "Sports"}
    assert ad["version"] == 7
    assert ad["impressionUrl"].startswith("http://ads.test/i/")
    assert ad["clickUrl"].startswith("http://ads.test/c/")


def test_the_token_charges_the_slots_own_placement_for_an_impression() -> None:
    ad = Site(a_creative(), auction_mode=AuctionMode.FIRST_PRICE).ad()

    offer = read_token(ad)

    assert (offer.placement_id, offer.banner_id, offer.campaign_id) == (an_id(1), banner(1), campaign(1))
    assert offer.charge == 5_000  # A thousandth of 5.


def test_without_a_rival_the_floor_is_paid() -> None:
    ad = Site(a_creative()).ad()

    assert read_token(ad).charge == 500


REMOVALS: list[tuple[str, Site]] = [
    ("campaign_inactive", Site(a_creative(status=AssignmentStatus.CAMPAIGN_PAUSED))),
    ("below_floor", Site(a_creative(cpm=0.4))),
    ("below_floor", Site(a_creative(cpm=5), slot={"floor": Micros(6 * UNIT)})),
    ("size_mismatch", Site(a_creative(terms={"width": 728, "height": 90, "categories": (SPORTS,)}), slot={"width": 300, "height": 250})),
    ("ad_product_blocked", Site(a_creative(terms={"product_category": "1004", "categories": (SPORTS,)}), blocked_products=("1002",))),
    ("domain_blocked", Site(a_creative(), blocked_domains=("example.com",))),
    ("site_blocked", Site(a_creative(terms={"blocked_sites": ("example.com",), "categories": (SPORTS,)}))),
    ("category_mismatch", Site(a_creative(terms={"categories": (FOOD,)}))),
    ("site_suspended", Site(a_creative(), is_suspended=True)),
    ("warmup", Site(a_creative(), is_warming_up=True)),
    ("no_demand", Site()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "site"), REMOVALS, ids=[name for name, _ in REMOVALS])
def test_what_keeps_a_slot_empty_has_its_name(name: str, site: Site) -> None:
    assert site.reason() == ("known", name)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (ApprovalState.PENDING, "not_approved"),
        (ApprovalState.REJECTED, "rejected"),
        (ApprovalState.FLAGGED, "rejected"),
    ],
)
def test_only_what_is_approved_is_shown(state: ApprovalState, reason: str) -> None:
    site = Site(a_creative())
    site.approvals = ApprovalRules(ApprovalMode.AUTOMATIC, {banner(1): state})

    assert site.reason() == ("known", reason)


def test_an_approval_is_enough_where_everything_needs_one() -> None:
    site = Site(a_creative())
    site.approvals = ApprovalRules(ApprovalMode.MANUAL)
    assert site.reason() == ("known", "not_approved")

    site.approvals = ApprovalRules(ApprovalMode.MANUAL, {banner(1): ApprovalState.APPROVED})
    assert site.ad()["bannerId"] == str(banner(1))


def test_a_shortlist_of_before_does_not_fit_a_page_that_is_about_something_else_now() -> None:
    site = Site(a_creative())
    site.categories = (FOOD,)

    assert site.reason() == ("known", "category_mismatch")


def test_filler_is_shown_on_pages_without_a_category_only() -> None:
    filler = {"categories": (), "takes_filler": True}
    site = Site(a_creative(terms=filler))
    site.category = None
    assert site.reason() == ("known", "category_mismatch")

    site.categories = ()
    assert site.ad()["category"] is None
    site.site["accepts_filler"] = False
    assert site.reason() == ("known", "category_mismatch")


def test_a_page_that_is_not_known_gets_no_ad() -> None:
    assert Site(a_creative()).reason(url="https://example.com/never-seen") == ("unknown", "page_unknown")


def test_a_stale_page_gets_no_ad() -> None:
    site = Site(a_creative())
    site.clock.advance(timedelta(hours=49))

    assert site.reason() == ("stale", "page_stale")


def test_a_campaign_with_a_budget_and_no_lease_is_not_shown() -> None:
    assert Site(a_creative(is_limited=True)).reason() == ("known", "budget")


def test_a_page_shows_no_campaign_twice() -> None:
    answer = Site(a_creative(1), a_creative(2)).batch("top", "side")

    shown = [ad["campaignId"] for ad in answer["slots"].values()]
    assert sorted(shown) == sorted([str(campaign(1)), str(campaign(2))])
    assert Site(a_creative(1)).batch("top", "side")["slots"]["side"] is None


def test_a_slot_that_is_not_there_and_a_page_of_another_site_are_refused() -> None:
    site = Site(a_creative())

    assert b"PLACEMENT_NOT_FOUND" in site.ask(slot="nowhere").body
    with pytest.raises(SiteHostMismatchError):
        site.ask(url="https://elsewhere.test/a")
    with pytest.raises(ValidationFailedError) as error:
        site.routes().serve(FastRequest(b"GET", b"/v1/serve", query=b"slot=top"))
    assert [one.field for one in error.value.errors] == ["url"]


def test_a_campaign_that_is_paused_while_it_is_on_a_shortlist_is_gone_at_once() -> None:
    site = Site(a_creative())
    assert site.ad()

    paused = msgspec.structs.replace(site.creatives[0].assignment, status=AssignmentStatus.CAMPAIGN_PAUSED)
    site.creatives = (CreativeRow(paused, site.creatives[0].terms),)

    assert site.reason() == ("known", "campaign_inactive")
