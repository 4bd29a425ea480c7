"""`adloom bench creatives`: which choice of creatives gets the most clicks, against click rates that are known.

Five creatives of equal bids fill one slot, a thousand times a minute. Results reach the choice as in delivery: those of
the last hour by the minute, every second or two. The figure is the share of the clicks that the best creative alone
would have got, with the interval that the mean of as many other runs would lie in, 19 times of 20. All runs go on at
once, as rows of arrays; draws are those of `auction/creative_choice.py`, whose own are tested against plain ones.
"""

from collections import deque
from collections.abc import Callable
from math import sqrt
from typing import Annotated, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import typer

from adloom.auction.creative_choice import (
    CLICK_RATE_DEFAULT,
    EVIDENCE_WEIGHT,
    FEW_IMPRESSIONS,
    NEWCOMER_SHARE,
    PRIOR_IMPRESSIONS,
)
from bench.figures import BenchTable, show

SPREAD: Final = (0.4, 0.6, 0.8, 1.0, 2.2)  # Of the mean click rate.
CREATIVES: Final = len(SPREAD)
IMPRESSIONS: Final = (1_000, 10_000, 100_000)
RATES: Final = (0.001, 0.003, 0.01)
EPSILON: Final = 0.1
STEP: Final = 25  # Impressions between two notices of results.
MINUTE_STEPS: Final = 40
HOUR_MINUTES: Final = 60
DEVIATIONS: Final = 1.96

Counts: TypeAlias = npt.NDArray[np.float64]  # A row for each run, a column for each creative.
Choices: TypeAlias = npt.NDArray[np.int64]  # A row for each run, a column for each impression of a step.
Choose: TypeAlias = Callable[[Counts, Counts, np.random.Generator], Choices]


def choose_informed(evidence_weight: float) -> Choose:
    """Draw around the site's click rate."""

    def choose(impressions: Counts, clicks: Counts, chance: np.random.Generator) -> Choices:
        weight = PRIOR_IMPRESSIONS * CREATIVES
        rate = (clicks.sum(1) + CLICK_RATE_DEFAULT * weight) / (impressions.sum(1) + weight)
        expected = rate[:, None] * PRIOR_IMPRESSIONS
        missed = PRIOR_IMPRESSIONS - expected + impressions - clicks
        return _draw(evidence_weight * (clicks + expected), evidence_weight * missed, chance)

    return choose


def choose_by_ladder(impressions: Counts, clicks: Counts, chance: np.random.Generator) -> Choices:
    """Go up the ladder of the seed document."""
    drawn = _draw(clicks + 1, impressions - clicks + 1, chance)
    order = np.argsort(impressions + chance.random(impressions.shape), axis=1)
    by_turns = order[:, np.arange(STEP) % CREATIVES]
    few: npt.NDArray[np.bool_] = np.all(impressions < FEW_IMPRESSIONS, axis=1)
    newcomer: Counts = np.where(impressions == 0, chance.random(impressions.shape), 0.0)
    turns: Counts = np.where(newcomer.max(axis=1) > 0, NEWCOMER_SHARE, 0.0)
    has_turn = chance.random(drawn.shape) < turns[:, None]
    picked = np.where(has_turn, newcomer.argmax(axis=1)[:, None], drawn)
    return np.where(few[:, None], by_turns, picked)


def choose_greedily(impressions: Counts, clicks: Counts, chance: np.random.Generator) -> Choices:
    """Take the best so far, and one time in ten any."""
    best = ((clicks + 1) / (impressions + 2)).argmax(axis=1)
    shape = (len(impressions), STEP)
    return np.where(chance.random(shape) < EPSILON, chance.integers(0, CREATIVES, shape), best[:, None])


def choose_any(impressions: Counts, clicks: Counts, chance: np.random.Generator) -> Choices:
    """Take any."""
    del clicks
    return chance.integers(0, CREATIVES, (len(impressions), STEP))


METHODS: Final[dict[str, Choose]] = {
    "Thompson, informed prior (default)": choose_informed(EVIDENCE_WEIGHT),
    "the same, plain": choose_informed(1.0),
    "Thompson, ladder": choose_by_ladder,
    "greedy, one in ten any": choose_greedily,
    "any": choose_any,
}


def main(
    *,
    runs: Annotated[int, typer.Option(min=2, max=10_000, help="Runs of each figure.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 1,
) -> None:
    """Compare choices of creatives by the clicks that they get."""

    def measure(say: Callable[[str], None]) -> BenchTable:
        rows: list[list[str]] = []
        for rate in RATES:
            for name, choose in METHODS.items():
                say(f"{name} at {rate:.1%}")
                shares = simulate(choose, rate, runs=runs, seed=seed)
                rows.append([f"{rate:.1%}, {name}", *(describe(one) for one in shares)])
        return BenchTable(
            title=f"clicks, as a share of those of the best creative alone; means of {runs} runs",
            headings=["click rate, choice", *(f"{count:,}" for count in IMPRESSIONS)],
            rows=rows,
        )

    show(measure)


def describe(shares: Counts) -> str:
    """Return the mean, and how far it may be off."""
    return f"{shares.mean():.1%} ±{DEVIATIONS * shares.std(ddof=1) / sqrt(len(shares)):.1%}"


def simulate(choose: Choose, rate: float, *, runs: int, seed: int) -> list[Counts]:
    """Return the share of the best creative's expected clicks in each run, after each number of impressions."""
    chance = np.random.default_rng(seed)
    rates = rate * chance.permuted(np.tile(SPREAD, (runs, 1)), axis=1)
    impressions, clicks = np.zeros(rates.shape), np.zeros(rates.shape)
    minutes = deque([(np.zeros(rates.shape), np.zeros(rates.shape))])
    expected, shares = np.zeros(runs), list[Counts]()
    for step in range(1, IMPRESSIONS[-1] // STEP + 1):
        chosen = choose(impressions, clicks, chance)
        shown = np.stack([(chosen == one).sum(axis=1) for one in range(CREATIVES)], axis=1)
        clicked = chance.binomial(shown, rates)
        expected += (shown * rates).sum(axis=1)
        impressions += shown
        clicks += clicked
        of_minute = minutes[-1]
        np.add(of_minute[0], shown, out=of_minute[0])
        np.add(of_minute[1], clicked, out=of_minute[1])
        if step % MINUTE_STEPS == 0:
            minutes.append((np.zeros(rates.shape), np.zeros(rates.shape)))
            if len(minutes) > HOUR_MINUTES:
                old_impressions, old_clicks = minutes.popleft()
                impressions -= old_impressions
                clicks -= old_clicks
        if step * STEP in IMPRESSIONS:
            shares.append(expected / (step * STEP * rates.max(axis=1)))
    return shares


def _draw(hits: Counts, misses: Counts, chance: np.random.Generator) -> Choices:
    """Choose by the highest of Beta draws, one of each creative for each impression."""
    shape = (len(hits), STEP, CREATIVES)
    drawn = chance.beta(
        np.broadcast_to(hits[:, None, :], shape), np.broadcast_to(np.maximum(misses, 1.0)[:, None, :], shape)
    )
    return drawn.argmax(axis=2)
