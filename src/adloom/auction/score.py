"""How likely a click is, and how good an ad: policies behind one protocol, chosen by placement."""

from enum import StrEnum
from typing import Final, NamedTuple, Protocol

import msgspec

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, Ctr, Quality

HEURISTIC: Final = "heuristic"
HIGH_INTENT: Final = "high-intent"
RECENT_PURCHASE_DAYS_MAX: Final = 14

_PER_CENT: Final = 100
_HIGH_INTENT_BOOST: Final = 125
_RECENT_PURCHASE_BOOST: Final = 110


class AdFormat(StrEnum):
    """What an ad is made of."""

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


class ScoredAd(Protocol):
    """What is known of an ad; the keys mean nothing, except that the same one is the same thing."""

    @property
    def campaign_key(self) -> int:
        """Its campaign."""
        ...

    @property
    def banner_key(self) -> int:
        """Its banner."""
        ...

    @property
    def placement_key(self) -> int:
        """Where it would be shown."""
        ...

    @property
    def format(self) -> str:
        """What it is made of, an `AdFormat` as a rule."""
        ...


class Strengths(Protocol):
    """What a policy knows of ads before a request: of any request, or of those of one kind."""

    @property
    def is_retired(self) -> bool:
        """Whether nobody asks any more, since something else was learned."""
        ...

    def compute_strength(self, ad: ScoredAd) -> float:
        """Tell by how much an ad is clicked more than others, whatever else the request is."""
        ...


class CtrSpan(NamedTuple):
    """Between what a CTR is, for strength 1; see `RankedScorer.span`."""

    low: float
    high: float


class RankedScorer(Protocol):
    """A scorer of which the CTR of an ad is within a span of its strength, so that few ads have to be asked for it."""

    @property
    def strengths(self) -> Strengths:
        """Whose strengths those are."""
        ...

    def predict_from_strength(self, ad: ScoredAd, strength: float) -> Ctr:
        """Predict as `Scorer.ctr` does, for an ad whose strength is known."""
        ...

    def span(self, placement_keys: tuple[int, ...]) -> CtrSpan:
        """Tell of some placements between what the CTRs there are.

        None is over `strength * high + 1`, and none under `strength * low - 1` that is not `ctr_max`.
        """
        ...


class Scorer(Protocol):
    """A policy for one request."""

    @property
    def ctr_max(self) -> Ctr:
        """What no ad exceeds; few different values, since orders of ads are kept by it."""
        ...

    @property
    def is_uniform(self) -> bool:
        """Whether every ad has that CTR: then nobody has to ask for it ad by ad."""
        ...

    @property
    def ranked(self) -> RankedScorer | None:
        """The same where ads can be ranked before the request; otherwise each is asked for."""
        ...

    def predict_ctr(self, ad: ScoredAd) -> Ctr:
        """Predict how likely a click on an ad is, once it is seen."""
        ...


class Scoring(Protocol):
    """A policy."""

    @property
    def name(self) -> str:
        """What a placement calls it."""
        ...

    @property
    def version(self) -> int:
        """Which of its states predicts; a policy that never learns stays at 0."""
        ...

    @property
    def strengths(self) -> "tuple[Strengths, ...]":
        """What it knows of ads before a request, if anything."""
        ...

    def build_scorer(self, signals: Signals) -> Scorer:
        """Look at a request once, for all its ads."""
        ...


class FlatScorer(msgspec.Struct, frozen=True):
    """The same CTR for every ad."""

    ctr_max: Ctr
    is_uniform: bool = True
    ranked: None = None

    def predict_ctr(self, ad: ScoredAd) -> Ctr:
        """Give it."""
        del ad
        return self.ctr_max


class Heuristic:
    """The default policy: a base by the type of the placement; who wants to buy clicks more."""

    name: str = HEURISTIC
    version: int = 0
    strengths: tuple[Strengths, ...] = ()

    def __init__(self) -> None:
        # All that there are, made once: base, and which of the boosts.
        self._scorers = {
            (base, is_eager, is_recent): FlatScorer(_boosted(base, is_eager=is_eager, is_recent=is_recent))
            for base in {*_BASES.values(), _BASE}
            for is_eager in (False, True)
            for is_recent in (False, True)
        }

    def build_scorer(self, signals: Signals) -> FlatScorer:
        """Look at a request once, for all its ads."""
        days = signals.last_purchase_days
        is_recent = days is not None and 0 <= days <= RECENT_PURCHASE_DAYS_MAX
        base = _BASES.get(signals.placement_type, _BASE)
        return self._scorers[base, signals.segment == HIGH_INTENT, is_recent]


def rate_quality(ad_format: str) -> Quality:
    """Tell how good an ad is, by what it is made of."""
    return _QUALITIES.get(ad_format, _QUALITY)


def _boosted(base: Ctr, *, is_eager: bool, is_recent: bool) -> Ctr:
    """Multiply; every base comes out whole."""
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
