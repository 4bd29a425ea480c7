"""`adloom bench scoring`: how well policies predict clicks, on days that were not learned from, and what it costs.

The traffic is made up and seeded, with true CTRs that are known. The log odds of a click are a sum of

- the level of the placement's type: 0.8 of what the heuristic takes for it in stories, 1.3 in banners, 0.5 elsewhere;
- an effect of the placement (standard deviation 0.3), of the banner (0.6), of the pair of them (0.2), of the
  banner on the device (0.25), of the device and the country, and of a segment (`high-intent` 0.35);
- a wave over the hours of the day, whose height and peak are the placement's (up to 0.5);
- drift: every banner's effect walks a step a day (0.08), and one in ten wears out by 0.1 a day.

Which ad is seen does not depend on its CTR. A click comes some minutes after its impression: a
median of a minute, one in fifty after more than twenty, none after more than thirty.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from math import cos, exp, log, pi
from random import Random  # noqa: TID251 - seeded: the same market again
from typing import Annotated, Final, NamedTuple

import msgspec
import typer
from rich.console import Console, RenderableType

from adloom.auction.bid import CTR_ONE
from adloom.auction.learned import LearnedScoring
from adloom.auction.model import decode_model, encode_model
from adloom.auction.score import HIGH_INTENT, Heuristic, Scoring, Signals
from adloom.auction.training import Example, Learner, log_loss
from bench.figures import PROGRESS, BenchTable, render

TYPES: Final = ("story", "banner", "feed")
LEVELS: Final = {"story": 0.8, "banner": 1.3, "feed": 0.5}
DEVICES: Final = {"mobile": 0.25, "desktop": -0.2, "tablet": 0.0}
COUNTRIES: Final = {"US": 0.1, "DE": -0.1, "IN": 0.2, "FR": 0.0, None: -0.15}
SEGMENTS: Final = {None: 0.0, HIGH_INTENT: 0.35, "bargain": 0.15}
SECONDS_A_DAY: Final = 86_400
CLICK_SECONDS_MEDIAN: Final = 60.0
CLICK_SECONDS_MAX: Final = 1_800.0
CLICK_SPREAD: Final = 1.45
_HOURS: Final = 24
_WORN: Final = 0.1
WAIT_SECONDS: Final = 1_800
PUBLISH_SECONDS: Final = 30
FIRST_HOURS: Final = 6
SAMPLE_MAX: Final = 20_000
SECONDS_AN_HOUR: Final = 3_600


class SeenImpression(NamedTuple):
    """An impression: its time, example, true CTR and click time."""

    second: float
    example: Example
    ctr: float
    clicked_at: float | None


class SimulatedMarket:
    """Placements, banners and visitors of one seed."""

    def __init__(self, seed: int, *, placements: int = 12, banners: int = 80) -> None:
        self._chance = Random(f"{seed}:market")  # noqa: S311 - no secret is made of it
        gauss, uniform = self._chance.gauss, self._chance.uniform
        self._types = [TYPES[key % len(TYPES)] for key in range(placements)]
        self._placements = [gauss(0, 0.3) for _ in range(placements)]
        self._waves = [(uniform(0.1, 0.5), uniform(0, _HOURS)) for _ in range(placements)]
        self._banners = [gauss(0, 0.6) for _ in range(banners)]
        self._wear = [0.1 if self._chance.random() < _WORN else 0.0 for _ in range(banners)]
        self._pairs = {(p, b): gauss(0, 0.2) for p in range(placements) for b in range(banners)}
        self._on_device = {(b, device): gauss(0, 0.25) for b in range(banners) for device in DEVICES}
        self._levels = {kind: _compute_logit(LEVELS[kind] * _predict_heuristic(kind)) for kind in TYPES}

    def simulate_day(self, number: int, impressions: int) -> Iterator[SeenImpression]:
        """Yield the impressions of a day in order of time."""
        chance = self._chance
        for key, wear in enumerate(self._wear):
            self._banners[key] += chance.gauss(0, 0.08) - wear
        for second in sorted(chance.uniform(0, SECONDS_A_DAY) for _ in range(impressions)):
            yield self._simulate_impression(
                number * SECONDS_A_DAY + second, int(second) * _HOURS // SECONDS_A_DAY
            )

    def _simulate_impression(self, second: float, hour: int) -> SeenImpression:
        chance = self._chance
        placement, banner = chance.randrange(len(self._placements)), chance.randrange(len(self._banners))
        signals = Signals(
            placement_type=self._types[placement],
            segment=chance.choices(tuple(SEGMENTS), (8, 1, 1))[0],
            device=chance.choices(tuple(DEVICES), (6, 3, 1))[0],
            country=chance.choices(tuple(COUNTRIES), (4, 2, 2, 1, 1))[0],
            hour=hour,
        )
        ctr = self._compute_ctr(placement, banner, signals)
        clicked_at = None
        if chance.random() < ctr:
            delay = chance.lognormvariate(log(CLICK_SECONDS_MEDIAN), CLICK_SPREAD)
            clicked_at = second + min(delay, CLICK_SECONDS_MAX)
        # A campaign has two banners.
        example = Example(
            placement + 1, banner + 1, banner // 2 + 1, signals, is_clicked=clicked_at is not None
        )
        return SeenImpression(second, example, ctr, clicked_at)

    def _compute_ctr(self, placement: int, banner: int, signals: Signals) -> float:
        height, peak = self._waves[placement]
        assert signals.device is not None
        assert signals.hour is not None
        logits = (
            self._levels[signals.placement_type]
            + self._placements[placement]
            + self._banners[banner]
            + self._pairs[placement, banner]
            + self._on_device[banner, signals.device]
            + DEVICES[signals.device]
            + COUNTRIES[signals.country]
            + SEGMENTS[signals.segment]
            + height * cos(2 * pi * (signals.hour - peak) / _HOURS)
        )
        return 1 / (1 + exp(-logits))


def _predict_heuristic(placement_type: str) -> float:
    return Heuristic().build_scorer(Signals(placement_type=placement_type)).ctr_max / CTR_ONE


def _compute_logit(probability: float) -> float:
    return log(probability / (1 - probability))


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

    def find_known_second(seen: SeenImpression) -> float:
        if are_clicks_first and seen.clicked_at is not None:
            return min(seen.clicked_at, seen.second + WAIT_SECONDS)
        return seen.second + WAIT_SECONDS

    clicked = sorted((find_known_second(seen), seen) for seen in judged if seen.clicked_at is not None)
    ignored = [(find_known_second(seen), seen) for seen in judged if seen.clicked_at is None]
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


def main(
    *,
    seed: Annotated[int, typer.Option(help="Of the market.")] = 1,
    impressions: Annotated[int, typer.Option(min=1_000, help="A day.")] = 30_000,
) -> None:
    """Compare predictions on days that were not learned from, and measure what they cost."""
    console = Console()
    PROGRESS.say("living through 13 days")
    learned, judged = simulate_traffic(TrafficSize(seed=seed, impressions_a_day=impressions))
    clicks = sum(seen.example.is_clicked for seen in judged)
    PROGRESS.say("learning")
    held_out = compare_predictors(learned, judged)
    PROGRESS.say("learning from nothing")
    early = compare_beginners([seen for seen in learned if seen.second < FIRST_HOURS * SECONDS_AN_HOUR])
    console.print(
        _render_qualities(f"The last days: {len(judged):,} impressions, {clicks:,} clicks", held_out)
    )
    console.print(_render_qualities(f"A beginner's first {FIRST_HOURS} hours", early))
    PROGRESS.say("measuring the cost")
    console.print(render(_measure_costs(learned[:SAMPLE_MAX])))


def _render_qualities(title: str, each: Sequence[PredictionQuality]) -> RenderableType:
    headings = ["predicted by", "log loss", "clicks / predicted", "off the true CTR"]
    rows = [[one.name, f"{one.log_loss:.5f}", f"{one.calibration:.3f}", f"{one.error:.0%}"] for one in each]
    return render(BenchTable(title=title, headings=headings, rows=rows))


def _measure_costs(seen: Sequence[SeenImpression]) -> BenchTable:
    learner = Learner()
    rows: list[list[str]] = []

    def show(what: str, work: Callable[[], object], *, times: int) -> None:
        started_at = time.process_time()
        work()
        rows.append([what, f"{(time.process_time() - started_at) / times * 1e6:,.2f}"])

    def learn() -> None:
        for one in seen:
            learner.learn(one.example)

    show("learn an example", learn, times=len(seen))
    policy = LearnedScoring(learner.build_model(version=1, at=0.0))
    signals = seen[0].example.signals
    ads = [SeenAd(key % 12 + 1, key + 1, key // 2 + 1) for key in range(10_000)]

    def score(policy: Scoring) -> None:
        scorer = policy.build_scorer(signals)
        for ad in ads:
            scorer.predict_ctr(ad)

    show("predict, heuristic", lambda: score(Heuristic()), times=len(ads))
    show("predict an ad for the first time", lambda: score(policy), times=len(ads))
    show("predict an ad for a request of a known kind", lambda: score(policy), times=len(ads))
    model = learner.build_model(version=2, at=0.0)
    renewed = LearnedScoring(model)
    show("predict an ad with a new model", lambda: score(renewed), times=len(ads))
    blob = encode_model(model)
    show(f"write a model ({len(blob) / 1000:,.0f} kB)", lambda: encode_model(model), times=1)
    show("read a model", lambda: decode_model(blob), times=1)
    return BenchTable(title="Cost", headings=["what", "µs of CPU"], rows=rows)
