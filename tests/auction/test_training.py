"""Learning from examples."""

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


def taught(
    learner: Learner, count: int, *, clicked_every: int, banner: int = 2, seen: Signals = FEED
) -> Learner:
    for number in range(count):
        learner.learn(Example(1, banner, 3, seen, is_clicked=number % clicked_every == 0))
    return learner


def ctr(learner: Learner, banner: int = 2, seen: Signals = FEED) -> float:
    scorer = LearnedScoring(learner.build_model(version=1, at=0.0)).build_scorer(seen)
    return scorer.predict_ctr(SomeAd(banner_key=banner)) / CTR_ONE


def test_a_learner_without_examples_predicts_as_the_heuristic_does() -> None:
    assert ctr(Learner()) == 0.02


def test_what_is_clicked_more_than_expected_is_expected_to_be_clicked_more() -> None:
    learner = taught(Learner(), 4_000, clicked_every=10)

    assert ctr(learner) == pytest.approx(0.1, rel=0.15)
    assert learner.loss < learner.heuristic_loss


def test_an_ad_that_was_not_seen_gets_what_others_have_in_common() -> None:
    learner = taught(Learner(), 4_000, clicked_every=10)

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
def test_the_calibration_is_clicks_to_predicted_clicks_within_bounds(
    observed: float, expected: float, ratio: float
) -> None:
    learner = Learner()
    learner.progress.observed, learner.progress.expected = observed, expected

    assert learner.calibration == ratio


def test_what_was_learned_gives_way_to_what_follows() -> None:
    learner = taught(Learner(), 6_000, clicked_every=10)
    taught(learner, 12_000, clicked_every=100)

    assert ctr(learner) < 0.03


def test_a_learner_that_is_read_goes_on_as_the_one_that_was_written() -> None:
    first = taught(Learner(), 500, clicked_every=7)
    second = Learner.decode(first.encode())

    taught(first, 300, clicked_every=9, banner=4)
    taught(second, 300, clicked_every=9, banner=4)

    assert second.encode() == first.encode()
    assert second.build_model(version=1, at=0.0) == first.build_model(version=1, at=0.0)


def test_a_model_does_not_change_with_its_learner() -> None:
    learner = taught(Learner(), 50, clicked_every=5)
    model = learner.build_model(version=1, at=0.0)
    before = model.weights.tobytes()

    taught(learner, 50, clicked_every=2)

    assert model.weights.tobytes() == before


@pytest.mark.parametrize(
    "state", [b"", b"nonsense", Learner().encode()[:-5], msgspec.msgpack.encode([9, {}, b"", b""])]
)
def test_a_state_that_is_not_ours_is_refused(state: bytes) -> None:
    with pytest.raises(UnreadableLearnerError):
        Learner.decode(state)


def test_a_certain_prediction_that_is_wrong_is_a_finite_loss() -> None:
    assert training.log_loss(1.0, is_clicked=False) < 25
