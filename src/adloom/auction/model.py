"""A trained CTR model: the weights of a logistic model, and its format."""

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Generator
from math import exp, isfinite
from typing import Final

import msgspec

from adloom.auction.bid import CTR_ONE, Ctr
from adloom.auction.features import SLOTS, Slots

FORMAT: Final = 1

BOUND_MARGIN: Final = 0.2  # In logits: a new ad may be so much better than any before it.
LOGIT_MAX: Final = 30.0  # Beyond any ad; its exponential is still finite.
CALIBRATION_MIN: Final = 0.5
CALIBRATION_MAX: Final = 2.0

# Bounds are rounded up to one of these, a quarter apart: scan plans are cached by them.
_BOUND_STEP: Final = 1.25
_BOUND_STEPS: Final = 60
_BOUNDS: Final = sorted({round(CTR_ONE / _BOUND_STEP**step) for step in range(_BOUND_STEPS)})
_PIECE_BYTES: Final = 32_768  # Of weights that are unpacked at once.


class UnreadableModelError(Exception):
    """Not a model, or a model of another format."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """Weights at one moment, and what is needed to predict with them."""

    version: int
    weights: "array[float]"
    highest: float = 0.0  # The recent maximum of the summed weights of an ad,
    crossing: float = LOGIT_MAX  # and of a banner with a kind of visitor, in either direction.
    calibration: float = 1.0  # Clicks observed per click predicted.
    examples: int = 0
    learned_at: float = 0.0  # In seconds since the epoch.
    weight_max: float = LOGIT_MAX  # No weight is further from 0.


class _Blob(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    format: int
    version: int
    highest: float
    calibration: float
    examples: int
    learned_at: float
    weights: memoryview
    crossing: float


def bound_cross_logit(model: Model) -> float:
    return min(LOGIT_MAX, model.crossing + BOUND_MARGIN)


def find_weight_max(weights: "array[float]") -> float:
    return max(max(weights, default=0.0), -min(weights, default=0.0))


def bound_ad_logit(model: Model) -> float:
    return min(LOGIT_MAX, model.highest + BOUND_MARGIN)


def odds_from_ctr(ctr: Ctr) -> float:
    return ctr / max(1, CTR_ONE - ctr)


def sum_exp(weights: "array[float]", slots: Slots, *, at_most: float = LOGIT_MAX) -> float:
    """Return e to the sum of some weights, bounded in both directions."""
    return exp(max(-at_most, min(at_most, sum([weights[slot] for slot in slots]))))


def ctr_from_odds(the_odds: float, scale: float = CTR_ONE) -> Ctr:
    """Never 0, so that every ad has a chance."""
    return Ctr(max(1, min(CTR_ONE, round(scale * the_odds / (1.0 + the_odds)))))


def round_up_to_bound(ctr: Ctr) -> Ctr:
    return Ctr(_BOUNDS[bisect_left(_BOUNDS, ctr)])


def encode_model(model: Model) -> bytes:
    weights = zlib.compress(model.weights.tobytes(), level=1)
    blob = _Blob(
        format=FORMAT,
        version=model.version,
        highest=model.highest,
        calibration=model.calibration,
        examples=model.examples,
        learned_at=model.learned_at,
        weights=memoryview(weights),
        crossing=model.crossing,
    )
    return msgspec.msgpack.encode(blob)


def decode_model(data: bytes) -> Model:
    """Decode without pauses."""
    steps = decode_in_steps(data)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def decode_in_steps(data: bytes) -> Generator[None, None, Model]:
    """Decode with pauses, a fraction of a millisecond apart; may raise UnreadableModelError."""
    numbers, weight_max = array("f"), 0.0
    try:
        blob = msgspec.msgpack.decode(data, type=_Blob)
        if blob.format != FORMAT:
            raise UnreadableModelError(f"A model of format {blob.format}.")
        unpacking, packed = zlib.decompressobj(), bytes(blob.weights)
        while packed and len(numbers) <= SLOTS:
            piece = array("f", unpacking.decompress(packed, _PIECE_BYTES))
            packed = unpacking.unconsumed_tail
            if not isfinite(sum(piece)):
                raise UnreadableModelError("A model with weights that are not finite.")
            numbers += piece
            weight_max = max(weight_max, find_weight_max(piece))
            yield
    except (msgspec.DecodeError, zlib.error, ValueError) as error:
        raise UnreadableModelError(str(error)) from error
    if len(numbers) != SLOTS or not unpacking.eof:
        raise UnreadableModelError(f"A model with {len(numbers):,} weights.")
    if not all(map(isfinite, (blob.highest, blob.crossing, blob.calibration))):
        raise UnreadableModelError("A model with bounds that are not finite.")
    return Model(
        version=blob.version,
        weights=numbers,
        highest=blob.highest,
        crossing=max(0.0, blob.crossing),
        calibration=min(CALIBRATION_MAX, max(CALIBRATION_MIN, blob.calibration)),
        examples=blob.examples,
        learned_at=blob.learned_at,
        weight_max=weight_max,
    )
