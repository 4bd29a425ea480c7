"""The multiplier of a campaign's bids: what its actor stores, its requests and answers, and the row of a decision."""

# pure

from collections.abc import Mapping
from datetime import date, datetime
from typing import Final, NamedTuple

import msgspec

from adloom.bidding.decide import WindowRequest
from adloom.bidding.state import BidState
from adloom.bidding.window import FALLBACK, WINDOWS, BidDecision, BidRules, BidStrategy, BidWindow
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros

BIDS_TOPIC: Final = "bids"
NO_DAILY_BUDGET: Final = "no daily budget"


class BidCounts(msgspec.Struct, frozen=True):
    """What a campaign's ads brought."""

    impressions: float = 0
    clicks: float = 0
    conversions: float = 0

    def __add__(self, other: "BidCounts") -> "BidCounts":
        return BidCounts(
            self.impressions + other.impressions,
            self.clicks + other.clicks,
            self.conversions + other.conversions,
        )

    def subtract(self, other: "BidCounts") -> "BidCounts":
        """Return the difference, at least nothing: invalid events are taken back later."""
        return BidCounts(
            max(0, self.impressions - other.impressions),
            max(0, self.clicks - other.clicks),
            max(0, self.conversions - other.conversions),
        )

    def scale(self, factor: float) -> "BidCounts":
        return BidCounts(self.impressions * factor, self.clicks * factor, self.conversions * factor)


NO_COUNTS: Final = BidCounts()


class FoundCounts(NamedTuple):
    """What a campaign's ads brought, and whether conversions are to be expected among it."""

    counts: BidCounts
    has_conversions: (
        bool  # Its landing pages get the ids to report them with, or the advertiser's key has reported some.
    )


NOTHING_FOUND: Final = FoundCounts(NO_COUNTS, has_conversions=False)


class BidProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign's multiplier, and what its strategies remember."""

    day: date = date.min
    window: int = -1  # The last that was decided; -1: none of this day.
    windows: int = WINDOWS
    multiplier: float = 1.0
    strategy: BidStrategy = BidStrategy.FIXED
    decision: BidDecision | None = None  # As the strategy said it.
    decided_at: datetime | None = None
    memory: BidState = BidState()
    # As of that decision: spent in the day, and counted since the hour in which the day began.
    spent: Micros = Micros(0)
    counts: BidCounts = NO_COUNTS
    counted_before: BidCounts = NO_COUNTS  # Of that hour, before the day began,
    days_before: BidCounts = NO_COUNTS  # and of earlier days, which count less each day.
    opportunities: int = 0  # Since that decision,
    let_through: float = 0.0  # and of them those that the pace did not leave out.
    asked_window: int = -1
    asked_at: datetime | None = None


class MultiplierRequest(msgspec.Struct, frozen=True, kw_only=True, tag="bid_request.v1"):
    """A campaign asks for the multiplier of a window that begins; what its ads brought is added to `window`."""

    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    day: date
    counts_since: datetime
    strategy: BidStrategy
    memory: BidState
    window: BidWindow
    rules: BidRules
    counts: BidCounts  # When it was decided last,
    counted_before: BidCounts
    days_before: BidCounts

    @property
    def has_budget(self) -> bool:
        """Whether there is a budget of the day to spread: else no strategy decides."""
        return self.window.budget > 0


class BidsDecided(msgspec.Struct, frozen=True, kw_only=True, tag="bids_decided.v1"):
    """The answer: decision and memory for a window, what the other strategies would have bid, and the counts."""

    day: date
    window: int
    strategy: BidStrategy
    decision: BidDecision
    memory: BidState
    shadows: dict[BidStrategy, BidDecision]
    counts: BidCounts
    counted_before: BidCounts


def build_window_request(request: MultiplierRequest) -> WindowRequest:
    return WindowRequest(request.strategy, request.memory, request.window, request.rules)


def build_decided(
    request: MultiplierRequest,
    decision: BidDecision,
    memory: BidState,
    shadows: Mapping[BidStrategy, BidDecision],
) -> BidsDecided:
    """Build the answer to a campaign that asked."""
    return BidsDecided(
        day=request.day,
        window=request.window.window,
        strategy=request.strategy,
        decision=decision,
        memory=memory,
        shadows=dict(shadows),
        counts=request.counts,
        counted_before=request.counted_before,
    )


def bid_in_full(request: MultiplierRequest) -> BidsDecided:
    """Answer a campaign without a daily budget."""
    strategy = request.strategy
    reason = strategy if strategy is BidStrategy.FIXED else FALLBACK + NO_DAILY_BUDGET
    return build_decided(request, BidDecision(multiplier=1.0, reason=reason), request.memory, {})


class BidRow(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as it is kept; spent and counts are the day's so far."""

    campaign_id: CampaignId
    day: date
    at: datetime
    window: int
    strategy: BidStrategy
    multiplier: float  # As bids use it,
    wanted: float  # and as the strategy said it.
    reason: str
    limit: float | None
    note: str | None
    spent: Micros
    impressions: int
    clicks: int
    conversions: int
    shadows: dict[BidStrategy, BidDecision]
    is_first: bool  # Of its day: rows of days long past are deleted with it.
