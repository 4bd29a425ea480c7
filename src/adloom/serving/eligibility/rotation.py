"""Candidates that take turns: which of those of one display order come first, by weight or by their clicks, and by chance.

Tiers are in fill order: a later one gets only the slots that an earlier one leaves. Within a tier every candidate
comes once, and every banner once.
"""

# pure

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, islice
from typing import Final

from adloom.auction.beta_draws import ReadyDraw, draw_weighted
from adloom.auction.creative_choice import (
    ChoicePolicy,
    DrawnScores,
    PreparedContender,
    prepare_draws,
)
from adloom.core.delivery import Rotation
from adloom.core.ids import PlacementId
from adloom.core.random import Chance
from adloom.market.results.window import NO_RESULTS, SiteResults
from adloom.serving.index.index import Candidate, IndexedPlacement, Turn

TIER_MAX: Final = 1_000  # Of a tier with more candidates, the first so many take turns.
ALIKE: Final = PreparedContender(weighted_bid=1.0, fit=1.0)  # Only clicks tell them apart.
NOT_SHOWN: Final = (0, 0)

ReadPlacementResults = Callable[[PlacementId], SiteResults]


class Tier:
    """Candidates that take turns, in fill order; what their draws need is prepared once."""

    __slots__ = ("_draws", "_results", "candidates", "cumulated")

    def __init__(self, candidates: Sequence[Candidate], turns: Mapping[bytes, Turn]) -> None:
        self.candidates = candidates
        weights = [turns[one.pair].weight for one in candidates]
        self.cumulated = list(accumulate(weights if any(weights) else [1] * len(weights)))
        self._results: SiteResults | None = None
        self._draws: list[ReadyDraw] = []

    def iter_by_weight(self, chance: Chance) -> Iterator[Candidate]:
        """Yield all by chance: each is the next with a probability in proportion to its weight among those left.

        Where nothing has a weight, each is with the same.
        """
        first = self._find_weighted(chance)
        yield self.candidates[first]
        left = [
            (one, above - below)
            for position, (one, above, below) in enumerate(
                zip(self.candidates, self.cumulated, (0, *self.cumulated), strict=False)
            )
            if position != first
        ]
        total = sum(weight for _, weight in left)
        while left:
            if not total:
                left, total = [(one, 1) for one, _ in left], len(left)
            position, point = 0, chance.random() * total
            while position < len(left) - 1 and point >= left[position][1]:
                point -= left[position][1]
                position += 1
            one, weight = left.pop(position)
            total -= weight
            yield one

    def _find_weighted(self, chance: Chance) -> int:
        cumulated = self.cumulated
        # A draw close to 1 may round up to the sum itself.
        return min(bisect_right(cumulated, chance.random() * cumulated[-1]), len(cumulated) - 1)

    def iter_by_clicks(self, chance: Chance, results: SiteResults) -> Iterator[Candidate]:
        """Yield all by Thompson sampling of their click rates, as contextual slots do."""
        if results is not self._results:
            counts = [results.banners.get(one.banner_key, NOT_SHOWN) for one in self.candidates]
            policy = ChoicePolicy(click_rate=results.click_rate)
            self._draws = prepare_draws([ALIKE] * len(counts), counts, policy)
            self._results = results
        for position in DrawnScores([], draw_weighted(self._draws, chance.random)).iter_best():
            yield self.candidates[position]


def iter_tiers(turns: Mapping[bytes, Turn], candidates: Iterable[Candidate]) -> Iterator[Tier]:
    """Group candidates, which are in fill order, lazily."""
    for _, members in groupby(candidates, key=lambda one: turns[one.pair].tier):
        yield Tier(tuple(islice(members, TIER_MAX)), turns)


def collect_tiers(
    turns: Mapping[bytes, Turn], candidates: Iterable[Candidate], *, slots_max: int
) -> tuple[Tier, ...]:
    """Return the tiers that can be reached while so many slots are filled."""
    tiers: list[Tier] = []
    banners: set[int] = set()
    for tier in iter_tiers(turns, candidates):
        tiers.append(tier)
        banners.update(one.banner_key for one in tier.candidates)
        if len(banners) >= slots_max:
            break
    return tuple(tiers)


class Rotator:
    """Puts candidates that take turns into the order of one request."""

    def __init__(self, chance: Chance, read_results: ReadPlacementResults = lambda _: NO_RESULTS) -> None:
        self._chance = chance
        self._read_results = read_results

    def order(
        self, placement: IndexedPlacement, tiers: Iterable[Tier], chance: Chance | None = None
    ) -> Iterator[Candidate]:
        """Yield candidates in a drawn order, each banner once; `chance` is given where the draw must be repeatable."""
        chance = chance or self._chance
        is_best = placement.rotation is Rotation.BEST
        results = self._read_results(placement.id) if is_best else NO_RESULTS
        banners: set[int] = set()
        for tier in tiers:
            for one in tier.iter_by_clicks(chance, results) if is_best else tier.iter_by_weight(chance):
                if one.banner_key not in banners:
                    banners.add(one.banner_key)
                    yield one
