"""What a market has to auction off at the moment: all placements of a type, or one placement."""

# pure

from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from adloom.auction.bid import OwnBids
from adloom.auction.score import Heuristic, Scorer, Scoring, Signals, Strengths
from adloom.serving.auction.bids.scan_plan import BlockRef, ScanPlan
from adloom.serving.auction.bids.top_bids import TOP_BIDS_MAX, TopBids, build_top_bids
from adloom.serving.auction.decide import NO_KEYS, WinningBid, decide
from adloom.serving.eligibility.eligible_set import EligibleSet
from adloom.serving.eligibility.placement_state import PlacementState, PlacementStates
from adloom.serving.index.bid_block import BidBlock, rank_blocks
from adloom.serving.index.index import Block, Index, MarketPlacements
from adloom.targeting.context import Context

# Beyond this the orders are made anew: a policy that has so many bounds has too many.
ORDERS_MAX: Final = 64

StrengthSource = Callable[[], tuple[Strengths, ...]]
TopBidSets = Mapping[
    str, tuple[MarketPlacements, Sequence[EligibleSet]]
]  # By type, of which market they are.
NO_HEADS: Final[tuple[MarketPlacements, Sequence[EligibleSet]]] = ((), ())


class Market:
    """The auctions of one market."""

    def __init__(
        self,
        market: MarketPlacements,
        shelves: PlacementStates,
        *,
        now: datetime,
        heads: Sequence[EligibleSet] = (),
    ) -> None:
        self.market = market
        self._heads = heads
        self.scorings = tuple(sorted({placement.scoring for placement in market}))
        self.zones = tuple(dict.fromkeys(placement.zone for placement in market))
        self.placements = {placement.key: placement for placement in market}
        self._shelves = shelves
        self._on_shelves: list[PlacementState] = []
        self._lots: tuple[BlockRef, ...] = ()
        self._orders: dict[tuple[int, ...], ScanPlan] = {}
        self._since = self._until = now
        self._inquiries = 0  # Its shelves are known to be asked for since so many of them.
        self.refresh(now)

    def is_current(self, now: datetime) -> bool:
        """Tell whether it is known whose time it is, and noted that the market is asked for."""
        return self._since <= now < self._until and self._inquiries == self._shelves.inquiries

    def expire(self) -> None:
        """Hear that shelves may have been replaced: they are looked at before the next request."""
        self._until = self._since

    def refresh(self, now: datetime) -> None:
        """Look whose time it is."""
        on_shelves = [self._shelves.get(placement, now) for placement in self.market]
        self._inquiries = self._shelves.inquiries
        if on_shelves != self._on_shelves:
            self._on_shelves = on_shelves
            self._lots = tuple(self._put_out())
            self._forget_orders()
        for head in self._heads:
            if not head.since <= now < head.until:
                head.advance_to(now)
        stocks = (*on_shelves, *self._heads)
        self._since = max(stock.since for stock in stocks)
        self._until = min(stock.until for stock in stocks)

    def plan_scan(self, scorers: Sequence[Scorer]) -> ScanPlan:
        """Give the bids in the order in which they are looked at."""
        bounds = tuple([scorer.ctr_max for scorer in scorers])
        order = self._orders.get(bounds)
        if order is None:
            if len(self._orders) >= ORDERS_MAX:
                self._forget_orders()
            order = self._orders[bounds] = ScanPlan(self._lots, scorers)
        return order

    def _forget_orders(self) -> None:
        for order in self._orders.values():
            order.retire()
        self._orders.clear()

    @property
    def top_bids(self) -> list[TopBids]:
        """Those of its bids that are looked at first."""
        return [stock.candidates for stock in self._heads if isinstance(stock.candidates, TopBids)]

    def _put_out(self) -> list[BlockRef]:
        lots: list[BlockRef] = []
        heads = {(head.scoring, head.zone): head for head in self.top_bids}
        for stock, head in zip(self._heads, self.top_bids, strict=True):
            lots += self._lots_of(stock, head.scoring, head.zone, None)
        for shelf in self._on_shelves:
            scoring, zone = shelf.placement.scoring, shelf.placement.zone
            lots += self._lots_of(shelf, scoring, zone, heads.get((scoring, zone)))
        return lots

    def _lots_of(
        self, stock: EligibleSet, scoring: str, zone: ZoneInfo, head: TopBids | None
    ) -> Iterator[BlockRef]:
        for number, block in enumerate(stock.candidates.blocks):
            if isinstance(block, BidBlock):
                members = block.everyone if head is None else _not_in(head, block)
                yield BlockRef(
                    stock, number, block, members, self.scorings.index(scoring), self.zones.index(zone)
                )


class Markets:
    """The stands of all markets that were ever asked for and are still there."""

    def __init__(
        self,
        shelves: PlacementStates,
        *,
        policies: Mapping[str, Scoring] | None = None,
        own_bids: OwnBids = OwnBids.IGNORE,
    ) -> None:
        self._shelves = shelves
        self.change_counter = shelves.change_counter
        # A policy that this process does not know yet is better replaced than missed.
        self._policies: Mapping[str, Scoring] = defaultdict(Heuristic, policies or {})
        self._own_bids = own_bids
        self._index: Index | None = None
        self._heads: TopBidSets = {}
        self._prepared: tuple[Index, TopBidSets] | None = None
        self._by_type: dict[str, Market] = {}
        self._by_slug: dict[bytes, Market] = {}

    def prepare(
        self, index: Index, *, now: datetime, bidders_max: int = TOP_BIDS_MAX
    ) -> Generator[None, None, TopBidSets]:
        """Put the highest bids of every market together ahead of its first request, with pauses."""
        heads: dict[str, tuple[MarketPlacements, Sequence[EligibleSet]]] = {}
        for kind, market in index.markets.items():
            before = self._heads.get(kind)
            if before is not None and before[0] is market:
                heads[kind] = before
                continue
            heads[kind] = market, (yield from self._stocking(market, now, bidders_max))
        self._prepared = index, heads
        for policy in self._policies.values():
            yield from self.rank(policy.name, lambda policy=policy: policy.strengths)
        return heads

    def rank(self, scoring: str, known: StrengthSource) -> Generator[None, None, int]:
        """Rank the bids that a policy scores by what is known before a request, with pauses; tell how many those are.

        What is prepared, and what is known, may change meanwhile.
        """
        bids = 0
        prepared: tuple[Index, TopBidSets] | None = None
        ranked_by: tuple[Strengths, ...] = ()
        while self._prepared is not prepared or known() != ranked_by:
            prepared, ranked_by = self._prepared, known()
            blocks = [] if prepared is None else _blocks(*prepared, scoring)
            bids = sum(len(block.candidates) for block in blocks)
            for strengths in ranked_by:
                yield from rank_blocks(blocks, strengths)
        return bids

    def install(self, heads: TopBidSets) -> None:
        """Take what was prepared, in the moment in which its index becomes the current one."""
        self._heads = heads
        self._index = None  # Whatever was put up with it is looked at anew.
        self._shelves.watch([stock for _, stocks in heads.values() for stock in stocks])

    def find_by_type(self, index: Index, placement_type: str, *, now: datetime) -> Market | None:
        """Give the stand of all placements of a type; None where no such placement is auctioned."""
        if index is not self._index:
            self._tidy(index)
        stand = self._by_type.get(placement_type)
        if stand is None:
            market = index.markets.get(placement_type)
            if market is None:
                return None
            known, heads = self._heads.get(placement_type, NO_HEADS)
            if known is not market:
                heads = ()
            stand = self._by_type[placement_type] = Market(market, self._shelves, now=now, heads=heads)
        elif not stand.is_current(now):
            stand.refresh(now)
        return stand

    def find_by_slug(self, index: Index, slug: bytes, *, now: datetime) -> Market | None:
        """Give the stand of one placement; None where it is not auctioned."""
        if index is not self._index:
            self._tidy(index)
        stand = self._by_slug.get(slug)
        if stand is None:
            placement = index.by_slug.get(slug)
            if placement is None or not placement.is_auctioned:
                return None
            stand = self._by_slug[slug] = Market((placement,), self._shelves, now=now)
        elif not stand.is_current(now):
            stand.refresh(now)
        return stand

    def list_policies(self, stand: Market) -> list[Scoring]:
        """Give the policies that predict clicks for a stand."""
        return [self._policies[name] for name in stand.scorings]

    def build_scorers(self, stand: Market, signals: Signals) -> list[Scorer]:
        """Look at a request once, for all bids."""
        return [policy.build_scorer(signals) for policy in self.list_policies(stand)]

    def decide(
        self,
        stand: Market,
        contexts: Sequence[Context],
        scorers: Sequence[Scorer],
        *,
        seen_enough: Collection[int] = NO_KEYS,
        without: Collection[int] = NO_KEYS,
    ) -> tuple[WinningBid | None, int]:
        """Auction off what a market has, for one request; tell also after how many looks of its order.

        The request has a context for each zone of the stand.
        """
        return decide(
            stand.plan_scan(scorers).steps,
            contexts,
            scorers,
            own_bids=self._own_bids,
            seen_enough=seen_enough,
            without=without,
        )

    def _stocking(
        self, market: MarketPlacements, now: datetime, bidders_max: int
    ) -> Generator[None, None, Sequence[EligibleSet]]:
        stocks: list[EligibleSet] = []
        heads = yield from build_top_bids(market, bidders_max=bidders_max)
        for head in heads:
            stocks += ((yield from self._shelves.prepare_eligible_set(head, now=now)),)
        return stocks

    def _tidy(self, index: Index) -> None:
        """Take down the stands of what another index does not have any more."""
        self._index = index
        self._by_type = {
            kind: stand for kind, stand in self._by_type.items() if index.markets.get(kind) is stand.market
        }
        self._by_slug = {
            slug: stand
            for slug, stand in self._by_slug.items()
            if index.by_slug.get(slug) is stand.market[0] and stand.market[0].is_auctioned
        }
        for stand in (*self._by_type.values(), *self._by_slug.values()):
            stand.expire()


def _blocks(index: Index, heads: TopBidSets, scoring: str) -> list[Block]:
    """List the blocks of bids that a policy scores."""
    blocks = [
        block
        for placement in index.by_key.values()
        if placement.is_auctioned and placement.scoring == scoring
        for block in placement.blocks
    ]
    for _, stocks in heads.values():
        for stock in stocks:
            if isinstance(stock.candidates, TopBids) and stock.candidates.scoring == scoring:
                blocks += stock.candidates.blocks
    return blocks


def _not_in(head: TopBids, block: BidBlock) -> int:
    members = block.everyone
    for position, one in enumerate(block.bidders):
        if head.has(one):
            members ^= 1 << position
    return members
