"""What each placement has to offer at the moment, and the answers made from it: all that changes here.

The index is immutable; what changes under it is who is in time and who is excluded. A shelf keeps both
as bitmaps, and with them the answers by context. They go when the bitmaps change, at once, only those
of this placement, and only where an answer may be another one.
"""

# pure

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.events.ingest.token import pack_charge
from adloom.serving.eligibility.decide import decide
from adloom.serving.eligibility.eligible_set import ChangeCounter, EligibleSet
from adloom.serving.eligibility.exclusions import ExcludedCampaigns, Exclusions, Ranks, rank_campaigns
from adloom.serving.eligibility.schedule_mask import ScheduleMask, build_schedule_mask
from adloom.serving.index.index import Candidate, HasBlocks, Index, IndexedPlacement
from adloom.serving.index.rendered_banner import encode_ids, token_terms_of
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

    __slots__ = ("_chosen", "_last_rank", "_offers", "answers", "is_asked", "placement")

    def __init__(
        self,
        placement: IndexedPlacement,
        openings: ScheduleMask,
        ranks: Ranks,
        excluded: ExcludedCampaigns,
        turnover: ChangeCounter,
    ) -> None:
        self.placement = placement
        self.is_asked = False  # Since somebody last wanted to know.
        self._offers: dict[
            bytes, RenderedOffer
        ] = {}  # Made when a candidate is first chosen; answers share them.
        self.answers: dict[Context, tuple[int, tuple[RenderedOffer, ...]]] = {}
        self._chosen: set[int] = set()  # Campaigns that are in an answer.
        self._last_rank = _NOBODY_YET  # Who stands behind it changes no answer by being there.
        super().__init__(placement, openings, ranks, excluded, turnover)

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
                terms = token_terms_of(one.pair, self.placement.id.bytes, charge)
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
    """The shelves of all placements of the index."""

    def __init__(self, *, keep_seconds: int = ANSWERS_KEPT_SECONDS, answers_max: int = ANSWERS_MAX) -> None:
        self._keep_seconds = keep_seconds
        self._answers_max = answers_max
        self._by_key: dict[int, PlacementState] = {}
        self._placements: dict[int, set[int]] = {}  # By campaign, the placements that have a shelf with it.
        self._kept: deque[tuple[dict[Context, tuple[int, tuple[RenderedOffer, ...]]], Context]] = deque()
        self._excluded = ExcludedCampaigns()
        self.turnover = ChangeCounter()
        self._asked: list[PlacementState] = []
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
        asked, self._asked = self._asked, []
        self.inquiries += 1
        for shelf in asked:
            shelf.is_asked = False
        return [shelf.placement.key for shelf in asked]

    def prepare(self, placement: IndexedPlacement, *, now: datetime) -> Generator[None, None, PlacementState]:
        """Make a shelf ahead of the first request for it, with pauses."""
        openings = yield from build_schedule_mask(placement, now=now)
        ranks = yield from rank_campaigns(placement)
        for number, campaign_key in enumerate(ranks):
            if number % CAMPAIGNS_A_STEP == 0:
                yield
            self._placements.setdefault(campaign_key, set()).add(placement.key)
        return PlacementState(placement, openings, ranks, self._excluded, self.turnover)

    def prepare_eligible_set(
        self, candidates: HasBlocks, *, now: datetime
    ) -> Generator[None, None, EligibleSet]:
        """Make the stock of candidates that are on shelves too, with pauses; once it is watched it is kept."""
        openings = yield from build_schedule_mask(candidates, now=now)
        ranks = yield from rank_campaigns(candidates)
        return EligibleSet(candidates, openings, ranks, self._excluded, self.turnover)

    def watch(self, stocks: Sequence[EligibleSet]) -> None:
        """Keep these stocks up to date from now on, and no others."""
        self._watching = list(stocks)
        for stock in stocks:
            if stock.as_of != self._excluded.changes:
                stock.set_excluded(self._excluded)

    def install(self, index: Index, shelves: Iterable[PlacementState]) -> None:
        """Take shelves that were prepared, in the moment in which their index becomes the current one."""
        for shelf in shelves:
            if (
                shelf.as_of != self._excluded.changes
            ):  # Who was excluded since it was prepared is not out yet.
                shelf.set_excluded(self._excluded)
            before = self._by_key.get(shelf.placement.key)
            self._by_key[shelf.placement.key] = shelf
            if before is not None:
                self._without(before, keeping=shelf.ranks)
        for key in self._by_key.keys() - index.by_key.keys():
            self._without(self._by_key.pop(key), keeping={})

    def get(self, placement: IndexedPlacement, now: datetime) -> PlacementState:
        """Give the shelf of a placement as it is now."""
        shelf = self._by_key.get(placement.key)
        if shelf is None or shelf.placement is not placement:
            shelf = self._by_key[placement.key] = run_steps(self.prepare(placement, now=now))
        elif not shelf.since <= now < shelf.until:
            shelf.advance_to(now)
        if not shelf.is_asked:
            shelf.is_asked = True
            self._asked.append(shelf)
        return shelf

    def decide_offers(
        self, shelf: PlacementState, context: Context, second: int
    ) -> tuple[RenderedOffer, ...]:
        """Decide, or remember what was decided for the same context a moment ago."""
        answer = shelf.answers.get(context)
        if answer is not None and second < answer[0]:
            self.hits += 1
            return answer[1]
        self.misses += 1
        offers = shelf.build_offers(decide(shelf.placement, context, shelf.available))
        if self._keep_seconds:
            self._keep(shelf, context, second + self._keep_seconds, offers)
        return offers

    def _keep(
        self, shelf: PlacementState, context: Context, until: int, offers: tuple[RenderedOffer, ...]
    ) -> None:
        shelf.cache_answer(context, until, offers)
        self._kept.append((shelf.answers, context))
        if len(self._kept) > self._answers_max:
            oldest, its_context = self._kept.popleft()
            oldest.pop(its_context, None)

    def _mark(self, campaign_keys: Iterable[int]) -> None:
        for campaign_key in campaign_keys:
            is_out = campaign_key in self._excluded
            for placement_key in self._placements.get(campaign_key, ()):
                shelf = self._by_key.get(placement_key)
                if shelf is not None:
                    shelf.mark(campaign_key, is_out=is_out)
            for stock in self._watching:
                stock.mark(campaign_key, is_out=is_out)

    def _without(self, shelf: PlacementState, *, keeping: Ranks) -> None:
        """Forget that campaigns have candidates on a shelf that was taken down."""
        for campaign_key in shelf.ranks.keys() - keeping.keys():
            placements = self._placements.get(campaign_key, set())
            placements.discard(shelf.placement.key)
            if not placements:
                self._placements.pop(campaign_key, None)
