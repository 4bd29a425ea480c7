"""How well predicted click rates agree with clicks."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.calibration import (
    CLICKS_MIN,
    DECILES,
    WINDOW_HALF,
    CalibrationReport,
    CalibrationWindow,
    build_report,
)
from adloom.auction.score import Signals
from adloom.auction.training import Example, Learner
from tests.support.for_each import for_each

rates = st.floats(0.0, 1.0)


def a_report(predicted: float, clicks: float) -> CalibrationReport:
    return CalibrationReport(
        scoring="learned", impressions=10_000.0, predicted_clicks=predicted, clicks=clicks, deciles=()
    )


@given(st.lists(st.tuples(rates, st.booleans()), min_size=1, max_size=60))
def test_deciles_are_parts_of_the_whole_in_the_order_of_predictions(
    examples: list[tuple[float, bool]],
) -> None:
    window = CalibrationWindow()
    for predicted, is_clicked in examples:
        window.add(predicted, is_clicked=is_clicked)

    report = build_report("learned", window)

    assert 1 <= len(report.deciles) <= DECILES
    for name in ("impressions", "predicted_clicks", "clicks"):
        parts = sum(getattr(part, name) for part in report.deciles)
        assert parts == pytest.approx(getattr(report, name))
    heights = [part.predicted_clicks / part.impressions for part in report.deciles]
    assert heights == sorted(heights)
    assert report.impressions == pytest.approx(len(examples), rel=1e-3)


def test_old_impressions_lose_weight() -> None:
    window = CalibrationWindow()
    for _ in range(20 * WINDOW_HALF):
        window.add(0.5, is_clicked=True)
    for _ in range(WINDOW_HALF):
        window.add(0.5, is_clicked=False)

    report = build_report("learned", window)

    assert report.clicks / report.impressions == pytest.approx(0.5, abs=0.01)


def test_good_predictions_are_not_far_off() -> None:
    chance = random.Random(1)  # noqa: S311 - a test
    window = CalibrationWindow()
    for _ in range(60_000):
        rate = chance.choice([0.001, 0.004, 0.01, 0.03])
        window.add(rate, is_clicked=chance.random() < rate)

    report = build_report("learned", window)

    assert report.ratio == pytest.approx(1.0, abs=0.1)
    assert not report.is_far_off
    for part in report.deciles:
        assert part.predicted_clicks == pytest.approx(part.clicks, rel=0.5)


@for_each(
    ("predicted", "clicks", "is_far_off"),
    [
        (200.0, 100.0, True),
        (100.0, 200.0, True),
        (120.0, 100.0, False),
        (CLICKS_MIN / 2, 10.0, False),
        (0.0, CLICKS_MIN, True),
        (CLICKS_MIN, 0.0, True),
        (0.0, 0.0, False),
    ],
)
def test_far_off_needs_evidence(predicted: float, clicks: float, *, is_far_off: bool) -> None:
    assert a_report(predicted, clicks).is_far_off is is_far_off


def test_a_learner_compares_both_ways_of_predicting_before_it_learns() -> None:
    learner = Learner()
    example = Example(1, 2, 3, Signals(placement_type="feed"), is_clicked=True)

    for _ in range(50):
        learner.learn(example)
    again = Learner.decode(learner.encode())

    heuristic, learned = learner.calibrations
    assert (heuristic.scoring, learned.scoring) == ("heuristic", "learned")
    assert heuristic.clicks == pytest.approx(50, rel=1e-2)
    assert heuristic.predicted_clicks < learned.predicted_clicks < 50
    assert again.calibrations == learner.calibrations


def test_the_state_of_an_older_learner_is_read() -> None:
    learner = Learner()
    learner.learn(Example(1, 2, 3, Signals(placement_type="feed")))
    fields = msgspec.msgpack.decode(learner.encode())
    del fields[1]["windows"]

    again = Learner.decode(msgspec.msgpack.encode(fields))

    assert again.progress.examples == 1
    assert again.calibrations == []
