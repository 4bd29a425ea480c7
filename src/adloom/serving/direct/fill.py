"""Fills the slots of a placement: decides, reserves, and gives what could not be reserved to the next candidates."""

# pure

from collections.abc import Sequence
from itertools import islice
from typing import Final

from adloom.serving.eligibility.decide import dedupe_banners, iter_eligible
from adloom.serving.eligibility.placement_state import PlacementState, PlacementStates, RenderedOffer
from adloom.serving.leases.reserve import ReservedOffers, Reserver
from adloom.targeting.context import Context

REFILL_CANDIDATES_MAX: Final = 64  # Tried for the slots of offers that could not be reserved.


class SlotFill:
    """Decides and reserves the offers of direct delivery."""

    def __init__(self, states: PlacementStates, reserver: Reserver) -> None:
        self._states = states
        self._reserver = reserver

    def decide(
        self, state: PlacementState, context: Context, second: int, seen: frozenset[int]
    ) -> tuple[RenderedOffer, ...]:
        """Choose candidates without the banners that the visitor has seen often enough."""
        if not seen:
            return self._states.decide_offers(state, context, second)
        unseen = iter_eligible(state.placement, context, state.available, without=seen)
        in_turn = self._states.iter_in_turn(state, unseen)
        return state.build_offers(dedupe_banners(in_turn, at_most=state.placement.slots_max))

    def reserve(
        self,
        state: PlacementState,
        context: Context,
        offers: Sequence[RenderedOffer],
        second: int,
        on_page: set[int] | None = None,
    ) -> ReservedOffers:
        """Reserve offers; banners that are `on_page` do not take the place of one that cannot be reserved."""
        reserved = self._reserver.reserve_all(offers, second)
        if len(reserved[0]) == len(offers):
            return reserved
        return self._refill(state, context, (offers, reserved), second, set() if on_page is None else on_page)

    def _refill(
        self,
        state: PlacementState,
        context: Context,
        tried: tuple[Sequence[RenderedOffer], ReservedOffers],
        second: int,
        on_page: set[int],
    ) -> ReservedOffers:
        """Give the slots of offers that could not be reserved to the next candidates."""
        offers, (reserved, leases) = tried
        made, its_leases = list(reserved), list(leases)
        shown = {offer.candidate.banner_key for offer in made}
        # A banner that one campaign cannot pay for may be shown by another.
        on_page -= {offer.candidate.banner_key for offer in offers} - shown
        banners = on_page | shown
        kept = {offer.candidate.campaign_key for offer in made}
        keys = {offer.candidate.campaign_key for offer in offers}
        asked = {offer.candidate.pair for offer in offers}
        candidates = iter_eligible(
            state.placement,
            context,
            state.available,
            has_evergreens=not made,
            left_out=self._reserver.make_gate(keys - kept),
        )
        in_turn = self._states.iter_in_turn(state, candidates)
        for candidate in islice(in_turn, REFILL_CANDIDATES_MAX):
            if len(made) == len(offers):
                break
            if candidate.banner_key in banners or candidate.pair in asked:
                continue
            banners.add(candidate.banner_key)
            lease = self._reserver.reserve(candidate, candidate.hold, second, is_drawn=True)
            if lease is not None:
                made += state.build_offers((candidate,))
                its_leases.append(lease)
        on_page |= banners
        return made, its_leases
