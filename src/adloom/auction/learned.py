"""The policy `learned`: a logistic model that corrects the heuristic.

The heuristic's odds are multiplied by e to the sum of some weights, so an untrained model is the heuristic, to
the billionth. What follows from the request is summed up once for all its ads, what follows from an ad once for
all requests; what follows from both is cached up to a limit.

Predictions are capped at the request's `ctr_max`, a little above what ads had recently. Likewise the factor of a
banner for a kind of visitor is capped. That keeps bounds close, and a search that relies on them exact.
"""

from array import array
from bisect import bisect_right
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
    find_ad_slots,
    find_banner_slots,
    find_slot,
    request_slots,
)
from adloom.auction.model import (
    Model,
    bound_ad_logit,
    bound_cross_logit,
    ctr_from_odds,
    odds_from_ctr,
    round_up_to_bound,
    sum_exp,
)
from adloom.auction.placement_factors import PlacementFactors
from adloom.auction.score import (
    ORDER_CHUNK,
    AdFeatures,
    BidOrder,
    CtrSpan,
    DeviceWeights,
    Heuristic,
    RankedBids,
    RankedScorer,
    Scorer,
    SelectedBid,
    Signals,
    Strengths,
    order_bids,
)

LEARNED: Final = "learned"

CACHED_MAX: Final = 100_000  # Factors of a model, about 20 MB at most. Beyond, all are dropped.
SCORERS_MAX: Final = 4_096
ORDERS_MAX: Final = 8  # Of a block of bids: by device, in two hours.
KINDS_MAX: Final = 12  # Kinds of visitors for which the strengths of ads are known.
FREQUENT: Final = 20  # Requests of a kind that make it worth ranking.
DEVICES: Final = (None, "mobile", "tablet", "desktop")  # Of most requests.
SPAN_MARGIN: Final = 1e-9  # For rounding errors of a product.

# By banner, the factor for one kind of visitor.
CrossFactors = dict[int, float]


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
        return sum_exp(self._model.weights, find_ad_slots(ad.placement_key, ad.banner_key, ad.campaign_key))

    def get_strength(self, ad: AdFeatures) -> float:
        key = (ad.placement_key, ad.banner_key, ad.campaign_key)
        strength = self._strengths.get(key)
        if strength is None:
            self._count_cached()
            strength = self._strengths[key] = self.compute_strength(ad)
        return strength

    def compute_cross_factor(self, kind: VisitorKind, banner_key: int) -> float:
        assert self._model is not None, "without a model all visitors are equal"
        at_most = bound_cross_logit(self._model)
        return sum_exp(self._model.weights, find_banner_slots(banner_key, *kind), at_most=at_most)

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

    def build_for_kind(self, kind: VisitorKind) -> "KindStrengths":
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
        """Return the cached factors of placements for a device and an hour."""
        assert self._model is not None, "without a model all placements are equal"
        factors = self._placement_factors.get((device, hour))
        if factors is None:
            self._count_cached()
            factors = PlacementFactors(self._model.weights, device, hour, self._count_cached)
            self._placement_factors[device, hour] = factors
        return factors

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
        self._moment, self._segment = (signals.device, signals.hour), f"segment {signals.segment}".encode()
        self._policy = policy
        self._weights = model.weights
        self._scale = CTR_ONE * model.calibration
        self._odds = odds_from_ctr(heuristic) * sum_exp(
            model.weights, request_slots(signals.device, signals.country, signals.hour, signals.segment)
        )
        self.cross_factors: CrossFactors = {}
        self._log_odds = log(self._scale * self._odds * (1 + SPAN_MARGIN))
        self._cross_max = bound_cross_logit(model)
        self._weight_max = model.weight_max
        self._placement_factors = policy.open_placement_factors(signals.device, signals.hour)
        highest = self._odds * exp(bound_ad_logit(model))
        self.ctr_max = round_up_to_bound(ctr_from_odds(highest, self._scale))
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
        odds_here = self._odds * factor * self._placement_factors.get(placement)
        ctr = int(self._scale * odds_here / (1.0 + odds_here) + 0.5)
        return self.ctr_max if ctr > self.ctr_max else Ctr(ctr or 1)

    def get_cross_factor(self, banner: int) -> float:
        return self.cross_factors.get(banner) or self._compute_cross_factor(banner)

    def compute_span(self, placement_keys: tuple[int, ...], factor_max: float) -> CtrSpan:
        """Compute the range of CTRs, see `RankedScorer.compute_span`.

        For odds o the CTR is o / (1 + o): at most o, and if not capped at `ctr_max`, at least o * (1 - ctr_max).
        """
        here = self._placement_factors.get_group(placement_keys)
        rest = max(0.0, 1.0 - self.ctr_max / self._scale)
        return CtrSpan(
            low=self._scale * self._odds / factor_max * here.lowest * rest * (1 - SPAN_MARGIN),
            high=self._scale * self._odds * factor_max * here.highest * (1 + SPAN_MARGIN),
        )

    def select(self, bids: RankedBids, among: Iterable[int], needed: float) -> list[SelectedBid]:
        """Select bids by their banner's weights for this visitor, see `RankedScorer.select`."""
        # Inlined: about a hundred bids are scored for a visitor without cached strengths.
        log_caps, numbers, hashes = bids.log_caps, bids.placement_numbers, bids.banner_hashes
        here, log_odds = self._placement_factors.get_group(bids.placement_keys).logs, self._log_odds
        at_most, weights, segment = self._cross_max, self._weights, self._segment
        by_device, order = self._find_device_weights(bids), bids.orders.get(self._moment)
        level = needed - log_odds
        if order is not None and order.log_cap_max - at_most < level:
            # No bid is so high that its weights do not matter: most are left out by them alone.
            levels = order.levels
            among = [
                position
                for position in among
                if levels[position] + weights[(crc32(segment, hashes[position]) * SPREAD & WORD) >> SHIFT]
                >= level
            ]
        # No weight exceeds `weight_max`, and the sum of two is cut off at `at_most` in both directions.
        lowest, lowest_on_device = level - at_most, level - self._weight_max
        found: list[SelectedBid] = []
        for position in among:
            log_cap = log_caps[position] + here[numbers[position]]
            if log_cap >= lowest and log_cap + (logit := by_device[position]) >= lowest_on_device:
                logit += weights[(crc32(segment, hashes[position]) * SPREAD & WORD) >> SHIFT]
                if not -at_most < logit < at_most:
                    logit = at_most if logit > 0 else -at_most
                if log_cap + logit >= level:
                    found.append((log_cap + logit + log_odds, position, logit))
        return found

    def mask_reaching(self, bids: RankedBids, needed: float, bids_max: int) -> int:
        """Return bids by what all segments have in common, see `RankedScorer.mask_reaching`."""
        order = bids.orders.get(self._moment) or self._order(bids)
        chunks = bisect_right(order.log_tops, self._log_odds - needed)
        return order.masks[min(chunks, bids_max // ORDER_CHUNK)]

    def _order(self, bids: RankedBids) -> BidOrder:
        """Put bids in order for a device and an hour; under a millisecond for a full block."""
        here = self._placement_factors.get_group(bids.placement_keys).logs
        log_caps = [
            one + here[number] for one, number in zip(bids.log_caps, bids.placement_numbers, strict=True)
        ]
        if len(bids.orders) >= ORDERS_MAX:
            bids.orders.clear()
        order = bids.orders[self._moment] = order_bids(
            log_caps,
            self._find_device_weights(bids) if bids.device_weights else None,
            first=bids.first,
            weight_max=self._weight_max,
            at_most=self._cross_max,
        )
        return order

    def _find_device_weights(self, bids: RankedBids) -> Sequence[float]:
        device = self.kind.device
        return bids.device_weights.get(device) or self._policy.list_device_weights(bids.banner_hashes, device)

    def _compute_cross_factor(self, banner: int) -> float:
        self.cross_factors = self._policy.open_cross_factors(self.kind)
        factor = self.cross_factors[banner] = self._policy.compute_cross_factor(self.kind, banner)
        return factor

    def select_known(self, bids: RankedBids, among: Iterable[int], needed: float) -> list[SelectedBid]:
        """Select bids whose strength is for this kind of visitor."""
        log_caps, numbers, log_odds = bids.log_caps, bids.placement_numbers, self._log_odds
        here = self._placement_factors.get_group(bids.placement_keys).logs
        return [
            (most, position, 0.0)
            for position in among
            if (most := log_caps[position] + here[numbers[position]] + log_odds) >= needed
        ]


class _RankedForAny:
    """Ranks by strengths for any request: the factor of a kind of visitor is bounded."""

    def __init__(self, scorer: LearnedScorer, strengths: Strengths, factor_max: float) -> None:
        self.strengths = strengths
        self.select = scorer.select
        self.mask_reaching = scorer.mask_reaching
        self.predict_from_factor = scorer.predict_from_factor
        self._scorer = scorer
        self._factor_max = factor_max
        self._spans: dict[tuple[int, ...], CtrSpan] = {}

    def predict_from_strength(self, ad: AdFeatures, strength: float) -> Ctr:
        return self._scorer.predict_from_factor(
            ad.placement_key, strength * self._scorer.get_cross_factor(ad.banner_key)
        )

    def compute_span(self, placement_keys: tuple[int, ...]) -> CtrSpan:
        span = self._spans.get(placement_keys)
        if span is None:
            span = self._spans[placement_keys] = self._scorer.compute_span(placement_keys, self._factor_max)
        return span


class _RankedForKind(_RankedForAny):
    """Ranks by strengths for this kind of visitor, which are exact."""

    def __init__(self, scorer: LearnedScorer, strengths: KindStrengths) -> None:
        super().__init__(scorer, strengths, 1.0)
        self.select = scorer.select_known

    def predict_from_strength(self, ad: AdFeatures, strength: float) -> Ctr:
        return self._scorer.predict_from_factor(ad.placement_key, strength)
