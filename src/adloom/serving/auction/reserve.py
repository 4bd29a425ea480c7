"""Holding what an auction was won with: under its caps, and out of a lease of its budget, at the real charge."""

# pure

from typing import Final

from adloom.core.money import IMPRESSIONS_PER_CPM, Micros, impression_cost
from adloom.events.log.event import ChargedBy
from adloom.serving.auction.decide import AuctionWin
from adloom.serving.eligibility.caps import CapTracker
from adloom.serving.eligibility.placement_state import BUDGETS, CAPS, PlacementStates
from adloom.serving.leases.local_leases import LocalLeases

LEAST_COST: Final = Micros(1)  # Of an impression: nobody who bids is shown for nothing.


def cost_of(win: AuctionWin) -> Micros:
    """Tell what the offer costs once it is seen, or clicked, whichever it is charged by.

    An impression costs whole micros: never more than was bid for it, unless that was less than one.
    """
    if win.bidder.price.charged_by is ChargedBy.CLICK:
        return win.charge
    most = win.bidder.bid // IMPRESSIONS_PER_CPM
    return Micros(max(LEAST_COST, min(impression_cost(win.charge), most)))


class WinHolder:
    """Makes an offer count before it leaves."""

    def __init__(self, shelves: PlacementStates, caps: CapTracker, leases: LocalLeases) -> None:
        self._shelves = shelves
        self._caps = caps
        self._leases = leases

    def held(self, win: AuctionWin, cost: Micros, second: int) -> int | None:
        """Hold an offer: its lease, 0 where it needs none, None where it cannot be held."""
        one = win.bidder
        if not (one.is_capped or one.is_leased):
            return 0
        key = one.campaign_key
        if one.is_capped and not self._caps.reserve(key, second=second):
            lease = None
        else:
            lease = self._leases.reserve(key, cost, second) if one.is_leased else 0
            if lease is None and one.is_capped:
                self._caps.release(key)
        # Who has nothing left is out from the next request on.
        if self._leases.news:
            self._shelves.mark_changed(self._leases.take_changes(), source=BUDGETS)
        if self._caps.news:
            self._shelves.mark_changed(self._caps.take_changes(), source=CAPS)
        return lease
