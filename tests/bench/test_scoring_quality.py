"""Learning is worth it: on traffic whose true CTRs are known, judged by days that nobody has learned from."""

import pytest

from adloom.auction.bid import CTR_ONE
from adloom.auction.learned import LearnedScoring
from adloom.auction.score import Heuristic
from adloom.auction.training import Learner
from bench.scoring import (
    SeenAd,
    TrafficSize,
    compare_beginners,
    compare_predictors,
    predict,
    simulate_traffic,
)

SMALL = TrafficSize(learned_days=6, judged_days=2, impressions_a_day=6_000, placements=6, banners=20)


@pytest.mark.slow
def test_learned_beats_the_heuristic_and_the_plain_average() -> None:
    average, heuristic, alone, online, true = compare_predictors(*simulate_traffic(SMALL))

    for learned in (alone, online):
        assert true.log_loss < learned.log_loss < min(average.log_loss, heuristic.log_loss)
        assert learned.error < min(average.error, heuristic.error) / 2
        assert 0.85 < learned.calibration < 1.15


def test_a_beginner_that_learns_clicks_before_the_rest_is_worse_than_one_that_waits() -> None:
    learned, _ = simulate_traffic(TrafficSize(learned_days=1, judged_days=1, impressions_a_day=12_000))
    heuristic, waits, eager = compare_beginners(learned[:3_000])

    assert waits.log_loss < heuristic.log_loss
    assert waits.log_loss < eager.log_loss
    assert waits.error < eager.error


def test_an_untrained_model_is_the_heuristic() -> None:
    traffic, _ = simulate_traffic(TrafficSize(learned_days=1, judged_days=1, impressions_a_day=500))
    policy, heuristic = LearnedScoring(Learner().build_model(version=1, at=0.0)), Heuristic()

    for seen in traffic:
        ad = SeenAd(seen.example.placement_key, seen.example.banner_key, seen.example.campaign_key)
        flat = heuristic.build_scorer(seen.example.signals).predict_ctr(ad)
        assert policy.build_scorer(seen.example.signals).predict_ctr(ad) == flat
        assert predict(policy, seen) == flat / CTR_ONE


def test_a_market_is_the_same_for_the_same_seed() -> None:
    size = TrafficSize(learned_days=1, judged_days=1, impressions_a_day=50)

    assert simulate_traffic(size) == simulate_traffic(size)
