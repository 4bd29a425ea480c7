"""Holding what an auction was won with: under its caps, and out of a lease of its budget, at the real charge."""

from adloom.core.money import Micros, impression_cost
from adloom.delivery.auction.decide import Win
from adloom.delivery.caps import CapBook
from adloom.delivery.leases import LeaseBook
from adloom.delivery.shelves import BUDGETS, CAPS, Shelves
from adloom.ledger.event import ChargedBy


def cost_of(win: Win) -> Micros:
    """Tell what the offer costs once it is seen, or clicked, whichever it is charged by."""
    if win.bidder.price.charged_by is ChargedBy.CLICK:
        return win.charge
    return impression_cost(win.charge)


class WinHolder:
    """Makes an offer count before it leaves."""

    def __init__(self, shelves: Shelves, caps: CapBook, leases: LeaseBook) -> None:
        self._shelves = shelves
        self._caps = caps
        self._leases = leases

    def held(self, win: Win, cost: Micros, second: int) -> int | None:
        """Hold an offer: its lease, 0 where it needs none, None where it cannot be held."""
        one = win.bidder
        if not (one.is_capped or one.is_leased):
            return 0
        key = one.campaign_key
        if one.is_capped and not self._caps.take(key, second=second):
            lease = None
        else:
            lease = self._leases.take(key, cost, second) if one.is_leased else 0
            if lease is None and one.is_capped:
                self._caps.put_back(key)
        # Who has nothing left is out from the next request on.
        if self._leases.news:
            self._shelves.change(self._leases.changes(), source=BUDGETS)
        if self._caps.news:
            self._shelves.change(self._caps.changes(), source=CAPS)
        return lease
