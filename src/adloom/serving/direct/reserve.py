"""Holding what an answer offers: under its caps, and out of leases of its budgets."""

# pure

from collections.abc import Sequence
from typing import Final

from adloom.serving.eligibility.caps import CapTracker
from adloom.serving.eligibility.placement_state import BUDGETS, CAPS, PlacementStates, RenderedOffer
from adloom.serving.index.index import Candidate
from adloom.serving.leases.local_leases import LocalLeases

Held = tuple[Sequence[RenderedOffer], Sequence[int]]  # With the lease of each.
LEFT_OUT: Final = -1


class Holder:
    """Makes offers count before they leave; one that cannot be held is left out."""

    def __init__(self, shelves: PlacementStates, caps: CapTracker, leases: LocalLeases) -> None:
        self._shelves = shelves
        self._caps = caps
        self._leases = leases

    def held(self, offers: Sequence[RenderedOffer], second: int) -> Held:
        """Hold what can be held; who has nothing left is out from the next request on."""
        budgets = self._leases
        leases: list[int] = []
        left_out = 0
        for offer in offers:
            one = offer.candidate
            if one.is_capped:
                lease = self._taken_under_cap(one, second)
            elif one.is_leased:
                lease = budgets.reserve(one.campaign_key, one.price.cost, second)
            else:
                lease = 0
            if lease is None:
                lease = LEFT_OUT
                left_out += 1
            leases.append(lease)
        if budgets.news:
            self._shelves.mark_changed(budgets.take_changes(), source=BUDGETS)
        if self._caps.news:
            self._shelves.mark_changed(self._caps.take_changes(), source=CAPS)
        return _without_left_out(offers, leases) if left_out else (offers, leases)

    def _taken_under_cap(self, candidate: Candidate, second: int) -> int | None:
        """Take what an offer needs, all of it or nothing; give its lease."""
        key = candidate.campaign_key
        if not self._caps.reserve(key, second=second):
            return None
        if not candidate.is_leased:
            return 0
        lease = self._leases.reserve(key, candidate.price.cost, second)
        if lease is None:
            self._caps.release(key)
        return lease


def _without_left_out(offers: Sequence[RenderedOffer], leases: Sequence[int]) -> Held:
    held = [(offer, lease) for offer, lease in zip(offers, leases, strict=True) if lease != LEFT_OUT]
    return [offer for offer, _ in held], [lease for _, lease in held]
