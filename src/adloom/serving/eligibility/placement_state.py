"""What each placement has to offer at the moment, and the answers made from it: all that changes here.

The index is immutable; what changes under it is who is in time and who is excluded. A state keeps both
as bitmaps, and with them the answers by context. They go when the bitmaps change, at once, only those
of this placement, and only where an answer may be another one.
"""

# pure

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.events.ingest.token import pack_charge, pack_terms
from adloom.serving.eligibility.decide import decide
from adloom.serving.eligibility.eligible_set import ChangeCounter, EligibleSet
from adloom.serving.eligibility.exclusions import ExcludedCampaigns, Exclusions, Ranks, rank_campaigns
from adloom.serving.eligibility.schedule_mask import ScheduleMask, build_schedule_mask
from adloom.serving.index.index import Candidate, HasBlocks, Index, IndexedPlacement
from adloom.serving.index.rendered_banner import encode_ids
from adloom.serving.index.steps import run_steps
from adloom.targeting.context import Context

ANSWERS_KEPT_SECONDS = 60
ANSWERS_MAX = 10_000  # Beyond this the oldest go: all of them would, within `keep_seconds`.
CAMPAIGNS_A_STEP = 64
CAPS: Final = "caps"
BUDGETS: Final = "budgets"

_NOBODY_YET: Final = -1
_EVERYBODY: Final = 1 << 62  # Behind every rank.


class RenderedOffer(msgspec.Struct, frozen=True, gc=False):
    """A candidate that fills a slot, as far as it is the same for every request."""

    candidate: Candidate
    token_terms: bytes
    ids: bytes


class PlacementState(EligibleSet):
    """One placement's candidates at the moment, and the answers made from them."""

    __slots__ = ("_chosen", "_last_rank", "_offers", "answers", "is_requested", "placement")

    def __init__(
        self,
        placement: IndexedPlacement,
        schedule_mask: ScheduleMask,
        ranks: Ranks,
        excluded: ExcludedCampaigns,
        change_counter: ChangeCounter,
    ) -> None:
        self.placement = placement
        self.is_requested = False  # Since somebody last wanted to know.
        self._offers: dict[
            bytes, RenderedOffer
        ] = {}  # Made when a candidate is first chosen; answers share them.
        self.answers: dict[Context, tuple[int, tuple[RenderedOffer, ...]]] = {}
        self._chosen: set[int] = set()  # Campaigns that are in an answer.
        self._last_rank = _NOBODY_YET  # Who stands behind it changes no answer by being there.
        super().__init__(placement, schedule_mask, ranks, excluded, change_counter)

    def cache_answer(self, context: Context, until: int, offers: tuple[RenderedOffer, ...]) -> None:
        """Keep an answer, and what could change it: who is in it, and who stands before its last."""
        self.answers[context] = (until, offers)
        last = _EVERYBODY
        for offer in offers:
            self._chosen.add(offer.candidate.campaign_key)
        if len(offers) >= self.placement.slots_max:
            # The last that the campaign has here: one of its candidates was chosen, and none stands behind it.
            last = self.ranks[offers[-1].candidate.campaign_key][-1]
        self._last_rank = max(self._last_rank, last)

    def build_offers(self, candidates: Iterable[Candidate]) -> tuple[RenderedOffer, ...]:
        """Prepare what every answer with these candidates has in common."""
        made = self._offers
        offers: list[RenderedOffer] = []
        for one in candidates:
            offer = made.get(one.pair)
            if offer is None:
                charge = pack_charge(one.price.cost, one.price.charged_by)
                terms = pack_terms(one.pair, self.placement.id.bytes, charge)
                offer = made[one.pair] = RenderedOffer(one, terms, encode_ids(one.pair))
            offers.append(offer)
        return tuple(offers)

    def _on_campaign_changed(self, campaign_key: int, first_rank: int, *, is_out: bool) -> None:
        # Who leaves changes the answers that he is in, who comes those that he would be in.
        if campaign_key in self._chosen if is_out else first_rank <= self._last_rank:
            self._forget()

    def _on_all_changed(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.answers.clear()
        self._chosen.clear()
        self._last_rank = _NOBODY_YET


class PlacementStates:
    """The states of all placements of the index."""

    def __init__(self, *, keep_seconds: int = ANSWERS_KEPT_SECONDS, answers_max: int = ANSWERS_MAX) -> None:
        self._keep_seconds = keep_seconds
        self._answers_max = answers_max
        self._by_key: dict[int, PlacementState] = {}
        self._placements: dict[int, set[int]] = {}  # By campaign, the placements that have a state with it.
        self._kept: deque[tuple[dict[Context, tuple[int, tuple[RenderedOffer, ...]]], Context]] = deque()
        self._excluded = ExcludedCampaigns()
        self.change_counter = ChangeCounter()
        self._requested: list[PlacementState] = []
        self.inquiries = 0  # How often somebody wanted to know which placements are asked for.
        self._watching: list[EligibleSet] = []
        self.hits = 0
        self.misses = 0

    def exclude(self, exclusions: Exclusions, *, source: str = CAPS) -> None:
        """Say who may not serve from now on, as far as one source knows."""
        self._mark(self._excluded.replace(source, exclusions))

    def mark_changed(self, changes: Mapping[int, str | None], *, source: str = BUDGETS) -> None:
        """Say of some campaigns why they may not serve from now on, or with None that they may."""
        self._mark(self._excluded.change(source, changes))

    def excluded_by(self, source: str) -> dict[str, frozenset[int]]:
        """Tell who may not serve, as far as one source knows, by the name of the reason."""
        return self._excluded.by(source)

    def find_reason(self, campaign_key: int) -> str | None:
        """Tell why a campaign may not serve, or None."""
        return self._excluded.find_reason(campaign_key, (CAPS, BUDGETS))

    def take_requested(self) -> list[int]:
        """Tell which placements were asked for since this was last asked."""
        asked, self._requested = self._requested, []
        self.inquiries += 1
        for state in asked:
            state.is_requested = False
        return [state.placement.key for state in asked]

    def prepare(self, placement: IndexedPlacement, *, now: datetime) -> Generator[None, None, PlacementState]:
        """Make a state ahead of the first request for it, with pauses."""
        schedule_mask = yield from build_schedule_mask(placement, now=now)
        ranks = yield from rank_campaigns(placement)
        for number, campaign_key in enumerate(ranks):
            if number % CAMPAIGNS_A_STEP == 0:
                yield
            self._placements.setdefault(campaign_key, set()).add(placement.key)
        return PlacementState(placement, schedule_mask, ranks, self._excluded, self.change_counter)

    def prepare_eligible_set(
        self, candidates: HasBlocks, *, now: datetime
    ) -> Generator[None, None, EligibleSet]:
        """Make the eligible_set of candidates that are on states too, with pauses; once it is watched it is kept."""
        schedule_mask = yield from build_schedule_mask(candidates, now=now)
        ranks = yield from rank_campaigns(candidates)
        return EligibleSet(candidates, schedule_mask, ranks, self._excluded, self.change_counter)

    def watch(self, sets: Sequence[EligibleSet]) -> None:
        """Keep these sets up to date from now on, and no others."""
        self._watching = list(sets)
        for eligible_set in sets:
            if eligible_set.excluded_version != self._excluded.changes:
                eligible_set.set_excluded(self._excluded)

    def install(self, index: Index, states: Iterable[PlacementState]) -> None:
        """Take states that were prepared, in the moment in which their index becomes the current one."""
        for state in states:
            if (
                state.excluded_version != self._excluded.changes
            ):  # Who was excluded since it was prepared is not out yet.
                state.set_excluded(self._excluded)
            before = self._by_key.get(state.placement.key)
            self._by_key[state.placement.key] = state
            if before is not None:
                self._without(before, keeping=state.ranks)
        for key in self._by_key.keys() - index.by_key.keys():
            self._without(self._by_key.pop(key), keeping={})

    def get(self, placement: IndexedPlacement, now: datetime) -> PlacementState:
        """Give the state of a placement as it is now."""
        state = self._by_key.get(placement.key)
        if state is None or state.placement is not placement:
            state = self._by_key[placement.key] = run_steps(self.prepare(placement, now=now))
        elif not state.since <= now < state.until:
            state.advance_to(now)
        if not state.is_requested:
            state.is_requested = True
            self._requested.append(state)
        return state

    def decide_offers(
        self, state: PlacementState, context: Context, second: int
    ) -> tuple[RenderedOffer, ...]:
        """Decide, or remember what was decided for the same context a moment ago."""
        answer = state.answers.get(context)
        if answer is not None and second < answer[0]:
            self.hits += 1
            return answer[1]
        self.misses += 1
        offers = state.build_offers(decide(state.placement, context, state.available))
        if self._keep_seconds:
            self._keep(state, context, second + self._keep_seconds, offers)
        return offers

    def _keep(
        self, state: PlacementState, context: Context, until: int, offers: tuple[RenderedOffer, ...]
    ) -> None:
        state.cache_answer(context, until, offers)
        self._kept.append((state.answers, context))
        if len(self._kept) > self._answers_max:
            oldest, its_context = self._kept.popleft()
            oldest.pop(its_context, None)

    def _mark(self, campaign_keys: Iterable[int]) -> None:
        for campaign_key in campaign_keys:
            is_out = campaign_key in self._excluded
            for placement_key in self._placements.get(campaign_key, ()):
                state = self._by_key.get(placement_key)
                if state is not None:
                    state.mark(campaign_key, is_out=is_out)
            for eligible_set in self._watching:
                eligible_set.mark(campaign_key, is_out=is_out)

    def _without(self, state: PlacementState, *, keeping: Ranks) -> None:
        """Forget that campaigns have candidates on a state that was taken down."""
        for campaign_key in state.ranks.keys() - keeping.keys():
            placements = self._placements.get(campaign_key, set())
            placements.discard(state.placement.key)
            if not placements:
                self._placements.pop(campaign_key, None)
