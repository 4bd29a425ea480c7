"""`python -m bench.scoring`: how well clicks are predicted, and the cost of a prediction."""

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from adloom.auction.learned import LearnedScoring
from adloom.auction.model import decode_model, encode_model
from adloom.auction.score import Heuristic
from adloom.auction.training import Learner
from bench.scoring.quality import (
    PredictionQuality,
    SeenAd,
    TrafficSize,
    compare_beginners,
    compare_predictors,
    simulate_traffic,
)
from bench.scoring.traffic import SeenImpression

FIRST_HOURS: Final = 6
SAMPLE_MAX: Final = 20_000
SECONDS_AN_HOUR: Final = 3_600


def main(
    *,
    seed: Annotated[int, typer.Option(help="Of the market.")] = 1,
    impressions: Annotated[int, typer.Option(min=1_000, help="A day.")] = 30_000,
) -> None:
    """Compare predictions on days that were not learned from, and measure what they cost."""
    console = Console()
    with console.status("Living through 13 days"):
        size = TrafficSize(seed=seed, impressions_a_day=impressions)
        learned, judged = simulate_traffic(size)
    clicks = sum(seen.example.is_clicked for seen in judged)
    with console.status("Learning"):
        held_out = compare_predictors(learned, judged)
        early = compare_beginners([seen for seen in learned if seen.second < FIRST_HOURS * SECONDS_AN_HOUR])
    console.print(_build_table(f"The last days: {len(judged):,} impressions, {clicks:,} clicks", held_out))
    console.print(_build_table(f"A beginner's first {FIRST_HOURS} hours", early))
    console.print(_measure_costs(learned[:SAMPLE_MAX]))


def _build_table(title: str, rows: Sequence[PredictionQuality]) -> Table:
    table = Table("predicted by", title=title)
    for heading in ("log loss", "clicks / predicted", "off the true CTR"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row.name, f"{row.log_loss:.5f}", f"{row.calibration:.3f}", f"{row.error:.0%}")
    return table


def _measure_costs(seen: Sequence[SeenImpression]) -> Table:
    learner, heuristic = Learner(), Heuristic()
    table = Table("what", title="Cost")
    table.add_column("µs of CPU", justify="right")

    def show(what: str, work: Callable[[], object], *, times: int) -> None:
        started_at = time.process_time()
        work()
        table.add_row(what, f"{(time.process_time() - started_at) / times * 1e6:,.2f}")

    def learn() -> None:
        for one in seen:
            learner.learn(one.example)

    show("learn an example", learn, times=len(seen))
    policy = LearnedScoring(learner.build_model(version=1, at=0.0))
    signals = seen[0].example.signals
    ads = [SeenAd(key % 12 + 1, key + 1, key // 2 + 1) for key in range(10_000)]

    def flat() -> None:
        scorer = heuristic.build_scorer(signals)
        for ad in ads:
            scorer.predict_ctr(ad)

    def score() -> None:
        scorer = policy.build_scorer(signals)
        for ad in ads:
            scorer.predict_ctr(ad)

    show("predict, heuristic", flat, times=len(ads))
    show("predict an ad for the first time", score, times=len(ads))
    show("predict an ad for a request of a known kind", score, times=len(ads))
    model = learner.build_model(version=2, at=0.0)
    policy = LearnedScoring(model)
    show("predict an ad with a new model", score, times=len(ads))
    blob = encode_model(model)
    show(f"write a model ({len(blob) / 1000:,.0f} kB)", lambda: encode_model(model), times=1)
    show("read a model", lambda: decode_model(blob), times=1)
    return table


if __name__ == "__main__":
    typer.run(main)
