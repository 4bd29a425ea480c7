"""The live state of each placement: which candidates are eligible now, and the answers made from them.

The index is immutable; schedules and exclusions change under it. A state keeps both as bitmaps, with the
answers by context. Answers are dropped at once when the bitmaps change: only those of this placement, and
only if an answer may differ.
"""

# pure

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any, Final

import msgspec

from adloom.core.random import Chance
from adloom.events.ingest.token import make_charge_void, pack_charge, pack_terms
from adloom.serving.eligibility.decide import decide, iter_eligible
from adloom.serving.eligibility.eligible_set import (
    ChangeCounter,
    EligibleSet,
    ExcludedCampaigns,
    Exclusions,
    LoweredBids,
    Ranks,
    rank_campaigns,
)
from adloom.serving.eligibility.rotation import Rotator, Tier, collect_tiers, iter_tiers
from adloom.serving.eligibility.schedule_mask import ScheduleMask, build_schedule_mask
from adloom.serving.index.index import Candidate, HasBlocks, Index, IndexedPlacement
from adloom.serving.index.rendered_banner import encode_ids
from adloom.serving.index.steps import run_steps
from adloom.targeting.context import Context

ANSWERS_KEPT_SECONDS = 60
ANSWERS_MAX = 10_000  # Beyond this the oldest are dropped.
CAMPAIGNS_A_STEP = 64
CAPS: Final = "caps"
BUDGETS: Final = "budgets"

SEVERAL_SITES: Final = -1

_NO_RANK: Final = -1
_LAST_RANK: Final = 1 << 62  # After every rank.


class RenderedOffer(msgspec.Struct, frozen=True, gc=False):
    """A candidate in a slot, as far as it is the same for every request."""

    candidate: Candidate
    token_terms: bytes
    ids: bytes


def make_free(offers: Iterable[RenderedOffer]) -> list[RenderedOffer]:
    """Return the same offers for a doubtful sender: they cost nothing, and nothing of them counts."""
    return [RenderedOffer(one.candidate, make_charge_void(one.token_terms), one.ids) for one in offers]


class PlacementState(EligibleSet):
    """One placement's eligible candidates, and the answers made from them."""

    __slots__ = (
        "_chosen",
        "_last_rank",
        "_offers",
        "answers",
        "is_requested",
        "placement",
        "pools",
        "requests",
        "site_key",
    )

    def __init__(  # noqa: PLR0913, PLR0917 - what it is made from
        self,
        placement: IndexedPlacement,
        schedule_mask: ScheduleMask,
        ranks: Ranks,
        excluded: ExcludedCampaigns,
        change_counter: ChangeCounter,
        lowered_bids: LoweredBids | None = None,
    ) -> None:
        self.placement = placement
        self.requests = 0  # Ever, of auctions and contextual slots; they are added now and then.
        self.site_key = placement.site_key  # Creatives of a campaign: the one that they were requested on.
        self.is_requested = False  # Since `take_requested`.
        self._offers: dict[
            bytes, RenderedOffer
        ] = {}  # Built when a candidate is first chosen; answers share them.
        self.answers: dict[Context, tuple[int, tuple[RenderedOffer, ...]]] = {}
        # By context, the tiers that are reached, where candidates take turns: every answer is drawn anew.
        self.pools: dict[Context, tuple[int, tuple[Tier, ...]]] = {}
        self._chosen: set[int] = set()  # Campaigns in an answer.
        self._last_rank = _NO_RANK  # Candidates after it change no answer.
        super().__init__(placement, schedule_mask, ranks, excluded, change_counter, lowered_bids)

    def note_site(self, site_key: int | None) -> None:
        """Note that a campaign's creatives were requested on a site."""
        self.site_key = site_key if self.site_key is None else SEVERAL_SITES

    def take_over(self, before: "PlacementState") -> None:
        """Go on counting where the state of an older index ended."""
        self.requests = before.requests
        if self.site_key is None:
            self.site_key = before.site_key

    def cache_answer(self, context: Context, until: int, offers: tuple[RenderedOffer, ...]) -> None:
        """Keep an answer, and what could change it: its campaigns, and candidates before its last one."""
        self.answers[context] = (until, offers)
        last = _LAST_RANK
        for offer in offers:
            self._chosen.add(offer.candidate.campaign_key)
        if len(offers) >= self.placement.slots_max:
            # The campaign's last rank here: one of its candidates was chosen, and none comes after it.
            last = self.ranks[offers[-1].candidate.campaign_key][-1]
        self._last_rank = max(self._last_rank, last)

    def build_offers(self, candidates: Iterable[Candidate]) -> tuple[RenderedOffer, ...]:
        """Build what all answers with these candidates share."""
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
        # A campaign that leaves changes the answers it is in; one that comes, those it would be in.
        if self.pools or (campaign_key in self._chosen if is_out else first_rank <= self._last_rank):
            self._forget()

    def _on_all_changed(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.answers.clear()
        self.pools.clear()
        self._chosen.clear()
        self._last_rank = _NO_RANK


class PlacementStates:
    """The states of all placements of the index."""

    def __init__(
        self,
        *,
        keep_seconds: int = ANSWERS_KEPT_SECONDS,
        answers_max: int = ANSWERS_MAX,
        turns: Rotator | None = None,
    ) -> None:
        self._keep_seconds = keep_seconds
        self._answers_max = answers_max
        self._turns = turns
        self._by_key: dict[int, PlacementState] = {}
        self._placements: dict[int, set[int]] = {}  # By campaign, the placements that have it.
        self._kept: deque[tuple[dict[Context, Any], Context]] = deque()
        self._excluded = ExcludedCampaigns()
        self._lowered = LoweredBids()
        self.multipliers = self._lowered.multipliers  # Of campaigns whose bids are lowered.
        self.change_counter = ChangeCounter()
        self._requested: list[PlacementState] = []
        self.inquiries = 0  # Calls of `take_requested`.
        self._watching: list[EligibleSet] = []
        self.hits = 0
        self.misses = 0

    def exclude(self, exclusions: Exclusions, *, source: str = CAPS) -> None:
        """Replace the campaigns that one source excludes."""
        self._mark(self._excluded.replace(source, exclusions))

    def mark_changed(self, changes: Mapping[int, str | None], *, source: str = BUDGETS) -> None:
        """Exclude some campaigns for a reason, or with None no longer."""
        self._mark(self._excluded.change(source, changes))

    def set_multipliers(self, multipliers: Mapping[int, float]) -> None:
        """Change what some campaigns' bids are multiplied by, from the next auction on."""
        changed = self._lowered.change(multipliers)
        if not changed:
            return
        placement_keys = {placement for key in changed for placement in self._placements.get(key, ())}
        states = [self._by_key[key] for key in placement_keys if key in self._by_key]
        for eligible_set in (*states, *self._watching):
            eligible_set.mark_lowered(changed)

    def count_requests(self, placement_key: int) -> int:
        """Return how often a placement was requested, as far as this process knows."""
        state = self._by_key.get(placement_key)
        return 0 if state is None else state.requests

    def find_site(self, placement_key: int) -> int | None:
        """Return the site of a placement, or the only one that a campaign's creatives were requested on."""
        state = self._by_key.get(placement_key)
        return None if state is None or state.site_key == SEVERAL_SITES else state.site_key

    def find_reason(self, campaign_key: int) -> str | None:
        return self._excluded.find_reason(campaign_key, (CAPS, BUDGETS))

    def take_requested(self) -> list[int]:
        """Return the placements that were requested since the last call."""
        asked, self._requested = self._requested, []
        self.inquiries += 1
        for state in asked:
            state.is_requested = False
        return [state.placement.key for state in asked]

    def prepare(self, placement: IndexedPlacement, *, now: datetime) -> Generator[None, None, PlacementState]:
        """Build a state before the first request for it, in steps."""
        schedule_mask = yield from build_schedule_mask(placement, now=now)
        ranks = yield from rank_campaigns(placement)
        for number, campaign_key in enumerate(ranks):
            if number % CAMPAIGNS_A_STEP == 0:
                yield
            self._placements.setdefault(campaign_key, set()).add(placement.key)
        return PlacementState(
            placement, schedule_mask, ranks, self._excluded, self.change_counter, self._lowered
        )

    def prepare_eligible_set(
        self, candidates: HasBlocks, *, now: datetime
    ) -> Generator[None, None, EligibleSet]:
        """Build an eligible set of candidates, in steps; `watch` keeps it up to date."""
        schedule_mask = yield from build_schedule_mask(candidates, now=now)
        ranks = yield from rank_campaigns(candidates)
        return EligibleSet(
            candidates, schedule_mask, ranks, self._excluded, self.change_counter, self._lowered
        )

    def watch(self, sets: Sequence[EligibleSet]) -> None:
        """Keep these sets up to date from now on, and no others."""
        self._watching = []
        for eligible_set in sets:
            self.watch_also(eligible_set)

    def watch_also(self, eligible_set: EligibleSet) -> None:
        """Keep one more set up to date."""
        self._watching.append(eligible_set)
        if eligible_set.excluded_version != self._excluded.changes:
            eligible_set.set_excluded(self._excluded)
        eligible_set.update_lowered()

    def unwatch(self, eligible_set: EligibleSet) -> None:
        """Keep a set up to date no longer."""
        self._watching = [each for each in self._watching if each is not eligible_set]

    def install(self, index: Index, states: Iterable[PlacementState]) -> None:
        """Take over prepared states in the moment in which their index becomes the current one."""
        for state in states:
            # Apply exclusions that came after the state was prepared.
            if state.excluded_version != self._excluded.changes:
                state.set_excluded(self._excluded)
            state.update_lowered()
            before = self._by_key.get(state.placement.key)
            self._by_key[state.placement.key] = state
            if before is not None:
                state.take_over(before)
                self._forget_campaigns(before, keeping=state.ranks)
        for key in self._by_key.keys() - index.by_key.keys():
            self._forget_campaigns(self._by_key.pop(key), keeping={})

    def get(self, placement: IndexedPlacement, now: datetime) -> PlacementState:
        state = self._by_key.get(placement.key)
        if state is None or state.placement is not placement:
            before, state = state, run_steps(self.prepare(placement, now=now))
            self._by_key[placement.key] = state
            if before is not None:
                state.take_over(before)
        elif not state.since <= now < state.until:
            state.advance_to(now)
        if not state.is_requested:
            state.is_requested = True
            self._requested.append(state)
        return state

    def decide_offers(
        self, state: PlacementState, context: Context, second: int, chance: Chance | None = None
    ) -> tuple[RenderedOffer, ...]:
        """Decide, or return what was decided for the same context a moment ago.

        Where candidates take turns it is drawn, with `chance` if the draw must be repeatable.
        """
        answer = state.answers.get(context)
        if answer is not None and second < answer[0]:
            self.hits += 1
            return answer[1]
        if state.placement.turns and self._turns is not None:
            drawn = self._turns.order(state.placement, self._find_tiers(state, context, second), chance)
            return state.build_offers(islice(drawn, state.placement.slots_max))
        self.misses += 1
        offers = state.build_offers(decide(state.placement, context, state.available))
        if self._keep_seconds:
            self._keep(state, context, second + self._keep_seconds, offers)
        return offers

    def iter_in_turn(
        self,
        state: PlacementState,
        candidates: Iterator[Candidate],
        chosen: Sequence[RenderedOffer] = (),
    ) -> Iterator[Candidate]:
        """Yield candidates, which are in fill order, as the placement's rotation has them: those chosen already first."""
        turns = state.placement.turns
        if not turns or self._turns is None:
            return candidates
        banners = {offer.candidate.banner_key for offer in chosen}
        others = (one for one in candidates if one.banner_key not in banners)
        drawn = self._turns.order(state.placement, iter_tiers(turns, others))
        return chain((offer.candidate for offer in chosen), drawn)

    def _find_tiers(self, state: PlacementState, context: Context, second: int) -> tuple[Tier, ...]:
        known = state.pools.get(context)
        if known is not None and second < known[0]:
            self.hits += 1
            return known[1]
        self.misses += 1
        placement = state.placement
        eligible = iter_eligible(placement, context, state.available)
        tiers = collect_tiers(placement.turns, eligible, slots_max=placement.slots_max)
        if self._keep_seconds:
            state.pools[context] = (second + self._keep_seconds, tiers)
            self._note_kept(state.pools, context)
        return tiers

    def _keep(
        self, state: PlacementState, context: Context, until: int, offers: tuple[RenderedOffer, ...]
    ) -> None:
        state.cache_answer(context, until, offers)
        self._note_kept(state.answers, context)

    def _note_kept(self, kept: dict[Context, Any], context: Context) -> None:
        self._kept.append((kept, context))
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

    def _forget_campaigns(self, state: PlacementState, *, keeping: Ranks) -> None:
        for campaign_key in state.ranks.keys() - keeping.keys():
            placements = self._placements.get(campaign_key, set())
            placements.discard(state.placement.key)
            if not placements:
                self._placements.pop(campaign_key, None)
