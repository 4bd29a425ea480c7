"""An auction that was decided, and the memory of those: under load the same is asked again and again.

Readers of the same kind get the same winner at the same price, until somebody comes or goes who could change
that, or a policy has learned more. So what was decided is kept, and looked at before it is used again: it is
what would be decided now.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from adloom.auction.score import Scoring
from adloom.core.money import Micros
from adloom.serving.auction.decide import WinningBid, offer_cost
from adloom.serving.auction.encode import RenderedWin
from adloom.serving.auction.frequency_lookup import BannerKeys
from adloom.serving.auction.market import Market
from adloom.serving.auction.record.bid_record import AuctionInput, BidRecord
from adloom.serving.auction.request import VisitorInfo
from adloom.serving.eligibility.eligible_set import ChangeCounter
from adloom.serving.request.context import LocalTime
from adloom.targeting.context import Context

AUCTIONS_MAX: Final = 2_048  # Remembered; beyond, the oldest go.
NOTES_MAX: Final = 512  # Of them with all their bids: at most 8 MB.

# What an auction follows from, besides who is there: a stand, a context and a reader, and the hours of its other zones.
CacheKey = tuple[Market | Context | VisitorInfo | LocalTime, ...]


class DecidedAuction:
    """Who would win, and what that was decided from; nothing is held yet."""

    __slots__ = (
        "_scored_by",
        "_stocks",
        "_turnover",
        "_turns",
        "asked",
        "cost",
        "goods",
        "note",
        "note_edition",
        "stand",
        "watched",
        "win",
    )

    def __init__(
        self,
        win: WinningBid | None,
        stand: Market,
        asked: AuctionInput,
        *,
        looked: int | None = None,
        scored_by: Sequence[Scoring] = (),
    ) -> None:
        self.win = win
        self.stand = stand
        self.asked = asked
        self.cost = Micros(0) if win is None else offer_cost(win)  # Of its offer, once it is seen or clicked.
        self.watched = () if win is None else win.capped_banner_ids
        # Made when it is first wanted.
        self.goods: RenderedWin | None = None
        self.note: BidRecord | None = None
        self.note_edition = 0  # Everybody is in a note, not only who could change the outcome.
        # It was decided from these, as they were when they had turned so often; None is what is not used again.
        self._stocks = tuple(dict.fromkeys(look.eligible_set for look in asked.plan.steps[: looked or 0]))
        self._turns = None if looked is None else sum([stock.change_count for stock in self._stocks])
        self._turnover: int | None = None
        self._scored_by = [(policy, policy.version) for policy in scored_by]

    def is_fresh(self, turnover: int) -> bool:
        """Tell whether it would be decided the same now."""
        for policy, version in self._scored_by:
            if policy.version != version:
                return False
        if self.asked.plan.is_retired:
            return False
        if turnover != self._turnover:
            if sum([stock.change_count for stock in self._stocks]) != self._turns:
                return False
            self._turnover = turnover
        return True

    def depends_on(self, seen_enough: BannerKeys) -> bool:
        """Tell whether another wins, or at another price, where some banners take no part."""
        win = self.win
        if win is None:
            return False
        second = win.runner_up
        return win.bidder.banner_key in seen_enough or (
            second is not None and second.banner_key in seen_enough
        )


class AuctionCache:
    """Remembers the auctions of one index, by market and kind of request."""

    def __init__(self, turnover: ChangeCounter) -> None:
        self._turnover = turnover
        self._of: object = None
        self._known: dict[CacheKey, DecidedAuction] = {}
        self._oldest_first: deque[CacheKey] = deque()
        self._noted: deque[DecidedAuction] = deque()

    def is_fresh(self, auction: DecidedAuction) -> bool:
        """Tell whether an auction would be decided the same now."""
        return auction.is_fresh(self._turnover.count)

    def get(self, kind: CacheKey, *, of: object) -> DecidedAuction | None:
        """Give what would be decided now, if that is known; what is remembered is `of` one index."""
        if of is not self._of:
            self._of = of
            self._known.clear()
            self._oldest_first.clear()
            self._noted.clear()
        known = self._known.get(kind)
        return known if known is not None and known.is_fresh(self._turnover.count) else None

    def put(self, kind: CacheKey, auction: DecidedAuction) -> None:
        """Remember an auction."""
        if kind not in self._known:
            self._oldest_first.append(kind)
        self._known[kind] = auction
        if len(self._oldest_first) > AUCTIONS_MAX:
            del self._known[self._oldest_first.popleft()]

    def attach_record(self, auction: DecidedAuction, note: BidRecord, edition: int) -> None:
        """Remember who took part, for an auction that may be used again, while its order has the same edition."""
        auction.note = note
        auction.note_edition = edition
        self._noted.append(auction)
        if len(self._noted) > NOTES_MAX:
            self._noted.popleft().note = None
