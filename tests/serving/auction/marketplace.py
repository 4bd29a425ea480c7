"""Auctions in one process: builders of placements and bids, and a marketplace that runs them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from adloom.auction.bid import BidType, OwnBids
from adloom.auction.score import Scorer, Signals
from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.serving.auction.decide import WinningBid
from adloom.serving.auction.funnel import AuctionFunnel, build_funnel
from adloom.serving.auction.market import Market, Markets
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index
from adloom.serving.index.rows import AssignmentRow, Delivery, PlacementRow, Snapshot, compute_price
from adloom.targeting.context import Context
from tests.auction.bids import units
from tests.support.contexts import a_context
from tests.support.rows import HOME_KEY, a_placement_row, an_assignment_row, an_id

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def a_slot(key: int = HOME_KEY, *, floor: str = "0", **fields: Any) -> PlacementRow:
    """Make a placement that is auctioned."""
    values: dict[str, Any] = {
        "key": key,
        "id": PlacementId(an_id(key)),
        "slug": f"slot-{key}",
        "delivery": Delivery.AUCTION,
        "placement_type": "feed",
        "floor": units(floor),
    }
    return a_placement_row(**values | fields)


def a_row(number: int, bid: str | Micros | None, **fields: Any) -> AssignmentRow:
    """Make an ad that bids; its campaign and its banner have its number."""
    bid_type = fields.get("bid_type", BidType.CPM)
    amount = units(bid) if isinstance(bid, str) else bid
    values: dict[str, Any] = {
        "campaign_key": number,
        "campaign_id": CampaignId(an_id(1_000 + number)),
        "banner_key": number,
        "banner_id": BannerId(an_id(2_000 + number)),
        "bid": amount,
        "price": compute_price(bid_type, amount),
    }
    return an_assignment_row(**values | fields)


def an_index(rows: Sequence[AssignmentRow], *slots: PlacementRow) -> Index:
    placements = list(slots) or [a_slot()]
    return compile_index(
        Snapshot(version=1, placements=placements, assignments=list(rows), banner_ids=[], campaign_ids=[])
    )


class Marketplace:
    """Runs auctions over an index."""

    def __init__(self, *rows: AssignmentRow, slots: Sequence[PlacementRow] = (), **options: Any) -> None:
        self.index = an_index(rows, *slots)
        self.states = PlacementStates()
        self.markets = Markets(self.states, **options)

    def find_market(self, *, slug: str | None = None, now: datetime = NOON) -> Market:
        if slug is None:
            market = self.markets.find_by_type(self.index, "feed", now=now)
        else:
            market = self.markets.find_by_slug(self.index, slug.encode(), now=now)
        assert market is not None
        return market

    def scorers(self, market: Market) -> list[Scorer]:
        return self.markets.build_scorers(market, Signals(placement_type="feed"))

    def auction(
        self,
        context: Context | None = None,
        *,
        slug: str | None = None,
        now: datetime = NOON,
        **absent: frozenset[int],
    ) -> WinningBid | None:
        market = self.find_market(slug=slug, now=now)
        contexts = [context or a_context()] * len(market.zones)
        scorers = self.scorers(market)
        win, _ = self.markets.decide(market, contexts, scorers, **absent)
        return win

    def winner(self, context: Context | None = None, **options: Any) -> int | None:
        win = self.auction(context, **options)
        return None if win is None else win.bidder.campaign_key

    def field(
        self, *, slug: str | None = None, bids_max: int = 256, **absent: frozenset[int]
    ) -> AuctionFunnel:
        market = self.find_market(slug=slug)
        scorers = self.scorers(market)
        contexts = [a_context()] * len(market.zones)
        return build_funnel(market.plan_scan(scorers), contexts, scorers, bids_max=bids_max, **absent)


COUNT = OwnBids.COUNT
