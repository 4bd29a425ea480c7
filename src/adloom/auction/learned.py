"""The policy `learned`: a logistic model that corrects the heuristic.

The heuristic's odds are multiplied by e to the sum of some weights, so an untrained model is the heuristic, to
the billionth. What follows from the request is summed up once for all its ads, what follows from an ad once for
all requests; what follows from both is cached up to a limit.

Predictions are capped at the request's `ctr_max`, a little above what ads had recently. Likewise the factor of a
banner for a kind of visitor is capped. That keeps bounds close, and a search that relies on them exact.
"""

from array import array
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from math import exp, log
from typing import Final, NamedTuple
from zlib import crc32

from adloom.auction.bid import CTR_ONE, Ctr
from adloom.auction.features import (
    SHIFT,
    SPREAD,
    WORD,
    ad_slots,
    banner_slots,
    find_slot,
    placement_slots,
    request_slots,
)
from adloom.auction.model import (
    Model,
    ctr_to_odds,
    exp_sum,
    max_ad_logit,
    max_cross_logit,
    odds_to_ctr,
    round_up_to_bound,
)
from adloom.auction.score import (
    AdFeatures,
    CtrSpan,
    DeviceWeights,
    Heuristic,
    RankedBids,
    RankedScorer,
    Scorer,
    Signals,
    Strengths,
)

LEARNED: Final = "learned"

CACHED_MAX: Final = 100_000  # Factors of a model, about 20 MB at most. Beyond, all are dropped.
SCORERS_MAX: Final = 4_096
KINDS_MAX: Final = 12  # Kinds of visitors for which the strengths of ads are known.
FREQUENT: Final = 20  # Requests of a kind that make it worth ranking.
DEVICES: Final = (None, "mobile", "tablet", "desktop")  # Of most requests.
SPAN_MARGIN: Final = 1e-9  # For rounding errors of a product.

# By banner, the factor for one kind of visitor; by placement, that for a device and an hour.
CrossFactors = dict[int, float]
PlacementFactors = dict[int, float]


class VisitorKind(NamedTuple):
    """A kind of visitor; banners differ by it."""

    device: str | None
    segment: str | None


class LearnedScoring:
    """The policy over one model; without one it is the heuristic.

    It has strengths of ads for any request, and strengths for each of some kinds of visitors.
    """

    def __init__(self, model: Model | None = None, *, kinds: Iterable[VisitorKind] = ()) -> None:
        self.name = LEARNED
        self.version = 0 if model is None else model.version
        self.is_retired = False
        self._model = model
        self._heuristic = Heuristic()
        self._scorers: dict[tuple[object, ...], LearnedScorer] = {}
        self._cross_factors: dict[VisitorKind, CrossFactors] = {}
        self._placement_factors: dict[tuple[str | None, int | None], PlacementFactors] = {}
        self._strengths: dict[tuple[int, int, int], float] = {}  # By placement, banner and campaign.
        self._cached = 0
        self._requests: Counter[VisitorKind] = Counter()
        self._for_kinds: dict[VisitorKind, KindStrengths] = {}
        for kind in kinds:
            self.use_kind(kind)

    @property
    def strengths(self) -> "tuple[LearnedScoring | KindStrengths, ...]":
        """Strengths of ads, known before a request; none without a model."""
        return () if self._model is None else (self, *self._for_kinds.values())

    @property
    def base(self) -> "LearnedScoring":
        return self

    @property
    def kinds(self) -> list[VisitorKind]:
        """The kinds of visitors that have strengths, the most frequent first."""
        return sorted(self._for_kinds, key=lambda kind: -self._requests[kind])

    def compute_strength(self, ad: AdFeatures) -> float:
        assert self._model is not None, "without a model all ads are equal"
        return exp_sum(self._model.weights, ad_slots(ad.placement_key, ad.banner_key, ad.campaign_key))

    def get_strength(self, ad: AdFeatures) -> float:
        key = (ad.placement_key, ad.banner_key, ad.campaign_key)
        strength = self._strengths.get(key)
        if strength is None:
            self._count_cached()
            strength = self._strengths[key] = self.compute_strength(ad)
        return strength

    def compute_cross_factor(self, kind: VisitorKind, banner_key: int) -> float:
        assert self._model is not None, "without a model all visitors are equal"
        at_most = max_cross_logit(self._model)
        return exp_sum(self._model.weights, banner_slots(banner_key, *kind), at_most=at_most)

    def collect_device_weights(self, banner_hashes: Sequence[int]) -> Generator[None, None, DeviceWeights]:
        assert self._model is not None, "without a model all visitors are equal"
        by_device: dict[str | None, Sequence[float]] = {}
        for device in DEVICES:
            yield
            by_device[device] = self.list_device_weights(banner_hashes, device)
        return by_device

    def list_device_weights(self, banner_hashes: Sequence[int], device: str | None) -> "array[float]":
        assert self._model is not None, "without a model all visitors are equal"
        weights, name = self._model.weights, f"device {device}".encode()
        return array("f", [weights[find_slot(one, name)] for one in banner_hashes])

    def build_scorer(self, signals: Signals) -> Scorer:
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
        self._requests[scorer.kind] += 1
        return scorer

    def find_frequent_kind(self) -> VisitorKind | None:
        """Return a kind of visitor that comes often and has no strengths yet."""
        for kind, times in self._requests.most_common(KINDS_MAX):
            if times >= FREQUENT and kind not in self._for_kinds:
                return kind
        return None

    def for_kind(self, kind: VisitorKind) -> "KindStrengths":
        """Build strengths for a kind of visitor; `use_kind` uses them once blocks are ranked by them."""
        return KindStrengths(self, kind)

    def use_kind(self, kind: VisitorKind, strengths: "KindStrengths | None" = None) -> None:
        self._for_kinds[kind] = strengths or KindStrengths(self, kind)
        self._scorers = {}

    def open_cross_factors(self, kind: VisitorKind) -> CrossFactors:
        """Return the cached factors of a kind, with space for one more."""
        self._count_cached()
        return self._cross_factors.setdefault(kind, {})

    def open_placement_factors(self, device: str | None, hour: int | None) -> PlacementFactors:
        """Return the cached factors of placements for a device and an hour, with space for one more."""
        self._count_cached()
        return self._placement_factors.setdefault((device, hour), {})

    def forget(self) -> None:
        """Drop all cached values, also those of scorers that are still in use."""
        for factors in (*self._cross_factors.values(), *self._placement_factors.values()):
            factors.clear()
        self._cross_factors = {}
        self._placement_factors = {}
        self._strengths = {}
        self._scorers = {}
        self._requests = Counter({kind: self._requests[kind] for kind in self._for_kinds})
        self._cached = 0

    def _count_cached(self) -> None:
        self._cached += 1
        if self._cached > CACHED_MAX:
            self.forget()

    def retire(self) -> None:
        """Free memory once another model is used; decided auctions may keep this one for some minutes."""
        self.is_retired = True
        self.forget()


class KindStrengths:
    """Strengths of ads for one kind of visitor; exact, whatever else the request is."""

    def __init__(self, policy: LearnedScoring, kind: VisitorKind) -> None:
        self._policy = policy
        self._kind = kind

    @property
    def base(self) -> LearnedScoring:
        return self._policy

    @property
    def is_retired(self) -> bool:
        return self._policy.is_retired

    def collect_device_weights(self, banner_hashes: Sequence[int]) -> Generator[None, None, DeviceWeights]:
        del banner_hashes
        yield
        return {}

    def compute_strength(self, ad: AdFeatures) -> float:
        return self._policy.compute_strength(ad) * self._policy.compute_cross_factor(
            self._kind, ad.banner_key
        )


class LearnedScorer:
    """The policy for requests with equal signals: factors of the odds, capped at `ctr_max`."""

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
            model.weights, request_slots(signals.device, signals.country, signals.hour, signals.segment)
        )
        self.cross_factors: CrossFactors = {}
        self._cross_max = max_cross_logit(model)
        self._placement_factors = policy.open_placement_factors(signals.device, signals.hour)
        highest = self._odds * exp(max_ad_logit(model))
        self.ctr_max = round_up_to_bound(odds_to_ctr(highest, self._scale))
        self.ranked: RankedScorer = (
            _RankedForAny(self, policy, exp(self._cross_max))
            if for_kind is None
            else _RankedForKind(self, for_kind)
        )

    def predict_ctr(self, ad: AdFeatures) -> Ctr:
        return self.predict_from_factor(
            ad.placement_key, self._policy.get_strength(ad) * self.get_cross_factor(ad.banner_key)
        )

    def predict_from_factor(self, placement: int, factor: float) -> Ctr:
        """Predict for an ad whose strength and cross factor are multiplied already."""
        odds_here = (
            self._odds
            * factor
            * (self._placement_factors.get(placement) or self._compute_placement_factor(placement))
        )
        ctr = int(self._scale * odds_here / (1.0 + odds_here) + 0.5)
        return self.ctr_max if ctr > self.ctr_max else Ctr(ctr or 1)

    def get_cross_factor(self, banner: int) -> float:
        return self.cross_factors.get(banner) or self._compute_cross_factor(banner)

    def span(self, placement_keys: tuple[int, ...], factor_max: float) -> CtrSpan:
        """Compute the range of CTRs, see `RankedScorer.span`.

        For odds o the CTR is o / (1 + o): at most o, and if not capped at `ctr_max`, at least o * (1 - ctr_max).
        """
        here = [
            self._placement_factors.get(key) or self._compute_placement_factor(key) for key in placement_keys
        ]
        rest = max(0.0, 1.0 - self.ctr_max / self._scale)
        return CtrSpan(
            low=self._scale * self._odds / factor_max * min(here) * rest * (1 - SPAN_MARGIN),
            high=self._scale * self._odds * factor_max * max(here) * (1 + SPAN_MARGIN),
        )

    def find_log_highs(self, placement_keys: Sequence[int]) -> list[float]:
        everywhere = log(self._scale * self._odds * (1 + SPAN_MARGIN))
        return [
            everywhere + log(self._placement_factors.get(key) or self._compute_placement_factor(key))
            for key in placement_keys
        ]

    def select(
        self, bids: RankedBids, among: Iterable[int], needed: Sequence[float]
    ) -> list[tuple[int, float]]:
        """Select bids by their banner's weights for this visitor, see `RankedScorer.select`."""
        at_most, weights, segment = self._cross_max, self._weights, f"segment {self.kind.segment}".encode()
        log_caps, numbers, hashes = bids.log_caps, bids.placement_numbers, bids.banner_hashes
        by_device = bids.device_weights.get(self.kind.device) or self._policy.list_device_weights(
            hashes, self.kind.device
        )
        # Written out, without calls: it looks at a hundred bids of a visitor of whom nothing is cached. The sum is cut off
        # at `at_most` in both directions.
        return [
            (position, logit if -at_most < logit < at_most else at_most if logit > 0 else -at_most)
            for position in among
            if (over := log_caps[position] - needed[numbers[position]]) >= -at_most
            and (
                over
                + (
                    logit := by_device[position]
                    + weights[(crc32(segment, hashes[position]) * SPREAD & WORD) >> SHIFT]
                )
                >= 0
                or over >= at_most
            )
        ]

    def _compute_cross_factor(self, banner: int) -> float:
        self.cross_factors = self._policy.open_cross_factors(self.kind)
        factor = self.cross_factors[banner] = self._policy.compute_cross_factor(self.kind, banner)
        return factor

    def _compute_placement_factor(self, placement: int) -> float:
        device, hour = self._signals.device, self._signals.hour
        self._placement_factors = self._policy.open_placement_factors(device, hour)
        slots = placement_slots(placement, device, hour)
        factor = self._placement_factors[placement] = exp_sum(self._weights, slots)
        return factor


class _RankedForAny:
    """Ranks by strengths for any request: the factor of a kind of visitor is bounded."""

    def __init__(self, scorer: LearnedScorer, strengths: Strengths, factor_max: float) -> None:
        self.strengths = strengths
        self.predict_from_factor = scorer.predict_from_factor
        self._scorer = scorer
        self._factor_max = factor_max
        self._spans: dict[tuple[int, ...], CtrSpan] = {}
        self._log_highs: dict[tuple[int, ...], Sequence[float]] = {}

    def predict_from_strength(self, ad: AdFeatures, strength: float) -> Ctr:
        return self._scorer.predict_from_factor(
            ad.placement_key, strength * self._scorer.get_cross_factor(ad.banner_key)
        )

    def span(self, placement_keys: tuple[int, ...]) -> CtrSpan:
        span = self._spans.get(placement_keys)
        if span is None:
            span = self._spans[placement_keys] = self._scorer.span(placement_keys, self._factor_max)
        return span

    def find_log_highs(self, placement_keys: tuple[int, ...]) -> Sequence[float]:
        highs = self._log_highs.get(placement_keys)
        if highs is None:
            highs = self._log_highs[placement_keys] = self._scorer.find_log_highs(placement_keys)
        return highs

    def select(
        self, bids: RankedBids, among: Iterable[int], needed: Sequence[float]
    ) -> list[tuple[int, float]]:
        return self._scorer.select(bids, among, needed)


class _RankedForKind(_RankedForAny):
    """Ranks by strengths for this kind of visitor, which are exact."""

    def __init__(self, scorer: LearnedScorer, strengths: KindStrengths) -> None:
        super().__init__(scorer, strengths, 1.0)

    def predict_from_strength(self, ad: AdFeatures, strength: float) -> Ctr:
        return self._scorer.predict_from_factor(ad.placement_key, strength)

    def select(
        self, bids: RankedBids, among: Iterable[int], needed: Sequence[float]
    ) -> list[tuple[int, float]]:
        log_caps, numbers = bids.log_caps, bids.placement_numbers
        return [(position, 0.0) for position in among if log_caps[position] >= needed[numbers[position]]]
