"""A site with one known page, and what a delivery process holds of it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import msgspec

from adloom.auction.bid import BidType
from adloom.auction.creative_choice import ChoiceMethod
from adloom.auction.site_modes import ApprovalMode
from adloom.core.clock import ManualClock
from adloom.core.delivery import Delivery
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, PlacementId, SiteId
from adloom.core.money import Micros
from adloom.events.ingest.token import OfferToken, TokenKeys
from adloom.market.approval import ApprovalRules
from adloom.market.results.window import NO_RESULTS
from adloom.market.shortlist.model import ShortlistCandidate
from adloom.market.shortlist.table import ListedPage, ShortlistTable
from adloom.pages.follow.page_table import NO_PAGES, PageEntry
from adloom.pages.model import PageCategory, compute_expiry
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRequest
from adloom.serving.auction.recorder import AuctionRecorder
from adloom.serving.contextual.slot_auctions import Publish
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import Interner, compile_creatives, compile_index
from adloom.serving.index.contextual import CreativeRow, CreativeTerms
from adloom.serving.index.index import Index, replace_placements
from adloom.serving.index.rows import Snapshot, compute_price
from adloom.serving.index.site import NO_SITES, compile_site
from adloom.serving.index.steps import run_steps
from adloom.serving.request.sender_limits import SenderCheck
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
        self.site: dict[str, Any] = {
            "key": 1,
            "id": SITE,
            "domain": "example.com",
            "floor": Micros(UNIT // 2),
            **site,
        }
        self.slot: dict[str, Any] = {"key": 1, "id": PlacementId(an_id(1)), "slug": "top", **(slot or {})}
        self.clock = ManualClock(NOON)
        self.states = PlacementStates()
        self.results = NO_RESULTS
        self.method = ChoiceMethod.INFORMED
        self.categories: tuple[str, ...] = (TENNIS,)
        self.category: str | None = SPORTS  # Of the shortlist.
        self.category_floor = Micros(0)  # Likewise.
        self.listed_until = NOON + timedelta(hours=48)

    def index(self) -> Index:
        slots = [
            a_placement_row(**{"delivery": Delivery.CONTEXTUAL, "site_key": 1, **self.slot}),
            *(
                a_placement_row(
                    delivery=Delivery.CONTEXTUAL, site_key=1, key=key, id=PlacementId(an_id(key)), slug=slug
                )
                for key, slug in ((2, "side"), (3, "end"))
            ),
        ]
        index = compile_index(
            Snapshot(version=1, placements=slots, assignments=[], banner_ids=[], campaign_ids=[])
        )
        by_campaign: dict[CampaignId, list[CreativeRow]] = {}
        for one in self.creatives:
            by_campaign.setdefault(one.assignment.campaign_id, []).append(one)
        own = [run_steps(compile_creatives(key, rows, Interner())) for key, rows in by_campaign.items()]
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

    def page(self) -> PageEntry:
        categories = tuple(PageCategory(one, 0.9) for one in self.categories)
        return PageEntry("example.com/a", 1, categories, NOON, compute_expiry(NOON))

    def listed(self) -> ListedPage:
        candidates = tuple(
            ShortlistCandidate(
                banner_id=one.assignment.banner_id,
                campaign_id=one.assignment.campaign_id,
                advertiser_id=one.assignment.advertiser_id,
                category=self.category,
                category_score=0.5,
                cpm=one.assignment.bid or Micros(0),
                floor=self.category_floor,
            )
            for one in self.creatives
        )
        return ListedPage(
            "example.com/a", 7, dict.fromkeys(("top", "side", "end"), candidates), self.listed_until
        )

    def routes(
        self,
        recorder: AuctionRecorder | None = None,
        *,
        publish_served: Publish | None = None,
        senders: SenderCheck | None = None,
    ) -> Any:
        pages = FakePages()
        pages.tables[SITE] = NO_PAGES.with_changes([self.page()])
        shortlists = FakeShortlists({SITE: ShortlistTable(version=7, pages={"example.com/a": self.listed()})})
        return make_slot_routes(
            self.index(),
            pages,
            shortlists=shortlists,
            clock=self.clock,
            recorder=recorder,
            publish_served=publish_served,
            senders=senders,
            states=self.states,
            results=self.results,
            method=self.method,
        )

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
