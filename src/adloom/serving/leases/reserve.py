"""Reserves what offers need before they leave: an impression under the cap, and money out of a lease."""

# pure

from collections.abc import Sequence

from adloom.serving.eligibility.caps import CapTracker
from adloom.serving.eligibility.placement_state import BUDGETS, CAPS, PlacementStates, RenderedOffer
from adloom.serving.index.index import Candidate
from adloom.serving.leases.local_leases import LocalLeases

ReservedOffers = tuple[Sequence[RenderedOffer], Sequence[int]]  # With the lease of each.


class Reserver:
    """Makes offers count. A campaign with nothing left is excluded from the next request on."""

    def __init__(self, states: PlacementStates, caps: CapTracker, leases: LocalLeases) -> None:
        self._states = states
        self._caps = caps
        self._leases = leases

    def reserve(self, candidate: Candidate, cost: int, second: int) -> int | None:
        """Return the lease of an offer, 0 if it needs none, None if it cannot be reserved."""
        key, lease = candidate.campaign_key, 0
        if candidate.is_capped and not self._caps.reserve(key, second=second):
            lease = None
        elif candidate.is_leased:
            lease = self._leases.reserve(key, cost, second)
            if lease is None and candidate.is_capped:
                self._caps.release(key)
        # Checked here too: on the path of every auction a call costs as much as the checks.
        if self._leases.changes or self._caps.changes:
            self._exclude_exhausted()
        return lease

    def reserve_all(self, offers: Sequence[RenderedOffer], second: int) -> ReservedOffers:
        """Reserve the offers of one answer; those that cannot be reserved are left out."""
        reserved: list[RenderedOffer] = []
        leases: list[int] = []
        for offer in offers:
            one = offer.candidate
            if one.is_capped:
                lease = self._reserve_under_cap(one, one.price.cost, second)
            elif one.is_leased:
                lease = self._leases.reserve(one.campaign_key, one.price.cost, second)
            else:
                lease = 0
            if lease is not None:
                reserved.append(offer)
                leases.append(lease)
        self._exclude_exhausted()
        return reserved, leases

    def _reserve_under_cap(self, candidate: Candidate, cost: int, second: int) -> int | None:
        """Reserve both or neither."""
        key = candidate.campaign_key
        if not self._caps.reserve(key, second=second):
            return None
        lease = self._leases.reserve(key, cost, second) if candidate.is_leased else 0
        if lease is None:
            self._caps.release(key)
        return lease

    def _exclude_exhausted(self) -> None:
        if self._leases.changes:
            self._states.mark_changed(self._leases.take_changes(), source=BUDGETS)
        if self._caps.changes:
            self._states.mark_changed(self._caps.take_changes(), source=CAPS)
