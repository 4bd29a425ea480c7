"""Generated market days in the form of recorded ones: what is needed to win is log-normal, by seat and hour.

They are unlike the recorded market in clock, steepness and swings. Part of the training is on them, so that the net does
not take one market's habits for laws; tests play them too.
"""

from math import erf, pi, sin, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from adloom.bidding.training.market_days import BLOCK, WINDOWS, MarketDays, build_market_days

Floats = npt.NDArray[np.float64]

MULTIPLIERS: Final = 64
TRAFFIC: Final = 50_000
SPREAD_MIN, SPREAD_MAX = 0.35, 1.1  # Of ln(what is needed to win): how steeply more is won by bidding more.
LEVEL, DAY_SWING, HOUR_SWING = (
    -0.1,
    0.35,
    0.15,
)  # Of the same, on average, from day to day and from block to block.
WORTH_MIN, WORTH_MAX = 1.0, 4.0  # How many times the budget all of the day's traffic is worth.


def generate_tables(*, days: int, seats: int, seed: int, train: int) -> dict[str, npt.NDArray[Any]]:
    """Generate the tables of an archive; the first `train` days are to be learned from."""
    chance = np.random.default_rng(seed)
    multipliers = np.array(
        [0.05 * 200 ** (step / (MULTIPLIERS - 1)) for step in range(MULTIPLIERS)], dtype=np.float64
    )
    peak = chance.uniform(0, WINDOWS)
    shape = np.array(
        [1.0 + 0.7 * sin((t - peak) / WINDOWS * 2 * pi) for t in range(WINDOWS)], dtype=np.float64
    )
    noise = np.exp(0.1 * chance.standard_normal((days, WINDOWS)))
    traffic: Floats = np.rint(TRAFFIC * shape / shape.sum() * noise)
    budget = np.exp(chance.uniform(np.log(2000), np.log(4800), seats))
    target = chance.uniform(60, 130, seats)
    spread = chance.uniform(SPREAD_MIN, SPREAD_MAX, (1, seats, 1, 1))
    swings = chance.normal(0, HOUR_SWING, (days, seats, WINDOWS // BLOCK)).repeat(BLOCK, axis=2)
    level = (chance.normal(LEVEL, DAY_SWING, (days, seats, 1)) + swings)[..., None]
    worth = (
        (budget / target)[None, :, None] * chance.uniform(WORTH_MIN, WORTH_MAX, (days, seats, 1)) / TRAFFIC
    )
    whole: Floats = (worth * traffic[:, None, :])[..., None]
    at: Floats = (np.log(multipliers) - level) / spread
    part = _compute_normal(at)
    cost: Floats = (
        target[None, :, None, None] * whole * np.exp(level + spread**2 / 2) * _compute_normal(at - spread)
    )
    won: Floats = 0.2 * traffic[:, None, :, None] * part
    tables: dict[str, npt.NDArray[Any]] = {
        "days": np.arange(days),
        "train_days": np.arange(train),
        "tuning_days": np.arange(train, days),
        "multipliers": multipliers,
        "opportunities": traffic,
        "budget": budget,
        "target": target,
        "value": whole * part,
        "cost": cost,
        "won": won,
        "shown": 0.8 * won,
    }
    return tables | {"best_score": find_best_scores(tables)}


def generate_days(*, days: int, seats: int, seed: int) -> MarketDays:
    every = np.arange(days)
    return build_market_days(generate_tables(days=days, seats=seats, seed=seed, train=days), every, every)


def find_best_scores(tables: dict[str, npt.NDArray[Any]]) -> Floats:
    """Return by day and seat what the best of the tables' multipliers scores, kept all day."""
    spent = tables["cost"].cumsum(axis=2)
    left = tables["budget"][None, :, None, None] - (spent - tables["cost"])
    fits = np.clip(left / np.maximum(tables["cost"], 1e-9), 0.0, 1.0)
    value, cost = (fits * tables["value"]).sum(axis=2), (fits * tables["cost"]).sum(axis=2)
    ratio = np.minimum(1.0, tables["target"][None, :, None] * value / np.maximum(cost, 1e-9))
    return (value * ratio**2).max(axis=2)


def _compute_normal(at: Floats) -> Floats:
    """Return the share of a normal distribution below each value."""
    return 0.5 * (1.0 + np.array([erf(one / sqrt(2.0)) for one in at.ravel().tolist()]).reshape(at.shape))
