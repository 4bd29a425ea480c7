"""Decided auctions, cached: under load the same is asked again and again.

Requests of the same kind get the same winner at the same price, until a candidate that could change it comes
or goes, or a policy has learned more. A cached result is checked before it is used: it is what would be
decided now.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from adloom.auction.score import Scoring
from adloom.core.money import Micros
from adloom.serving.auction.bid_record import AuctionInput, BidRecord
from adloom.serving.auction.decide import WinningBid, compute_offer_cost, compute_offer_hold
from adloom.serving.auction.encode import RenderedWin
from adloom.serving.auction.market import Market
from adloom.serving.auction.request import VisitorInfo
from adloom.serving.auction.strongest import StrongStep
from adloom.serving.eligibility.eligible_set import ChangeCounter
from adloom.serving.eligibility.frequency_lookup import BannerKeys
from adloom.serving.request.context import LocalTime
from adloom.targeting.context import Context

AUCTIONS_MAX: Final = 2_048  # Cached; beyond, the oldest go.
RECORDS_MAX: Final = 512  # Of them with all their bids: at most 8 MB.

# What a result follows from, besides the eligible set: market, context, visitor, and the hours of its other zones.
CacheKey = tuple[Market | Context | VisitorInfo | LocalTime, ...]


class DecidedAuction:
    """The winner, and what it was decided from; nothing is reserved yet."""

    __slots__ = (
        "_change_count",
        "_checked_at",
        "_eligible_sets",
        "_scored_by",
        "capped_banner_ids",
        "cost",
        "hold",
        "input",
        "market",
        "record",
        "record_version",
        "rendered",
        "win",
    )

    def __init__(  # noqa: PLR0913 - what it was decided from
        self,
        win: WinningBid | None,
        market: Market,
        auction_input: AuctionInput,
        *,
        scanned: int | None = None,
        strongest: Sequence[StrongStep] = (),
        scored_by: Sequence[Scoring] = (),
    ) -> None:
        self.win = win
        self.market = market
        self.input = auction_input
        self.cost = Micros(0) if win is None else compute_offer_cost(win)
        self.hold = Micros(0) if win is None else compute_offer_hold(win)
        self.capped_banner_ids = () if win is None else win.capped_banner_ids
        # Made when first needed.
        self.rendered: RenderedWin | None = None
        self.record: BidRecord | None = None
        self.record_version = 0  # A record has all bids, not only those that could change the outcome.
        # The sets that were scanned, and how often they had changed; None for a result that is never cached.
        scanned_steps = (*strongest, *auction_input.plan.steps[: scanned or 0])
        self._eligible_sets = tuple(dict.fromkeys([step.eligible_set for step in scanned_steps]))
        self._change_count = None if scanned is None else self._count_changes()
        self._checked_at: int | None = None
        self._scored_by = [(policy, policy.version) for policy in scored_by]

    def is_fresh(self, changes: int) -> bool:
        """Whether it would be decided the same now; `changes` counts those of all eligible sets."""
        for policy, version in self._scored_by:
            if policy.version != version:
                return False
        if self.input.plan.is_retired:
            return False
        if changes != self._checked_at:
            if self._count_changes() != self._change_count:
                return False
            self._checked_at = changes
        return True

    def depends_on(self, banner_keys: BannerKeys) -> bool:
        """Whether the winner or its price is another without these banners."""
        win = self.win
        if win is None:
            return False
        second = win.runner_up
        return win.bidder.banner_key in banner_keys or (
            second is not None and second.banner_key in banner_keys
        )

    def _count_changes(self) -> int:
        return sum([each.change_count for each in self._eligible_sets])


class AuctionCache:
    """The decided auctions of one index."""

    def __init__(self, changes: ChangeCounter) -> None:
        self._changes = changes
        self._index: object = None
        self._auctions: dict[CacheKey, DecidedAuction] = {}
        self._oldest_first: deque[CacheKey] = deque()
        self._with_record: deque[DecidedAuction] = deque()

    def is_fresh(self, auction: DecidedAuction) -> bool:
        return auction.is_fresh(self._changes.count)

    def get(self, key: CacheKey, index: object) -> DecidedAuction | None:
        """Return a fresh result; another index empties the cache."""
        if index is not self._index:
            self._index = index
            self._auctions.clear()
            self._oldest_first.clear()
            self._with_record.clear()
        auction = self._auctions.get(key)
        return auction if auction is not None and auction.is_fresh(self._changes.count) else None

    def put(self, key: CacheKey, auction: DecidedAuction) -> None:
        if key not in self._auctions:
            self._oldest_first.append(key)
        self._auctions[key] = auction
        if len(self._oldest_first) > AUCTIONS_MAX:
            del self._auctions[self._oldest_first.popleft()]

    def attach_record(self, auction: DecidedAuction, record: BidRecord, version: int) -> None:
        """Keep the record too, for as long as its scan plan has the same version."""
        auction.record = record
        auction.record_version = version
        self._with_record.append(auction)
        if len(self._with_record) > RECORDS_MAX:
            self._with_record.popleft().record = None
