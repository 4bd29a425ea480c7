"""The live state of auction markets: all placements of a type, or one placement."""

# pure

from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from adloom.auction.bid import OwnBids
from adloom.auction.score import Heuristic, Scorer, Scoring, Signals, Strengths
from adloom.serving.auction.decide import NO_KEYS, WinningBid, decide
from adloom.serving.auction.scan_plan import TOP_BIDS_MAX, BlockRef, ScanPlan, TopBids, build_top_bids
from adloom.serving.auction.strongest import (
    STRONGEST_MAX,
    StrongStep,
    collect_strongest,
    find_strongest,
    is_worthwhile,
    order_by,
)
from adloom.serving.eligibility.eligible_set import EligibleSet
from adloom.serving.eligibility.placement_state import PlacementState, PlacementStates
from adloom.serving.index.bid_block import BidBlock, rank_blocks
from adloom.serving.index.index import Block, Index, MarketPlacements
from adloom.targeting.context import Context

PLANS_MAX: Final = 64  # Beyond, all are built again: a policy that has so many bounds has too many.

StrengthSource = Callable[[], tuple[Strengths, ...]]
# By placement type: the placements, and the eligible sets of their top bids.
TopBidSets = Mapping[str, tuple[MarketPlacements, Sequence[EligibleSet]]]
NO_TOP_BIDS: Final[tuple[MarketPlacements, Sequence[EligibleSet]]] = ((), ())


class Market:
    """The bids of one market, as eligible now."""

    def __init__(
        self,
        placements: MarketPlacements,
        states: PlacementStates,
        *,
        now: datetime,
        top_sets: Sequence[EligibleSet] = (),
    ) -> None:
        self.placements = placements
        self._top_sets = top_sets
        self.scorings = tuple(sorted({placement.scoring for placement in placements}))
        self.zones = tuple(dict.fromkeys(placement.zone for placement in placements))
        self.placements_by_key = {placement.key: placement for placement in placements}
        self._states = states
        self._current_states: list[PlacementState] = []
        self._block_refs: tuple[BlockRef, ...] = ()
        self._plans: dict[tuple[int, ...], ScanPlan] = {}
        self._strong_steps: dict[tuple[Strengths, ...], tuple[StrongStep, ...]] = {}
        self._since = self._until = now
        self.requests = 0  # Since the last refresh.
        self._inquiries = 0  # The value of `states.inquiries` at the last refresh.
        self.refresh(now)

    def is_current(self, now: datetime) -> bool:
        """Whether schedules are as of now, and the placements count as requested."""
        return self._since <= now < self._until and self._inquiries == self._states.inquiries

    def expire(self) -> None:
        """Refresh before the next request: placement states may have been replaced."""
        self._until = self._since

    def refresh(self, now: datetime) -> None:
        current = [self._states.get(placement, now) for placement in self.placements]
        for state in current:
            state.requests += self.requests
        self.requests = 0
        self._inquiries = self._states.inquiries
        if current != self._current_states:
            self._current_states = current
            self._block_refs = tuple(self._list_blocks())
            self._drop_plans()
        self._strong_steps = self._list_strong_steps()
        strongest = [step.eligible_set for steps in self._strong_steps.values() for step in steps]
        for each in (*self._top_sets, *strongest):
            if not each.since <= now < each.until:
                each.advance_to(now)
        eligible_sets = (*current, *self._top_sets, *strongest)
        self._since = max(each.since for each in eligible_sets)
        self._until = min(each.until for each in eligible_sets)

    def plan_scan(self, scorers: Sequence[Scorer]) -> ScanPlan:
        """Return the cached plan for these scorers' bounds, or build it."""
        bounds = tuple([scorer.ctr_max for scorer in scorers])
        plan = self._plans.get(bounds)
        if plan is None:
            if len(self._plans) >= PLANS_MAX:
                self._drop_plans()
            plan = self._plans[bounds] = ScanPlan(self._block_refs, scorers)
        return plan

    def find_strongest(self, scorers: Sequence[Scorer]) -> Sequence[StrongStep]:
        """Return the strongest bids of all placements by what these scorers rank by; none if some are not known."""
        if not self._strong_steps:
            return ()
        strengths = tuple([scorer.ranked.strengths for scorer in scorers if scorer.ranked is not None])
        return self._strong_steps.get(strengths, ())

    def _list_strong_steps(self) -> dict[tuple[Strengths, ...], tuple[StrongStep, ...]]:
        """List the strongest bids by strengths, where one policy scores all and all placements have some."""
        tops = self.top_bids
        if len(self.scorings) > 1 or sum(len(top.placements) for top in tops) < len(self.placements):
            return {}
        by_top = [find_strongest(top) for top in tops]
        return {
            (strengths,): tuple(
                StrongStep(*known[strengths], 0, self.zones.index(top.zone))
                for top, known in zip(tops, by_top, strict=True)
            )
            for strengths in by_top[0]
            if all(strengths in known for known in by_top)
        }

    def _drop_plans(self) -> None:
        for plan in self._plans.values():
            plan.retire()
        self._plans.clear()

    @property
    def top_bids(self) -> list[TopBids]:
        return [each.candidates for each in self._top_sets if isinstance(each.candidates, TopBids)]

    def _list_blocks(self) -> list[BlockRef]:
        refs: list[BlockRef] = []
        for eligible_set, top in zip(self._top_sets, self.top_bids, strict=True):
            refs += self._refer_to_blocks(eligible_set, top.scoring, top.zone, None)
        by_kind = {(top.scoring, top.zone): top for top in self.top_bids}
        for state in self._current_states:
            scoring, zone = state.placement.scoring, state.placement.zone
            refs += self._refer_to_blocks(state, scoring, zone, by_kind.get((scoring, zone)))
        return refs

    def _refer_to_blocks(
        self, eligible_set: EligibleSet, scoring: str, zone: ZoneInfo, top: TopBids | None
    ) -> Iterator[BlockRef]:
        scorer, context = self.scorings.index(scoring), self.zones.index(zone)
        for number, block in enumerate(eligible_set.candidates.blocks):
            if isinstance(block, BidBlock):
                members = block.everyone if top is None else _mask_others(top, block)
                yield BlockRef(eligible_set, number, block, members, scorer, context)


class Markets:
    """All markets that were requested and are still in the index."""

    def __init__(
        self,
        states: PlacementStates,
        *,
        policies: Mapping[str, Scoring] | None = None,
        own_bids: OwnBids = OwnBids.IGNORE,
        strongest_max: int = STRONGEST_MAX,
    ) -> None:
        self._states = states
        self._strongest_max = strongest_max
        self.change_counter = states.change_counter
        # The heuristic stands in for a policy that this process does not know yet.
        self._policies: Mapping[str, Scoring] = defaultdict(Heuristic, policies or {})
        self._own_bids = own_bids
        self._index: Index | None = None
        self._top_sets: TopBidSets = {}
        self._prepared: tuple[Index, TopBidSets] | None = None
        self._prepared_at = datetime.min.replace(tzinfo=UTC)
        self._by_type: dict[str, Market] = {}
        self._by_slug: dict[bytes, Market] = {}

    def prepare(
        self, index: Index, *, now: datetime, bidders_max: int = TOP_BIDS_MAX
    ) -> Generator[None, None, TopBidSets]:
        """Collect the top bids of every market before its first request, with pauses."""
        top_sets: dict[str, tuple[MarketPlacements, Sequence[EligibleSet]]] = {}
        for placement_type, placements in index.markets.items():
            before = self._top_sets.get(placement_type)
            if before is not None and before[0] is placements:
                top_sets[placement_type] = before
                continue
            built = yield from self._prepare_top_sets(placements, now, bidders_max)
            top_sets[placement_type] = placements, built
        self._prepared, self._prepared_at = (index, top_sets), now
        for policy in self._policies.values():
            yield from self.rank(policy.name, lambda policy=policy: policy.strengths)
        return top_sets

    def rank(self, scoring: str, source: StrengthSource) -> Generator[None, None, int]:
        """Rank the bids that a policy scores, with pauses; return how many they are.

        Starts again if the prepared index or the strengths change meanwhile.
        """
        bids = 0
        prepared: tuple[Index, TopBidSets] | None = None
        ranked_by: tuple[Strengths, ...] = ()
        while self._prepared is not prepared or source() != ranked_by:
            prepared, ranked_by = self._prepared, source()
            blocks = [] if prepared is None else _list_scored_blocks(*prepared, scoring)
            bids = sum(len(block.candidates) for block in blocks)
            for strengths in ranked_by:
                yield from rank_blocks(blocks, strengths)
            if prepared is not None:
                for _, sets in prepared[1].values():
                    yield from self._collect_strongest(sets, scoring, ranked_by)
        for market in self._by_type.values():
            market.expire()  # To use the strongest bids.
        return bids

    def _collect_strongest(
        self, sets: Sequence[EligibleSet], scoring: str, ranked_by: Sequence[Strengths]
    ) -> Generator[None, None, None]:
        """Collect the strongest bids of a market by what a policy ranks by, with pauses."""
        tops = [each.candidates for each in sets if isinstance(each.candidates, TopBids)]
        if not any(map(is_worthwhile, tops)):
            return
        for top in [one for one in tops if one.scoring == scoring]:
            for retired in [one for one in top.strongest if one.is_retired]:
                self._states.unwatch(top.strongest.pop(retired))
            for strengths in ranked_by:
                if strengths.base is strengths and strengths not in top.strongest:
                    found = yield from collect_strongest(top, strengths, bidders_max=self._strongest_max)
                    eligible_set = yield from self._states.prepare_eligible_set(found, now=self._prepared_at)
                    top.strongest[strengths] = eligible_set
                    self._states.watch_also(eligible_set)
                if strengths.base in top.strongest:
                    yield from order_by(top, strengths)

    def install(self, top_sets: TopBidSets) -> None:
        """Use what was prepared, at the moment its index becomes the current one."""
        self._top_sets = top_sets
        self._index = None  # Every market is refreshed.
        watched = [each for _, sets in top_sets.values() for each in sets]
        for top in [each.candidates for each in watched]:
            if isinstance(top, TopBids):
                watched += top.strongest.values()
        self._states.watch(watched)

    def find_by_type(self, index: Index, placement_type: str, *, now: datetime) -> Market | None:
        """Return the market of all placements of a type; None if none of them is auctioned."""
        if index is not self._index:
            self._drop_stale(index)
        market = self._by_type.get(placement_type)
        if market is None:
            placements = index.markets.get(placement_type)
            if placements is None:
                return None
            prepared_for, top_sets = self._top_sets.get(placement_type, NO_TOP_BIDS)
            if prepared_for is not placements:
                top_sets = ()
            market = Market(placements, self._states, now=now, top_sets=top_sets)
            self._by_type[placement_type] = market
        elif not market.is_current(now):
            market.refresh(now)
        market.requests += 1
        return market

    def find_by_slug(self, index: Index, slug: bytes, now: datetime) -> Market | None:
        """Return the market of one placement; None if it is not auctioned."""
        if index is not self._index:
            self._drop_stale(index)
        market = self._by_slug.get(slug)
        if market is None:
            placement = index.by_slug.get(slug)
            if placement is None or not placement.is_auctioned:
                return None
            market = self._by_slug[slug] = Market((placement,), self._states, now=now)
        elif not market.is_current(now):
            market.refresh(now)
        market.requests += 1
        return market

    def list_policies(self, market: Market) -> list[Scoring]:
        return [self._policies[name] for name in market.scorings]

    def build_scorers(self, market: Market, signals: Signals) -> list[Scorer]:
        return [policy.build_scorer(signals) for policy in self.list_policies(market)]

    def decide(
        self,
        market: Market,
        contexts: Sequence[Context],
        scorers: Sequence[Scorer],
        *,
        seen_enough: Collection[int] = NO_KEYS,
        unreserved: Collection[int] = NO_KEYS,
    ) -> tuple[WinningBid | None, int]:
        """Return the winner, and how many steps of the plan were scanned; a context for each zone of the market."""
        return decide(
            market.plan_scan(scorers).steps,
            contexts,
            scorers,
            strongest=market.find_strongest(scorers),
            own_bids=self._own_bids,
            seen_enough=seen_enough,
            unreserved=unreserved,
        )

    def _prepare_top_sets(
        self, placements: MarketPlacements, now: datetime, bidders_max: int
    ) -> Generator[None, None, Sequence[EligibleSet]]:
        sets: list[EligibleSet] = []
        for top in (yield from build_top_bids(placements, bidders_max=bidders_max)):
            sets += ((yield from self._states.prepare_eligible_set(top, now=now)),)
        return sets

    def _drop_stale(self, index: Index) -> None:
        """Drop the markets that another index does not have any more."""
        self._index = index
        self._by_type = {
            placement_type: market
            for placement_type, market in self._by_type.items()
            if index.markets.get(placement_type) is market.placements
        }
        self._by_slug = {
            slug: market
            for slug, market in self._by_slug.items()
            if index.by_slug.get(slug) is market.placements[0] and market.placements[0].is_auctioned
        }
        for market in (*self._by_type.values(), *self._by_slug.values()):
            market.expire()


def _list_scored_blocks(index: Index, top_sets: TopBidSets, scoring: str) -> list[Block]:
    blocks = [
        block
        for placement in index.by_key.values()
        if placement.is_auctioned and placement.scoring == scoring
        for block in placement.blocks
    ]
    for _, sets in top_sets.values():
        for each in sets:
            if isinstance(each.candidates, TopBids) and each.candidates.scoring == scoring:
                blocks += each.candidates.blocks
    return blocks


def _mask_others(top: TopBids, block: BidBlock) -> int:
    """Return the bids of a block that are not among the top bids."""
    members = block.everyone
    for position, one in enumerate(block.bidders):
        if one.seniority in top.members:
            members ^= 1 << position
    return members
