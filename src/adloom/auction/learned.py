"""The policy `learned`: a logistic model that says by how much the heuristic is wrong.

The heuristic's odds are multiplied by e to the sum of some weights, so a model that has learned nothing is
the heuristic, to the billionth. What follows from the request is added up once for all its ads, what
follows from an ad once for all requests; what follows from both is remembered as long as there is room.

No ad of a request exceeds its `ctr_max`, by decree: a prediction beyond what ads have had lately is cut
there. Likewise a kind of reader makes no more difference to a banner than kinds have made lately. That keeps
bounds close, and a search that relies on them exact.
"""

from collections import Counter
from collections.abc import Iterable
from math import exp
from typing import Final, NamedTuple

from adloom.auction.bid import CTR_ONE, Ctr
from adloom.auction.features import ad_slots, banner_slots, placement_slots, request_slots
from adloom.auction.model import (
    Model,
    ctr_to_odds,
    exp_sum,
    max_ad_logit,
    max_cross_logit,
    odds_to_ctr,
    round_up_to_bound,
)
from adloom.auction.score import CtrSpan, Heuristic, RankedScorer, ScoredAd, Scorer, Signals, Strengths

LEARNED: Final = "learned"

CACHED_MAX: Final = 100_000  # Things of a model, about 20 MB at most. Beyond, all are forgotten.
SCORERS_MAX: Final = 4_096
KINDS_MAX: Final = 12  # Of readers, for whom it is known how strong ads are.
FREQUENT: Final = 20  # Requests of a kind, from which on it is worth while.
SPAN_MARGIN: Final = 1e-9  # For what is lost in the last digits of a product.

# By banner, what one kind of reader makes of it.
CrossFactors = dict[int, float]


class VisitorKind(NamedTuple):
    """A kind of reader, for whom banners differ."""

    device: str | None
    segment: str | None


class LearnedScoring:
    """The policy over one model; without one it is the heuristic.

    It knows how strong ads are in any request, and for some kinds of readers for each of them.
    """

    def __init__(self, model: Model | None = None, *, kinds: Iterable[VisitorKind] = ()) -> None:
        self.name = LEARNED
        self.version = 0 if model is None else model.version
        self.is_retired = False
        self._model = model
        self._heuristic = Heuristic()
        self._scorers: dict[tuple[object, ...], LearnedScorer] = {}
        self._crossings: dict[VisitorKind, CrossFactors] = {}
        self._strengths: dict[tuple[int, int, int], float] = {}  # By placement, banner and campaign.
        self._remembered = 0
        self._asked: Counter[VisitorKind] = Counter()
        self._for_kinds: dict[VisitorKind, KindStrengths] = {}
        for kind in kinds:
            self.use_kind(kind)

    @property
    def strengths(self) -> "tuple[LearnedScoring | KindStrengths, ...]":
        """What it knows of ads before a request: nothing without a model."""
        return () if self._model is None else (self, *self._for_kinds.values())

    @property
    def kinds(self) -> list[VisitorKind]:
        """Those kinds of readers for whom it is known how strong ads are, the most frequent first."""
        return sorted(self._for_kinds, key=lambda kind: -self._asked[kind])

    def compute_strength(self, ad: ScoredAd) -> float:
        """Tell by how much an ad is clicked more than others, in every request."""
        assert self._model is not None, "without a model all ads are alike"
        return exp_sum(self._model.weights, ad_slots(ad.placement_key, ad.banner_key, ad.campaign_key))

    def get_strength(self, ad: ScoredAd) -> float:
        """Tell it as often as it is wanted: it is remembered."""
        key = (ad.placement_key, ad.banner_key, ad.campaign_key)
        strength = self._strengths.get(key)
        if strength is None:
            self._make_room_for_one()
            strength = self._strengths[key] = self.compute_strength(ad)
        return strength

    def compute_cross_factor(self, kind: VisitorKind, banner_key: int) -> float:
        """Tell what a kind of reader makes of a banner."""
        assert self._model is not None, "without a model all readers are alike"
        at_most = max_cross_logit(self._model)
        return exp_sum(self._model.weights, banner_slots(banner_key, *kind), at_most=at_most)

    def build_scorer(self, signals: Signals) -> Scorer:
        """Look at a request once, for all its ads."""
        flat = self._heuristic.build_scorer(signals)
        model = self._model
        if model is None:
            return flat
        key = (flat.ctr_max, signals.device, signals.country, signals.hour, signals.segment)
        scorer = self._scorers.get(key)
        if scorer is None:
            if len(self._scorers) >= SCORERS_MAX:
                self.forget()
            kind = VisitorKind(signals.device, signals.segment)
            scorer = LearnedScorer(self, model, signals, flat.ctr_max, self._for_kinds.get(kind))
            self._scorers[key] = scorer
        self._asked[scorer.kind] += 1
        return scorer

    def find_frequent_kind(self) -> VisitorKind | None:
        """Tell which kind of reader comes often, without that it is known how strong ads are for it."""
        for kind, times in self._asked.most_common(KINDS_MAX):
            if times >= FREQUENT and kind not in self._for_kinds:
                return kind
        return None

    def for_kind(self, kind: VisitorKind) -> "KindStrengths":
        """Tell how strong ads are for a kind of reader, before that is used."""
        return KindStrengths(self, kind)

    def use_kind(self, kind: VisitorKind, strengths: "KindStrengths | None" = None) -> None:
        """Use from now on what is known for a kind of reader."""
        self._for_kinds[kind] = strengths or KindStrengths(self, kind)
        self._scorers = {}

    def reserve_cross_factors(self, kind: VisitorKind) -> CrossFactors:
        """Tell where one thing more about a kind of reader is remembered."""
        self._make_room_for_one()
        return self._crossings.setdefault(kind, {})

    def forget(self) -> None:
        """Forget what is remembered, also what somebody who has kept a scorer remembers."""
        for crossings in self._crossings.values():
            crossings.clear()
        self._crossings = {}
        self._strengths = {}
        self._scorers = {}
        self._asked = Counter({kind: self._asked[kind] for kind in self._for_kinds})
        self._remembered = 0

    def _make_room_for_one(self) -> None:
        self._remembered += 1
        if self._remembered > CACHED_MAX:
            self.forget()

    def retire(self) -> None:
        """Hear that another model is used; what was decided with this one may be kept for some minutes."""
        self.is_retired = True
        self.forget()


class KindStrengths:
    """How strong ads are for one kind of reader: exactly, whatever else the request is."""

    def __init__(self, policy: LearnedScoring, kind: VisitorKind) -> None:
        self._policy = policy
        self._kind = kind

    @property
    def is_retired(self) -> bool:
        """Whether something else was learned."""
        return self._policy.is_retired

    def compute_strength(self, ad: ScoredAd) -> float:
        """Tell by how much an ad is clicked more than others by such readers."""
        return self._policy.compute_strength(ad) * self._policy.compute_cross_factor(
            self._kind, ad.banner_key
        )


class LearnedScorer:
    """The policy for requests of one kind: factors of the odds, and a look at the bound."""

    def __init__(
        self,
        policy: LearnedScoring,
        model: Model,
        signals: Signals,
        heuristic: Ctr,
        for_kind: KindStrengths | None = None,
    ) -> None:
        self.is_uniform = False
        self.kind = VisitorKind(signals.device, signals.segment)
        self._policy = policy
        self._weights = model.weights
        self._signals = signals
        self._scale = CTR_ONE * model.calibration
        self._odds = ctr_to_odds(heuristic) * exp_sum(
            model.weights,
            request_slots(signals.device, signals.country, signals.hour, signals.segment),
        )
        self.crossings: CrossFactors = {}
        self._of_placements: dict[int, float] = {}
        highest = self._odds * exp(max_ad_logit(model))
        self.ctr_max = round_up_to_bound(odds_to_ctr(highest, self._scale))
        self.ranked: RankedScorer = (
            _InAnyRequest(self, policy, exp(max_cross_logit(model)))
            if for_kind is None
            else _ForItsKind(self, for_kind)
        )

    def predict_ctr(self, ad: ScoredAd) -> Ctr:
        """Predict how likely a click on an ad is."""
        return self.predict_from_factor(
            ad.placement_key, self._policy.get_strength(ad) * self.get_cross_factor(ad.banner_key)
        )

    def predict_from_factor(self, placement: int, factor: float) -> Ctr:
        """Predict for an ad on a placement of which it is known what it comes to for such readers."""
        odds_here = (
            self._odds * factor * (self._of_placements.get(placement) or self._of_placement(placement))
        )
        ctr = int(self._scale * odds_here / (1.0 + odds_here) + 0.5)
        return self.ctr_max if ctr > self.ctr_max else Ctr(ctr or 1)

    def get_cross_factor(self, banner: int) -> float:
        """Tell what its kind of reader makes of a banner."""
        return self.crossings.get(banner) or self._crossing(banner)

    def span(self, placement_keys: tuple[int, ...], crossing_max: float) -> CtrSpan:
        """Tell between what CTRs are; see `RankedScorer.span`.

        Of odds o a CTR is at most o, and where it is not cut at `ctr_max`, at least o of what is not `ctr_max`.
        """
        here = [self._of_placements.get(key) or self._of_placement(key) for key in placement_keys]
        rest = max(0.0, 1.0 - self.ctr_max / self._scale)
        return CtrSpan(
            low=self._scale * self._odds / crossing_max * min(here) * rest * (1 - SPAN_MARGIN),
            high=self._scale * self._odds * crossing_max * max(here) * (1 + SPAN_MARGIN),
        )

    def _crossing(self, banner: int) -> float:
        self.crossings = self._policy.reserve_cross_factors(self.kind)
        crossing = self.crossings[banner] = self._policy.compute_cross_factor(self.kind, banner)
        return crossing

    def _of_placement(self, placement: int) -> float:
        slots = placement_slots(placement, self._signals.device, self._signals.hour)
        factor = self._of_placements[placement] = exp_sum(self._weights, slots)
        return factor


class _InAnyRequest:
    """By what ads come to in any request: a kind of reader makes no more difference than kinds have made lately."""

    def __init__(self, scorer: LearnedScorer, strengths: Strengths, crossing_max: float) -> None:
        self.strengths = strengths
        self._scorer = scorer
        self._crossing_max = crossing_max
        self._spans: dict[tuple[int, ...], CtrSpan] = {}

    def predict_from_strength(self, ad: ScoredAd, strength: float) -> Ctr:
        """Predict for an ad whose strength is known."""
        return self._scorer.predict_from_factor(
            ad.placement_key, strength * self._scorer.get_cross_factor(ad.banner_key)
        )

    def span(self, placement_keys: tuple[int, ...]) -> CtrSpan:
        """Tell of some placements between what the CTRs there are."""
        span = self._spans.get(placement_keys)
        if span is None:
            span = self._spans[placement_keys] = self._scorer.span(placement_keys, self._crossing_max)
        return span


class _ForItsKind(_InAnyRequest):
    """By what ads come to for this kind of reader, which is all that there is to know."""

    def __init__(self, scorer: LearnedScorer, strengths: KindStrengths) -> None:
        super().__init__(scorer, strengths, 1.0)

    def predict_from_strength(self, ad: ScoredAd, strength: float) -> Ctr:
        """Predict for an ad whose strength is known."""
        return self._scorer.predict_from_factor(ad.placement_key, strength)
