"""How well policies predict clicks, on the last days of a market, which were not learned from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from typing import Final

import msgspec

from adloom.auction.bid import CTR_ONE
from adloom.auction.learned import LearnedScoring
from adloom.auction.score import Heuristic
from adloom.auction.training import Learner, log_loss
from bench.scoring.traffic import Market, Seen

WAIT_SECONDS: Final = 1_800
PUBLISH_SECONDS: Final = 30

Predict = Callable[[Seen], float]


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How much traffic there is: days to learn from, days to be judged by."""

    seed: int = 1
    learned_days: int = 10
    judged_days: int = 3
    impressions_a_day: int = 30_000
    placements: int = 12
    banners: int = 80


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """How good predictions were."""

    name: str
    log_loss: float
    calibration: float  # Clicks that came for each that was predicted.
    error: float  # How far from the true CTR, as a share of it, on average.


class SeenAd(msgspec.Struct, frozen=True):
    """An ad as the policy wants it."""

    placement_key: int
    banner_key: int
    campaign_key: int
    format: str = "single_image"


def simulate_days(size: Size) -> tuple[list[Seen], list[Seen]]:
    """Return the traffic of the days to learn from, and of the days to judge by."""
    market = Market(size.seed, placements=size.placements, banners=size.banners)
    days = [
        list(market.day(day, size.impressions_a_day)) for day in range(size.learned_days + size.judged_days)
    ]
    learned = [seen for day in days[: size.learned_days] for seen in day]
    return learned, [seen for day in days[size.learned_days :] for seen in day]


def compare_policies(learned: Sequence[Seen], judged: Sequence[Seen]) -> list[Quality]:
    """Judge everybody by the same impressions."""
    average = sum(seen.example.is_clicked for seen in learned) / len(learned)
    learner = Learner()
    for seen in learned:
        learner.learn(seen.example)
    policy = LearnedScoring(learner.build_model(version=1, at=0.0))
    return [
        quality("plain average", judged, lambda _: average),
        quality("heuristic", judged, by_heuristic()),
        quality("learned, then left alone", judged, lambda seen: predicted(policy, seen)),
        online("learned, and goes on", learner, judged),
        quality("the true CTRs", judged, lambda seen: seen.ctr),
    ]


def first_hours(seen: Sequence[Seen]) -> list[Quality]:
    """Judge beginners by their first traffic: one that waits, one that learns clicks as they come."""
    return [
        quality("heuristic", seen, by_heuristic()),
        online("every example 30 minutes after its impression", Learner(), seen),
        online("clicks at once, the others after 30 minutes", Learner(), seen, are_clicks_first=True),
    ]


def online(name: str, learner: Learner, judged: Sequence[Seen], *, are_clicks_first: bool = False) -> Quality:
    """Judge a learner that learns on from what it is judged by, as late as it can know the answer."""
    predictions: list[float] = []
    policy = LearnedScoring(learner.build_model(version=1, at=0.0))
    published_at = judged[0].second
    answers = in_order(judged, are_clicks_first=are_clicks_first)
    due, answer = next(answers)
    for seen in judged:
        while due <= seen.second:
            learner.learn(answer.example)
            due, answer = next(answers)
        if seen.second >= published_at + PUBLISH_SECONDS:
            policy = LearnedScoring(learner.build_model(version=1, at=0.0))
            published_at = seen.second
        predictions.append(predicted(policy, seen))
    return judge(name, judged, predictions)


def in_order(judged: Sequence[Seen], *, are_clicks_first: bool) -> Iterator[tuple[float, Seen]]:
    """Yield impressions once it is known whether they were clicked."""

    def known(seen: Seen) -> float:
        if are_clicks_first and seen.clicked_at is not None:
            return min(seen.clicked_at, seen.second + WAIT_SECONDS)
        return seen.second + WAIT_SECONDS

    clicked = sorted((known(seen), seen) for seen in judged if seen.clicked_at is not None)
    ignored = [(known(seen), seen) for seen in judged if seen.clicked_at is None]
    return merge(clicked, ignored, key=lambda pair: pair[0])


def by_heuristic() -> Predict:
    """Predict as the heuristic does."""
    heuristic = Heuristic()
    return lambda seen: heuristic.build_scorer(seen.example.signals).ctr_max / CTR_ONE


def predicted(policy: LearnedScoring, seen: Seen) -> float:
    """Predict as a delivery process does."""
    example = seen.example
    ad = SeenAd(example.placement_key, example.banner_key, example.campaign_key)
    return policy.build_scorer(example.signals).predict_ctr(ad) / CTR_ONE


def quality(name: str, judged: Sequence[Seen], predict: Predict) -> Quality:
    """Judge a way to predict."""
    return judge(name, judged, [predict(seen) for seen in judged])


def judge(name: str, judged: Sequence[Seen], predictions: Iterable[float]) -> Quality:
    """Compare predictions with what happened, and with what is true."""
    loss = expected = observed = error = 0.0
    for seen, prediction in zip(judged, predictions, strict=True):
        is_clicked = seen.example.is_clicked
        loss += log_loss(prediction, is_clicked=is_clicked)
        expected += prediction
        observed += is_clicked
        error += abs(prediction - seen.ctr) / seen.ctr
    count = len(judged)
    return Quality(name=name, log_loss=loss / count, calibration=observed / expected, error=error / count)
