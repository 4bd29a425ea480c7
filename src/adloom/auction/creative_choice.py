"""Which creative fills a contextual slot: Thompson sampling of click rates, weighted by the bid.

`score = engagement * max(cpm, 0.001) ** bid_weight`, where the engagement is drawn from what is known of the
creative on this site. `INFORMED` draws from a narrow Beta distribution around the site's own click rate; `LADDER` is
the cold start of the seed document: by category, then the least shown, then Thompson with a share of newcomers.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from adloom.auction.beta_draws import ReadyDraw, draw_weighted, prepare_beta
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.core.random import Chance

CPM_MIN: Final = 0.001  # In units of the currency.
CPM_MIN_MICROS: Final = 1_000
ENGAGEMENT_MIN: Final = 0.001
FEW_IMPRESSIONS: Final = 10
NEWCOMER_SHARE: Final = 0.30
ALL_NEW_NOISE: Final = 0.10
NEW_NOISE: Final = 0.15
# What is assumed of a creative that nobody has seen: so many impressions at the site's click rate.
PRIOR_IMPRESSIONS: Final = 200.0
# Draws are as close to what is known as if there were so many times as many impressions. Plain Thompson sampling (1)
# explores too long where few click: docs/guide/contextual.md has figures.
EVIDENCE_WEIGHT: Final = 4.0
CLICK_RATE_DEFAULT: Final = 0.003


class ChoiceMethod(StrEnum):
    """How engagement is estimated."""

    INFORMED = "informed"
    LADDER = "ladder"


class Contender(NamedTuple):
    """A creative that may fill the slot, and its results of the last hour on this site."""

    bid: Micros
    category_score: float
    impressions: int
    clicks: int


class PreparedContender(NamedTuple):
    """A creative that may fill the slot, as far as it is the same for every request."""

    weighted_bid: float
    fit: float  # By how much its category's score changes the click rate that is assumed.


class ScoredContender(NamedTuple):
    """A contender by its position among those given, its drawn engagement, and its score."""

    position: int
    engagement: float
    score: float


class DrawnScores(msgspec.Struct, frozen=True, gc=False):
    """Engagements and scores of contenders by position; `order` is by score, unless it is given."""

    engagements: list[float]
    scores: list[float]
    order: Sequence[int] | None = None

    def iter_best(self) -> Iterator[int]:
        """Yield all positions, the best first; of equal scores the first. Nearly always one is enough."""
        if self.order is not None:
            yield from self.order
            return
        left = self.scores.copy()
        for _ in self.scores:
            position = left.index(max(left))
            left[position] = -math.inf
            yield position

    def list_ranked(self) -> list[ScoredContender]:
        return [
            ScoredContender(position, self.engagements[position], self.scores[position])
            for position in self.iter_best()
        ]


class ChoicePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a site chooses: `bid_weight` says how much a higher bid matters against a better creative."""

    bid_weight: float = 0.5
    method: ChoiceMethod = ChoiceMethod.INFORMED
    click_rate: float = CLICK_RATE_DEFAULT
    prior_impressions: float = PRIOR_IMPRESSIONS
    evidence_weight: float = EVIDENCE_WEIGHT


def rank(contenders: Sequence[Contender], policy: ChoicePolicy, chance: Chance) -> list[ScoredContender]:
    """Score all contenders, the best first; the others follow in case the best cannot be held."""
    if policy.method is ChoiceMethod.LADDER:
        return _climb(contenders, policy, chance)
    prepared = [
        prepare_contender(one.bid, one.category_score, bid_weight=policy.bid_weight) for one in contenders
    ]
    results = [(one.impressions, one.clicks) for one in contenders]
    return draw_scores(prepare_draws(prepared, results, policy), chance).list_ranked()


def prepare_contender(bid: Micros, category_score: float, *, bid_weight: float) -> PreparedContender:
    return PreparedContender(_weigh(bid, bid_weight), 0.5 + category_score)


def prepare_draws(
    contenders: Iterable[PreparedContender], results: Iterable[tuple[int, int]], policy: ChoicePolicy
) -> list[ReadyDraw]:
    """Prepare draws by `INFORMED`; `results` are the impressions and clicks of each."""
    expected = policy.click_rate * policy.prior_impressions
    missed = policy.prior_impressions - expected
    weight = policy.evidence_weight
    ready: list[ReadyDraw] = []
    for (weighted_bid, fit), (impressions, clicks) in zip(contenders, results, strict=True):
        # A late click may make more clicks than impressions: both parameters stay positive.
        hits = clicks + expected * fit
        misses = missed + max(impressions - clicks, 0)
        shape = prepare_beta(max(ENGAGEMENT_MIN, weight * hits), max(1.0, weight * misses))
        ready.append((weighted_bid, *shape))
    return ready


def draw_scores(ready: Sequence[ReadyDraw], chance: Chance) -> DrawnScores:
    """Draw an engagement for each, by which its weighted bid is multiplied."""
    scores = draw_weighted(ready, chance.random)
    return DrawnScores([score / one[0] for one, score in zip(ready, scores, strict=True)], scores)


def _weigh(bid: Micros, bid_weight: float) -> float:
    return max(bid / MICROS_PER_UNIT, CPM_MIN) ** bid_weight


def _climb(contenders: Sequence[Contender], policy: ChoicePolicy, chance: Chance) -> list[ScoredContender]:
    new = [position for position, one in enumerate(contenders) if one.impressions == 0]
    if len(new) == len(contenders):
        return _rank_by_score(contenders, policy, [_guess(one, ALL_NEW_NOISE, chance) for one in contenders])
    if all(one.impressions < FEW_IMPRESSIONS for one in contenders):
        ranked = _rank_by_score(contenders, policy, [_draw(one, chance) for one in contenders])
        return sorted(ranked, key=lambda scored: contenders[scored.position].impressions)
    ranked = _rank_by_score(contenders, policy, [_draw(one, chance) for one in contenders])
    if new and chance.random() < NEWCOMER_SHARE:
        picked = new[min(int(chance.random() * len(new)), len(new) - 1)]
        ranked.sort(key=lambda scored: scored.position != picked)
    return ranked


def _draw(one: Contender, chance: Chance) -> float:
    if one.impressions == 0:
        return _guess(one, NEW_NOISE, chance)
    return chance.betavariate(one.clicks + 1.0, max(one.impressions - one.clicks, 0) + 1.0)


def _guess(one: Contender, noise: float, chance: Chance) -> float:
    return max(ENGAGEMENT_MIN, one.category_score + chance.uniform(-noise, noise))


def _rank_by_score(
    contenders: Sequence[Contender], policy: ChoicePolicy, engagements: Sequence[float]
) -> list[ScoredContender]:
    weight = policy.bid_weight
    scored = [
        ScoredContender(position, engagement, engagement * _weigh(one.bid, weight))
        for position, (one, engagement) in enumerate(zip(contenders, engagements, strict=True))
    ]
    scored.sort(key=lambda one: (-one.score, one.position))
    return scored


def share_bid(share: float, bid: Micros, floor: Micros, bid_weight: float) -> Micros:
    """Return the lowest bid that reaches a share of a bid's score with the same engagement, at least the floor."""
    assert floor <= bid, "a bid under the floor takes no part"
    price = (bid if bid > CPM_MIN_MICROS else CPM_MIN_MICROS) * share ** (1.0 / bid_weight)  # noqa: FURB136 - a call
    if price >= bid:
        return bid
    return floor if price <= floor else round(price)  # pyright: ignore[reportReturnType]  every offer is priced: a call would cost
