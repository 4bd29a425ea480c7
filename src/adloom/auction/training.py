"""Trains the CTR model on impressions and clicks: follow-the-regularized-leader, one example at a time.

Each weight has its own learning rate, which falls with its evidence down to a minimum: visitors change, and old
examples must lose weight. (McMahan et al., "Ad Click Prediction: a View from the Trenches", 2013.)
"""

import zlib
from array import array
from math import exp, log, sqrt
from typing import Final

import msgspec

from adloom.auction.bid import CTR_ONE, Ctr
from adloom.auction.calibration import CalibrationReport, CalibrationWindow, build_report
from adloom.auction.features import (
    SLOTS,
    find_ad_slots,
    find_banner_slots,
    find_placement_slots,
    request_slots,
)
from adloom.auction.learned import LEARNED
from adloom.auction.model import CALIBRATION_MAX, CALIBRATION_MIN, LOGIT_MAX, Model, odds_from_ctr
from adloom.auction.score import HEURISTIC, Heuristic, Signals

FORMAT: Final = 1

RATE: Final = 0.1
RATE_DELAY: Final = 1.0
L1: Final = 0.05  # With less evidence than this the weight stays 0.
L2: Final = 1.0
EVIDENCE_MAX: Final = 4_000.0  # Rates stop falling here: about 200,000 impressions with 2 % clicks.
# Examples lose weight in the click ratio: half after so many; the prior is so many clicks.
CALIBRATION_HALF: Final = 20_000
CALIBRATION_PRIOR: Final = 20.0
LOSS_HALF: Final = 20_000
HIGHEST_FALLS: Final = 1e-5  # By example: recent maxima decay where no example comes near them.

_CALIBRATION_KEPT: Final = 0.5 ** (1 / CALIBRATION_HALF)
_LOSS_KEPT: Final = 0.5 ** (1 / LOSS_HALF)
_PROBABILITY_MIN: Final = 1e-9


class UnreadableLearnerError(Exception):
    """Not a learner's state, or of another format."""


class Example(msgspec.Struct, frozen=True, gc=False):
    """An ad that was seen, its request, and whether it was clicked."""

    placement_key: int
    banner_key: int
    campaign_key: int
    signals: Signals
    is_clicked: bool = False


class LearnerProgress(msgspec.Struct, kw_only=True):
    """The figures of a learner; losses are of predictions made before the outcome was known."""

    examples: int = 0
    clicks: int = 0
    expected: float = 0.0  # Clicks, weighted as for the calibration.
    observed: float = 0.0
    highest: float = 0.0
    crossing: float = 0.0
    loss: float = 0.0
    heuristic_loss: float = 0.0
    loss_weight: float = 0.0
    windows: dict[str, CalibrationWindow] = msgspec.field(
        default_factory=dict[str, CalibrationWindow]
    )  # By scoring.


class _State(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    format: int
    progress: LearnerProgress
    gradients: memoryview
    evidence: memoryview


class Learner:
    """A model that changes with every example."""

    def __init__(self) -> None:
        self.progress = LearnerProgress()
        self._heuristic = Heuristic()
        empty = bytes(SLOTS * 4)
        self._gradients, self._evidence, self._weights = (
            array("f", empty),
            array("f", empty),
            array("f", empty),
        )

    @property
    def calibration(self) -> float:
        """Clicks observed per click predicted; bounded, and near 1 while there are few examples."""
        progress = self.progress
        ratio = (progress.observed + CALIBRATION_PRIOR) / (progress.expected + CALIBRATION_PRIOR)
        return min(CALIBRATION_MAX, max(CALIBRATION_MIN, ratio))

    @property
    def loss(self) -> float:
        """The mean log loss of recent predictions."""
        return self.progress.loss / self.progress.loss_weight if self.progress.examples else 0.0

    @property
    def heuristic_loss(self) -> float:
        """The same for the heuristic."""
        return self.progress.heuristic_loss / self.progress.loss_weight if self.progress.examples else 0.0

    @property
    def calibrations(self) -> list[CalibrationReport]:
        """How well predictions agreed with clicks, by scoring."""
        return [build_report(scoring, window) for scoring, window in sorted(self.progress.windows.items())]

    def learn(self, example: Example) -> None:
        """Predict, compare with the outcome, and adjust the weights."""
        signals, placement, banner = example.signals, example.placement_key, example.banner_key
        device, segment, hour = signals.device, signals.segment, signals.hour
        shared = request_slots(device, signals.country, hour, segment)
        crossing = find_banner_slots(banner, device, segment)
        own = (
            *find_ad_slots(placement, banner, example.campaign_key),
            *crossing,
            *find_placement_slots(placement, device, hour),
        )
        weights, progress = self._weights, self.progress
        of_ad = sum([weights[slot] for slot in own])
        logits = of_ad + sum([weights[slot] for slot in shared])
        heuristic = self._heuristic.build_scorer(signals).ctr_max
        raw = odds_from_ctr(heuristic) * exp(max(-LOGIT_MAX, min(LOGIT_MAX, logits)))
        predicted = raw / (1.0 + raw)
        of_crossing = abs(sum([weights[slot] for slot in crossing]))
        progress.highest = max(of_ad, progress.highest - HIGHEST_FALLS)
        progress.crossing = max(of_crossing, progress.crossing - HIGHEST_FALLS)
        self._count(example, heuristic, predicted)
        self._adjust((*shared, *own), predicted - example.is_clicked)

    def build_model(self, *, version: int, at: float) -> Model:
        return Model(
            version=version,
            weights=self._weights[:],
            highest=self.progress.highest,
            crossing=self.progress.crossing,
            calibration=self.calibration,
            examples=self.progress.examples,
            learned_at=at,
        )

    def _count(self, example: Example, heuristic: Ctr, predicted: float) -> None:
        progress, is_clicked = self.progress, example.is_clicked
        calibrated = min(1.0, predicted * self.calibration)
        progress.examples += 1
        progress.clicks += is_clicked
        for scoring, rate in ((LEARNED, calibrated), (HEURISTIC, heuristic / CTR_ONE)):
            window = progress.windows.get(scoring)
            if window is None:
                window = progress.windows[scoring] = CalibrationWindow()
            window.add(rate, is_clicked=is_clicked)
        progress.loss = progress.loss * _LOSS_KEPT + log_loss(calibrated, is_clicked=is_clicked)
        progress.heuristic_loss = progress.heuristic_loss * _LOSS_KEPT + log_loss(
            heuristic / CTR_ONE, is_clicked=is_clicked
        )
        progress.loss_weight = progress.loss_weight * _LOSS_KEPT + 1.0
        progress.expected = progress.expected * _CALIBRATION_KEPT + predicted
        progress.observed = progress.observed * _CALIBRATION_KEPT + is_clicked

    def _adjust(self, slots: tuple[int, ...], error: float) -> None:
        gradients, evidence, weights = self._gradients, self._evidence, self._weights
        square = error * error
        for slot in slots:
            before = evidence[slot]
            after = min(before + square, EVIDENCE_MAX)
            rooted = sqrt(after)
            gradients[slot] += error - (rooted - sqrt(before)) / RATE * weights[slot]
            evidence[slot] = after
            # From the stored precision, so that a decoded learner has the same weights.
            weights[slot] = _compute_weight(gradients[slot], evidence[slot])

    def encode(self) -> bytes:
        """Encode all of it: a decoded learner goes on as this one would have."""
        return msgspec.msgpack.encode(
            _State(
                format=FORMAT,
                progress=self.progress,
                gradients=memoryview(zlib.compress(self._gradients.tobytes(), level=1)),
                evidence=memoryview(zlib.compress(self._evidence.tobytes(), level=1)),
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> "Learner":
        try:
            state = msgspec.msgpack.decode(data, type=_State)
            gradients, evidence = zlib.decompress(state.gradients), zlib.decompress(state.evidence)
        except (msgspec.DecodeError, zlib.error) as error:
            raise UnreadableLearnerError(str(error)) from error
        if state.format != FORMAT or not len(gradients) == len(evidence) == SLOTS * 4:
            raise UnreadableLearnerError(f"A state of format {state.format} with {len(gradients)} bytes.")
        learner = cls()
        learner.progress = state.progress
        learner._gradients, learner._evidence = array("f", gradients), array("f", evidence)
        if min(learner._evidence) < 0:
            raise UnreadableLearnerError("A state with negative evidence.")
        for slot, gradient in enumerate(learner._gradients):
            if gradient:
                learner._weights[slot] = _compute_weight(gradient, learner._evidence[slot])
        return learner


def log_loss(predicted: float, *, is_clicked: bool) -> float:
    probability = predicted if is_clicked else 1.0 - predicted
    return -log(max(_PROBABILITY_MIN, probability))


def _compute_weight(gradient: float, evidence: float) -> float:
    if abs(gradient) <= L1:
        return 0.0
    pull = gradient - L1 if gradient > 0 else gradient + L1
    return -pull / ((RATE_DELAY + sqrt(evidence)) / RATE + L2)
