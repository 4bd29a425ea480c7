"""The learner of CTR models: training, calibration and encoding."""

import msgspec
import pytest

from adloom.auction import training
from adloom.auction.bid import CTR_ONE
from adloom.auction.learned import LearnedScoring
from adloom.auction.model import CALIBRATION_MAX, CALIBRATION_MIN
from adloom.auction.score import Signals
from adloom.auction.training import Example, Learner, UnreadableLearnerError
from tests.auction.test_learned_scoring import SomeAd

FEED = Signals(placement_type="feed", device="mobile", country="FR", hour=9)


def train(
    learner: Learner, count: int, *, clicked_every: int, banner: int = 2, signals: Signals = FEED
) -> Learner:
    for number in range(count):
        learner.learn(Example(1, banner, 3, signals, is_clicked=number % clicked_every == 0))
    return learner


def ctr(learner: Learner, banner: int = 2, signals: Signals = FEED) -> float:
    scorer = LearnedScoring(learner.build_model(version=1, at=0.0)).build_scorer(signals)
    return scorer.predict_ctr(SomeAd(banner_key=banner)) / CTR_ONE


def test_a_learner_without_examples_predicts_as_the_heuristic_does() -> None:
    assert ctr(Learner()) == 0.02


def test_the_predicted_ctr_approaches_the_observed_one() -> None:
    learner = train(Learner(), 4_000, clicked_every=10)

    assert ctr(learner) == pytest.approx(0.1, rel=0.15)
    assert learner.loss < learner.heuristic_loss


def test_an_ad_without_examples_is_predicted_from_shared_features() -> None:
    learner = train(Learner(), 4_000, clicked_every=10)

    assert 0.02 < ctr(learner, banner=9) < ctr(learner)


@pytest.mark.parametrize(
    ("observed", "expected", "ratio"),
    [
        (0.0, 0.0, 1.0),
        (40.0, 20.0, 1.5),
        (10_000.0, 10.0, CALIBRATION_MAX),
        (0.0, 10_000.0, CALIBRATION_MIN),
    ],
)
def test_the_calibration_is_the_bounded_ratio_of_clicks_to_predicted_clicks(
    observed: float, expected: float, ratio: float
) -> None:
    learner = Learner()
    learner.progress.observed, learner.progress.expected = observed, expected

    assert learner.calibration == ratio


def test_newer_examples_outweigh_older_ones() -> None:
    learner = train(Learner(), 6_000, clicked_every=10)
    train(learner, 12_000, clicked_every=100)

    assert ctr(learner) < 0.03


def test_a_decoded_learner_learns_exactly_as_the_original() -> None:
    first = train(Learner(), 500, clicked_every=7)
    second = Learner.decode(first.encode())

    train(first, 300, clicked_every=9, banner=4)
    train(second, 300, clicked_every=9, banner=4)

    assert second.encode() == first.encode()
    assert second.build_model(version=1, at=0.0) == first.build_model(version=1, at=0.0)


def test_a_model_does_not_change_when_its_learner_learns_more() -> None:
    learner = train(Learner(), 50, clicked_every=5)
    model = learner.build_model(version=1, at=0.0)
    before = model.weights.tobytes()

    train(learner, 50, clicked_every=2)

    assert model.weights.tobytes() == before


@pytest.mark.parametrize(
    "state", [b"", b"nonsense", Learner().encode()[:-5], msgspec.msgpack.encode([9, {}, b"", b""])]
)
def test_an_unreadable_learner_state_is_refused(state: bytes) -> None:
    with pytest.raises(UnreadableLearnerError):
        Learner.decode(state)


def test_a_prediction_of_certainty_that_is_wrong_has_a_finite_loss() -> None:
    assert training.log_loss(1.0, is_clicked=False) < 25
