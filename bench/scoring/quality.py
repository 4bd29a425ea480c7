"""How well policies predict clicks, on the last days of a market, which were not learned from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from typing import Final

import msgspec

from adloom.auction.bid import CTR_ONE
from adloom.auction.learned import LearnedScoring
from adloom.auction.score import Heuristic
from adloom.auction.training import Learner, log_loss
from bench.scoring.traffic import SeenImpression, SimulatedMarket

WAIT_SECONDS: Final = 1_800
PUBLISH_SECONDS: Final = 30

Predict = Callable[[SeenImpression], float]


class TrafficSize(msgspec.Struct, frozen=True, kw_only=True):
    """The amount of traffic: days to learn from, and days to judge by."""

    seed: int = 1
    learned_days: int = 10
    judged_days: int = 3
    impressions_a_day: int = 30_000
    placements: int = 12
    banners: int = 80


class PredictionQuality(msgspec.Struct, frozen=True, kw_only=True):
    """How good predictions were."""

    name: str
    log_loss: float
    calibration: float  # Observed clicks per predicted click.
    error: float  # Mean distance from the true CTR, as a share of it.


class SeenAd(msgspec.Struct, frozen=True):
    """An ad as policies see it."""

    placement_key: int
    banner_key: int
    campaign_key: int
    format: str = "single_image"


def simulate_traffic(size: TrafficSize) -> tuple[list[SeenImpression], list[SeenImpression]]:
    """Return the traffic of the days to learn from, and of the days to judge by."""
    market = SimulatedMarket(size.seed, placements=size.placements, banners=size.banners)
    days = [
        list(market.simulate_day(day, size.impressions_a_day))
        for day in range(size.learned_days + size.judged_days)
    ]
    learned = [seen for day in days[: size.learned_days] for seen in day]
    return learned, [seen for day in days[size.learned_days :] for seen in day]


def compare_predictors(
    learned: Sequence[SeenImpression], judged: Sequence[SeenImpression]
) -> list[PredictionQuality]:
    """Judge all predictors by the same impressions."""
    average = sum(seen.example.is_clicked for seen in learned) / len(learned)
    learner = Learner()
    for seen in learned:
        learner.learn(seen.example)
    policy = LearnedScoring(learner.build_model(version=1, at=0.0))
    return [
        judge_predictor("plain average", judged, lambda _: average),
        judge_predictor("heuristic", judged, build_heuristic()),
        judge_predictor("learned, then left alone", judged, lambda seen: predict(policy, seen)),
        judge_online("learned, and goes on", learner, judged),
        judge_predictor("the true CTRs", judged, lambda seen: seen.ctr),
    ]


def compare_beginners(seen: Sequence[SeenImpression]) -> list[PredictionQuality]:
    """Judge untrained learners by their first traffic: one waits, one learns clicks at once."""
    return [
        judge_predictor("heuristic", seen, build_heuristic()),
        judge_online("every example 30 minutes after its impression", Learner(), seen),
        judge_online("clicks at once, the others after 30 minutes", Learner(), seen, are_clicks_first=True),
    ]


def judge_online(
    name: str, learner: Learner, judged: Sequence[SeenImpression], *, are_clicks_first: bool = False
) -> PredictionQuality:
    """Judge a learner that also learns from the judged impressions, as soon as their results are known."""
    predictions: list[float] = []
    policy = LearnedScoring(learner.build_model(version=1, at=0.0))
    published_at = judged[0].second
    answers = order_answers(judged, are_clicks_first=are_clicks_first)
    due, answer = next(answers)
    for seen in judged:
        while due <= seen.second:
            learner.learn(answer.example)
            due, answer = next(answers)
        if seen.second >= published_at + PUBLISH_SECONDS:
            policy = LearnedScoring(learner.build_model(version=1, at=0.0))
            published_at = seen.second
        predictions.append(predict(policy, seen))
    return judge_predictions(name, judged, predictions)


def order_answers(
    judged: Sequence[SeenImpression], *, are_clicks_first: bool
) -> Iterator[tuple[float, SeenImpression]]:
    """Yield impressions once it is known whether they were clicked."""

    def known(seen: SeenImpression) -> float:
        if are_clicks_first and seen.clicked_at is not None:
            return min(seen.clicked_at, seen.second + WAIT_SECONDS)
        return seen.second + WAIT_SECONDS

    clicked = sorted((known(seen), seen) for seen in judged if seen.clicked_at is not None)
    ignored = [(known(seen), seen) for seen in judged if seen.clicked_at is None]
    return merge(clicked, ignored, key=lambda pair: pair[0])


def build_heuristic() -> Predict:
    heuristic = Heuristic()
    return lambda seen: heuristic.build_scorer(seen.example.signals).ctr_max / CTR_ONE


def predict(policy: LearnedScoring, seen: SeenImpression) -> float:
    """Predict as a delivery process does."""
    example = seen.example
    ad = SeenAd(example.placement_key, example.banner_key, example.campaign_key)
    return policy.build_scorer(example.signals).predict_ctr(ad) / CTR_ONE


def judge_predictor(name: str, judged: Sequence[SeenImpression], predict: Predict) -> PredictionQuality:
    return judge_predictions(name, judged, [predict(seen) for seen in judged])


def judge_predictions(
    name: str, judged: Sequence[SeenImpression], predictions: Iterable[float]
) -> PredictionQuality:
    """Compare predictions with clicks and with true CTRs."""
    loss = expected = observed = error = 0.0
    for seen, prediction in zip(judged, predictions, strict=True):
        is_clicked = seen.example.is_clicked
        loss += log_loss(prediction, is_clicked=is_clicked)
        expected += prediction
        observed += is_clicked
        error += abs(prediction - seen.ctr) / seen.ctr
    count = len(judged)
    return PredictionQuality(
        name=name, log_loss=loss / count, calibration=observed / expected, error=error / count
    )
