"""The policy `learned`: a logistic model that says by how much the heuristic is wrong.

The heuristic's odds are multiplied by e to the sum of some weights, so a model that has learned nothing is
the heuristic, to the billionth. What follows from the request is added up once for all its ads, what
follows from an ad once for all requests; what follows from both is remembered as long as there is room.

No ad of a request exceeds its `ctr_max`, by decree: a prediction beyond what ads have had lately is cut
there. That keeps the bound close, and a search that relies on it exact.
"""

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Generator
from math import exp
from typing import Final

import msgspec

from adloom.auction.bid import CTR_ONE, Ctr
from adloom.auction.features import SLOTS, Slots, ad_slots, banner_slots, placement_slots, request_slots
from adloom.auction.score import Ad, Heuristic, Scorer, Signals

LEARNED: Final = "learned"
FORMAT: Final = 1

BOUND_MARGIN: Final = 0.2  # In logits: an ad is believed to be so much better than any before it.
LOGIT_MAX: Final = 30.0  # Beyond what any ad has; e to the power of it is still a number.
CALIBRATION_MIN: Final = 0.5
CALIBRATION_MAX: Final = 2.0
FACTORS_MAX: Final = 100_000  # Remembered of a model: about 20 MB. Beyond, all are forgotten.
SCORERS_MAX: Final = 4_096

# Bounds are rounded up to one of these, a quarter apart: orders of ads are kept by them.
_BOUND_STEP: Final = 1.25
_BOUND_STEPS: Final = 60
_BOUNDS: Final = sorted({round(CTR_ONE / _BOUND_STEP**step) for step in range(_BOUND_STEPS)})
_PIECE_BYTES: Final = 32_768  # Of weights that are unpacked in one go.

# By placement, banner and campaign.
Factors = dict[tuple[int, int, int], float]


class UnreadableModelError(Exception):
    """A blob that is no model of ours, or one of another format."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """Weights at one moment, and what is needed to predict with them."""

    version: int
    weights: "array[float]"
    highest: float = 0.0  # What the weights of an ad came to at most, lately.
    calibration: float = 1.0  # Clicks that came for each that was predicted.
    examples: int = 0
    learned_at: float = 0.0  # In seconds since the epoch.


class _Blob(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    format: int
    version: int
    highest: float
    calibration: float
    examples: int
    learned_at: float
    weights: memoryview


class LearnedScoring:
    """The policy over one model; without one it is the heuristic."""

    def __init__(self, model: Model | None = None) -> None:
        self.name = LEARNED
        self.version = 0 if model is None else model.version
        self._model = model
        self._heuristic = Heuristic()
        self._scorers: dict[tuple[object, ...], LearnedScorer] = {}
        self._factors: dict[tuple[str | None, str | None], Factors] = {}
        self._remembered = 0

    def scorer(self, signals: Signals) -> Scorer:
        """Look at a request once, for all its ads."""
        flat = self._heuristic.scorer(signals)
        model = self._model
        if model is None:
            return flat
        key = (flat.ctr_max, signals.device, signals.country, signals.hour, signals.segment)
        scorer = self._scorers.get(key)
        if scorer is None:
            if len(self._scorers) >= SCORERS_MAX:
                self._forget()
            factors = self._factors.setdefault((signals.device, signals.segment), {})
            scorer = LearnedScorer(model, signals, flat.ctr_max, factors, self._make_room)
            self._scorers[key] = scorer
        return scorer

    def _make_room(self) -> None:
        """Count one more thing that is remembered, and forget all where there are too many."""
        self._remembered += 1
        if self._remembered > FACTORS_MAX:
            self._forget()

    def _forget(self) -> None:
        # A scorer that is in use keeps what it remembers until its request is over.
        self._scorers = {}
        self._factors = {}
        self._remembered = 0


class LearnedScorer:
    """The policy for requests of one kind: three factors of the odds, and a look at the bound."""

    def __init__(
        self,
        model: Model,
        signals: Signals,
        heuristic: Ctr,
        factors: Factors,
        make_room: Callable[[], None],
    ) -> None:
        self.is_uniform = False
        self._weights = model.weights
        self._signals = signals
        self._scale = CTR_ONE * model.calibration
        self._odds = odds(heuristic) * power(
            model.weights,
            request_slots(signals.device, signals.country, signals.hour, signals.segment),
        )
        self._factors = factors
        self._of_placements: dict[int, float] = {}
        self._make_room = make_room
        highest = self._odds * exp(min(LOGIT_MAX, model.highest + BOUND_MARGIN))
        self.ctr_max = bound_over(ctr_of(highest, self._scale))

    def ctr(self, ad: Ad) -> Ctr:
        """Predict how likely a click on an ad is."""
        placement = ad.placement_key
        key = (placement, ad.banner_key, ad.campaign_key)
        factor = self._factors.get(key) or self._factor(key)
        of_placement = self._of_placements.get(placement) or self._of_placement(placement)
        odds_here = self._odds * factor * of_placement
        ctr = int(self._scale * odds_here / (1.0 + odds_here) + 0.5)
        return self.ctr_max if ctr > self.ctr_max else Ctr(ctr or 1)

    def _factor(self, key: tuple[int, int, int]) -> float:
        self._make_room()
        slots = (*ad_slots(*key), *banner_slots(key[1], self._signals.device, self._signals.segment))
        factor = self._factors[key] = power(self._weights, slots)
        return factor

    def _of_placement(self, placement: int) -> float:
        slots = placement_slots(placement, self._signals.device, self._signals.hour)
        factor = self._of_placements[placement] = power(self._weights, slots)
        return factor


def odds(ctr: Ctr) -> float:
    """Tell the odds of a CTR."""
    return ctr / max(1, CTR_ONE - ctr)


def power(weights: "array[float]", slots: Slots) -> float:
    """Raise e to a sum of weights, or to what is within reason; never nothing."""
    return exp(max(-LOGIT_MAX, min(LOGIT_MAX, sum([weights[slot] for slot in slots]))))


def ctr_of(the_odds: float, scale: float = CTR_ONE) -> Ctr:
    """Tell the CTR of some odds; never none at all, so that what is not expected may still be seen."""
    return Ctr(max(1, min(CTR_ONE, round(scale * the_odds / (1.0 + the_odds)))))


def bound_over(ctr: Ctr) -> Ctr:
    """Round a CTR up to one of a few."""
    return Ctr(_BOUNDS[bisect_left(_BOUNDS, ctr)])


def encoded(model: Model) -> bytes:
    """Write a model down; places without a weight take next to no room."""
    weights = zlib.compress(model.weights.tobytes(), level=1)
    blob = _Blob(
        format=FORMAT,
        version=model.version,
        highest=model.highest,
        calibration=model.calibration,
        examples=model.examples,
        learned_at=model.learned_at,
        weights=memoryview(weights),
    )
    return msgspec.msgpack.encode(blob)


def decoded(data: bytes) -> Model:
    """Read a model, without pauses."""
    steps = decoding(data)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def decoding(data: bytes) -> Generator[None, None, Model]:
    """Read a model with pauses, a fraction of a millisecond apart; UnreadableModelError for what is none."""
    numbers = array("f")
    try:
        blob = msgspec.msgpack.decode(data, type=_Blob)
        if blob.format != FORMAT:
            raise UnreadableModelError(f"A model of format {blob.format}.")
        unpacking, packed = zlib.decompressobj(), bytes(blob.weights)
        while packed and len(numbers) <= SLOTS:
            numbers.frombytes(unpacking.decompress(packed, _PIECE_BYTES))
            packed = unpacking.unconsumed_tail
            yield
    except (msgspec.DecodeError, zlib.error, ValueError) as error:
        raise UnreadableModelError(str(error)) from error
    if len(numbers) != SLOTS or not unpacking.eof:
        raise UnreadableModelError(f"A model with {len(numbers):,} weights.")
    return Model(
        version=blob.version,
        weights=numbers,
        highest=blob.highest,
        calibration=min(CALIBRATION_MAX, max(CALIBRATION_MIN, blob.calibration)),
        examples=blob.examples,
        learned_at=blob.learned_at,
    )
