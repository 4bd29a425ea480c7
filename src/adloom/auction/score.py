"""Scoring policies: the CTR and quality of an ad. A placement chooses its policy."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, Ctr, Quality

HEURISTIC: Final = "heuristic"
HIGH_INTENT: Final = "high-intent"
ORDER_CHUNK: Final = 32
RECENT_PURCHASE_DAYS_MAX: Final = 14

_PER_CENT: Final = 100
_HIGH_INTENT_BOOST: Final = 125
_RECENT_PURCHASE_BOOST: Final = 110


class AdFormat(StrEnum):
    """The format of an ad."""

    SINGLE_IMAGE = "single_image"
    VIDEO = "video"


class Signals(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a request; None is unknown."""

    placement_type: str
    segment: str | None = None
    last_purchase_days: int | None = None
    device: str | None = None
    country: str | None = None
    hour: int | None = None


class AdFeatures(Protocol):
    """What a policy knows of an ad; keys are opaque identifiers."""

    @property
    def campaign_key(self) -> int: ...

    @property
    def banner_key(self) -> int: ...

    @property
    def placement_key(self) -> int: ...

    @property
    def format(self) -> str:
        """An `AdFormat` as a rule."""
        ...


# By device and position.
DeviceWeights = Mapping[str | None, Sequence[float]]


class Strengths(Protocol):
    """What a policy knows of ads before a request: for any request, or for those of one kind."""

    @property
    def is_retired(self) -> bool:
        """Whether a newer model has replaced it."""
        ...

    @property
    def base(self) -> "Strengths":
        """The strengths of the same model for any request."""
        ...

    def collect_device_weights(self, banner_hashes: Sequence[int]) -> Generator[None, None, DeviceWeights]:
        """Return the weights of banners by device, unless they are in the strengths; with pauses."""
        ...

    def compute_strength(self, ad: AdFeatures) -> float:
        """Return the factor by which an ad is clicked more than others, whatever else the request is."""
        ...


class CtrSpan(NamedTuple):
    """The range of a CTR for strength 1; see `RankedScorer.compute_span`."""

    low: float
    high: float


class BidOrder(NamedTuple):
    """Bids in chunks, the highest first, by what they can be worth to visitors who share a device and an hour.

    All numbers are logarithms of worth times CTR, without the odds of the request.
    """

    log_tops: Sequence[float]  # Of each chunk the highest that a bid can have; negative, so that they ascend.
    masks: Sequence[int]  # The bids of the first chunks: of none, of one, of two and so on.
    levels: Sequence[float]  # By position, without the weight for the segment.
    log_cap_max: float  # The highest of all without the weights for the visitor.


def order_bids(
    log_caps: Sequence[float],
    weights: Sequence[float] | None,
    *,
    first: int,
    weight_max: float,
    at_most: float,
) -> BidOrder:
    """Put the bids from a position on in order, by their weights for the device unless these are in the caps.

    No weight is further from 0 than `weight_max`, and the sum with that for a segment is cut off at `at_most`.
    """
    levels = tops = log_caps
    if weights is not None:
        over = at_most - weight_max
        levels = [log_cap + weight for log_cap, weight in zip(log_caps, weights, strict=True)]
        tops = [
            log_cap + (at_most if weight > over else weight + weight_max)
            for log_cap, weight in zip(log_caps, weights, strict=True)
        ]
    positions = sorted(range(first, len(tops)), key=tops.__getitem__, reverse=True)
    chunks = [positions[start : start + ORDER_CHUNK] for start in range(0, len(positions), ORDER_CHUNK)]
    masks = [0]
    for chunk in chunks:
        masks.append(masks[-1] + sum([1 << position for position in chunk]))
    return BidOrder(
        log_tops=[-tops[chunk[0]] for chunk in chunks],
        masks=masks,
        levels=levels,
        log_cap_max=max(log_caps[first:], default=0.0),
    )


class RankedBids(NamedTuple):
    """Bids per click by position, with what is known of them before a request."""

    first: int  # The position of the first of them.
    log_caps: Sequence[float]  # The logarithms of their worth multiplied by their strength.
    strengths: Sequence[float]
    placement_numbers: Sequence[int]  # In `placement_keys`.
    placement_keys: tuple[int, ...]
    banner_hashes: Sequence[int]
    device_weights: DeviceWeights  # Of the banners, unless they are in the strengths.
    worth_max: int
    orders: dict[tuple[str | None, int | None], BidOrder]  # By device and hour, those in use.


# The highest logarithm that its worth times CTR may have, its position, and the logarithm of its banner's factor.
SelectedBid = tuple[float, int, float]


class RankedScorer(Protocol):
    """A scorer whose CTRs lie within a range of the ads' strengths, so that few have to be predicted."""

    @property
    def strengths(self) -> Strengths: ...

    def predict_from_strength(self, ad: AdFeatures, strength: float) -> Ctr:
        """Predict as `Scorer.predict_ctr` does, for an ad whose strength is known."""
        ...

    def predict_from_factor(self, placement: int, factor: float) -> Ctr:
        """Predict for an ad of which the strength is known, multiplied by its banner's factor for this visitor."""
        ...

    def select(self, bids: RankedBids, among: Iterable[int], needed: float) -> list[SelectedBid]:
        """Return the bids whose worth times CTR may have a logarithm of at least `needed`."""
        ...

    def mask_reaching(self, bids: RankedBids, needed: float, bids_max: int) -> int:
        """Return the bids whose worth times CTR may have a logarithm of at least `needed`, or the likeliest of them.

        Knows less of a bid than `select`, and looks at none.
        """
        ...

    def compute_span(self, placement_keys: tuple[int, ...]) -> CtrSpan:
        """Return the range of CTRs on some placements.

        None is over `strength * high + 1`; none is under `strength * low - 1`, except `ctr_max`.
        """
        ...


class Scorer(Protocol):
    """A policy for one request."""

    @property
    def ctr_max(self) -> Ctr:
        """No ad exceeds it; few different values, since scan plans are cached by it."""
        ...

    @property
    def is_uniform(self) -> bool:
        """Whether every ad has the CTR `ctr_max`."""
        ...

    @property
    def ranked(self) -> RankedScorer | None:
        """The same scorer, if ads can be ranked before the request."""
        ...

    def predict_ctr(self, ad: AdFeatures) -> Ctr:
        """Predict the probability of a click on an ad that is seen."""
        ...


class Scoring(Protocol):
    """A scoring policy."""

    @property
    def name(self) -> str:
        """The name by which a placement chooses it."""
        ...

    @property
    def version(self) -> int:
        """Changes when it has learned; 0 for a policy that never does."""
        ...

    @property
    def strengths(self) -> "tuple[Strengths, ...]": ...

    def build_scorer(self, signals: Signals) -> Scorer: ...


ScoringT = TypeVar("ScoringT", bound=Scoring)


class SwappableScoring(Generic[ScoringT]):
    """A policy that stands for another one, which is replaced while it is in use."""

    def __init__(self, scoring: ScoringT) -> None:
        self.name = scoring.name
        self._scoring = scoring

    @property
    def version(self) -> int:
        return self._scoring.version

    @property
    def strengths(self) -> tuple[Strengths, ...]:
        return self._scoring.strengths

    def build_scorer(self, signals: Signals) -> Scorer:
        return self._scoring.build_scorer(signals)


class FlatScorer(msgspec.Struct, frozen=True):
    """The same CTR for every ad."""

    ctr_max: Ctr
    is_uniform: bool = True
    ranked: None = None

    def predict_ctr(self, ad: AdFeatures) -> Ctr:
        del ad
        return self.ctr_max


class Heuristic:
    """The default policy: a base CTR by placement type, raised for visitors who are likely to buy."""

    name: str = HEURISTIC
    version: int = 0
    strengths: tuple[Strengths, ...] = ()

    def __init__(self) -> None:
        # All combinations of base and boosts, built once.
        self._scorers = {
            (base, is_eager, is_recent): FlatScorer(_boost(base, is_eager=is_eager, is_recent=is_recent))
            for base in {*_BASES.values(), _BASE}
            for is_eager in (False, True)
            for is_recent in (False, True)
        }

    def build_scorer(self, signals: Signals) -> FlatScorer:
        days = signals.last_purchase_days
        is_recent = days is not None and 0 <= days <= RECENT_PURCHASE_DAYS_MAX
        base = _BASES.get(signals.placement_type, _BASE)
        return self._scorers[base, signals.segment == HIGH_INTENT, is_recent]


def predict_base_ctr(placement_type: str) -> Ctr:
    """Predict the CTR of any ad on a placement of a type, where nothing is known of the visitor."""
    return _BASES.get(placement_type, _BASE)


def rate_quality(ad_format: str) -> Quality:
    return _QUALITIES.get(ad_format, _QUALITY)


def _boost(base: Ctr, *, is_eager: bool, is_recent: bool) -> Ctr:
    # Exact for every base.
    eager = _HIGH_INTENT_BOOST if is_eager else _PER_CENT
    recent = _RECENT_PURCHASE_BOOST if is_recent else _PER_CENT
    return Ctr(base * eager * recent // (_PER_CENT * _PER_CENT))


_BASES: Final = {"story": Ctr(CTR_ONE * 18 // 1_000), "banner": Ctr(CTR_ONE * 12 // 1_000)}
_BASE: Final = Ctr(CTR_ONE * 20 // 1_000)
_QUALITIES: Final[dict[str, Quality]] = {
    AdFormat.SINGLE_IMAGE: Quality(QUALITY_ONE),
    AdFormat.VIDEO: Quality(QUALITY_ONE * 11 // 10),
}
_QUALITY: Final = Quality(QUALITY_ONE * 95 // 100)
