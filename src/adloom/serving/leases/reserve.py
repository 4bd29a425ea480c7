"""Reserves what offers need before they leave: money, and an impression under a cap, out of a lease.

Offers for a sender beyond its bounds are not reserved: they would keep budgets from others. They are charged when they
are seen, if the budget has as much left then. Only a reserved offer keeps to an impression cap, so none is made of a
campaign that has one.
"""

# pure

from collections.abc import Iterable, Sequence

from adloom.budgets.messages import UNHELD_LEASE
from adloom.serving.eligibility.placement_state import BUDGETS, PlacementStates, RenderedOffer
from adloom.serving.index.index import Candidate
from adloom.serving.leases.local_leases import LocalLeases
from adloom.serving.leases.pace_gate import PaceGate

ReservedOffers = tuple[Sequence[RenderedOffer], Sequence[int]]  # With the lease of each.


class Reserver:
    """Makes offers count. A campaign with nothing left is excluded from the next request on."""

    def __init__(self, states: PlacementStates, leases: LocalLeases) -> None:
        self._states = states
        self._leases = leases
        self.is_left_out = leases.is_left_out
        self.paced = leases.registry.paced  # Only these are left out at all.

    def without_holds(self) -> "UnheldReserver":
        """Return what makes offers of the same campaigns for senders beyond their bounds."""
        return UnheldReserver(self._states, self._leases)

    def make_gate(self, left_out: Iterable[int] = ()) -> PaceGate:
        """Return a gate for the rest of a request; some campaigns may be left out already."""
        return PaceGate(self.is_left_out, left_out)

    def is_left_out_as_second(self, key: int) -> bool:
        """Draw the same of a campaign that would only set the price of another: that is no request of it."""
        lease = self._leases.registry.leases.get(key)
        return lease is not None and lease.throttle > 0 and self._leases.draw() < lease.throttle

    def reserve(
        self,
        candidate: Candidate,
        hold: int,
        second: int,
        is_drawn: bool = False,  # noqa: FBT001, FBT002 - on the path of every offer, where names would cost
    ) -> int | None:
        """Return the lease of an offer, 0 if it needs none, None if it cannot be reserved.

        Where its pace has let the campaign through already, it `is_drawn`.
        """
        if not candidate.is_leased:
            return 0
        leases = self._leases
        lease = leases.reserve(candidate.campaign_key, hold, second, is_drawn)
        if leases.changes:
            self._exclude_exhausted()
        return lease

    def reserve_all(self, offers: Sequence[RenderedOffer], second: int) -> ReservedOffers:
        """Reserve the offers of one answer; those that cannot be reserved are left out."""
        reserved: list[RenderedOffer] = []
        leases: list[int] = []
        for offer in offers:
            one = offer.candidate
            lease = self._leases.reserve(one.campaign_key, one.hold, second) if one.is_leased else 0
            if lease is not None:
                reserved.append(offer)
                leases.append(lease)
        if self._leases.changes:
            self._exclude_exhausted()
        return reserved, leases

    def _exclude_exhausted(self) -> None:
        self._states.mark_changed(self._leases.take_changes(), source=BUDGETS)


class UnheldReserver(Reserver):
    """Lets offers out without a hold, and counts nothing of them: a flood must not change the pace of a campaign."""

    def __init__(self, states: PlacementStates, leases: LocalLeases) -> None:
        super().__init__(states, leases)
        self.is_left_out = self.is_left_out_as_second

    def reserve(
        self,
        candidate: Candidate,
        hold: int,  # noqa: ARG002 - as `Reserver`
        second: int,  # noqa: ARG002 - likewise
        is_drawn: bool = False,  # noqa: FBT001, FBT002 - likewise
    ) -> int | None:
        """Return `UNHELD_LEASE` for an offer that may be made, else None."""
        if not candidate.is_leased:
            return UNHELD_LEASE
        lease = self._leases.registry.leases.get(candidate.campaign_key)
        if lease is None or lease.terms.is_capped:
            return None
        return None if not is_drawn and self.is_left_out(candidate.campaign_key) else UNHELD_LEASE

    def reserve_all(self, offers: Sequence[RenderedOffer], second: int) -> ReservedOffers:
        made = [offer for offer in offers if self.reserve(offer.candidate, 0, second) is not None]
        return made, [UNHELD_LEASE] * len(made)

    def is_left_out_as_second(self, key: int) -> bool:
        lease = self._leases.registry.leases.get(key)
        return lease is not None and (lease.terms.is_capped or super().is_left_out_as_second(key))
