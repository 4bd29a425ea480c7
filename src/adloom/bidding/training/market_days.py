"""Market days: what a seat would have won and paid in each window at each of many multipliers.

They are recorded, generated, or built out of auctions that were held. Generated ones are unlike the recorded market in
clock, steepness and swings: what is needed to win is log-normal, by seat and hour. Part of the training is on them, so
that the net does not take one market's habits for laws; tests play them too.
"""

from collections.abc import Mapping, Sequence
from math import erf, log, pi, sin, sqrt
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from adloom.bidding.features import TARGET

WINDOWS: Final = 96
BLOCK: Final = 16  # The recorded generator draws value levels anew every 16 windows.
TABLES: Final = ("value", "cost", "won", "shown")
MULTIPLIER_MIN, MULTIPLIER_MAX, MULTIPLIERS = 0.05, 10.0, 64
TRAFFIC: Final = 50_000
SPREAD_MIN, SPREAD_MAX = 0.35, 1.1  # Of ln(what is needed to win): how steeply more is won by bidding more.
# Of the same, on average, from day to day and from block to block.
LEVEL, DAY_SWING, HOUR_SWING = -0.1, 0.35, 0.15
WORTH_MIN, WORTH_MAX = 1.0, 4.0  # How many times the budget all of the day's traffic is worth.

Array = npt.NDArray[np.floating[Any]]
Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]


class MarketDays(msgspec.Struct, frozen=True, kw_only=True):
    """Tables by day, seat, window and multiplier; as cube roots, between which one interpolates in ln m."""

    log_multipliers: npt.NDArray[np.float64]
    roots: (
        Array  # A row for each window, day, seat and multiplier, in this order; a column for each of TABLES.
    )
    opportunities: Array  # By day and window.
    budget: Array
    target: Array
    best_score: npt.NDArray[np.float64]  # By day and seat: the best constant multiplier in hindsight.
    shape: Array  # Share of the day's traffic by window, the mean of the days trained on.

    @property
    def seats(self) -> int:
        return len(self.budget)

    @property
    def days(self) -> int:
        return len(self.opportunities)

    def interpolate(
        self, windows: Indexes, days: Indexes, seats: Indexes, log_m: Array
    ) -> tuple[Array, Array]:
        """Return the tables' values at ln m and their slopes, a row for each window, day and seat."""
        grid = self.log_multipliers
        width, last = float(grid[1] - grid[0]), len(grid) - 1
        at = (log_m - np.float32(grid[0])) / np.float32(width)
        index = np.clip(at.astype(np.int64), 0, last - 1)
        part = np.clip(at - index, 0.0, 1.0).astype(np.float32)[:, None]
        row = ((windows * self.days + days) * self.seats + seats) * (last + 1) + index
        below = self.roots.take(row, axis=0)
        rise = self.roots.take(row + 1, axis=0) - below
        middle = below + part * rise
        square = middle * middle
        is_positive = (at >= 0.0)[:, None]  # Below the lowest multiplier nothing is won.
        is_inside = is_positive & (at <= last)[:, None]
        return square * middle * is_positive, square * rise * (is_inside * np.float32(3.0 / width))


def build_market_days(
    tables: Mapping[str, npt.NDArray[Any]], days: Indexes, shaped_by: Indexes
) -> MarketDays:
    """Take days (by index) out of the tables of an archive; the traffic shape is that of `shaped_by`."""
    traffic = tables["opportunities"][shaped_by].astype(np.float64)
    shares = (traffic / traffic.sum(axis=1, keepdims=True)).mean(axis=0)
    by_window = [tables[name][days].transpose(2, 0, 1, 3).astype(np.float32) for name in TABLES]
    return MarketDays(
        log_multipliers=np.log(tables["multipliers"].astype(np.float64)),
        roots=np.cbrt(np.stack(by_window, axis=-1)).reshape(-1, len(TABLES)),
        opportunities=tables["opportunities"][days].astype(np.float32),
        budget=tables["budget"].astype(np.float32),
        target=tables["target"].astype(np.float32),
        best_score=tables["best_score"][days].astype(np.float64),
        shape=shares.astype(np.float32),
    )


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


class Opportunity(msgspec.Struct, frozen=True):
    """An auction as one campaign met it: which multiplier would just have won, at what cost, and what that is worth."""

    day: int
    window: int
    seat: int
    needed: float
    cost: float  # Expected, of an impression at that multiplier: a second price.
    value: float  # The predicted conversions of an impression, or its clicks where there are none.
    weight: float = 1.0  # How many auctions it represents.


def build_tables(
    opportunities: Sequence[Opportunity],
    budgets: Sequence[float],
    targets: Sequence[float],
    *,
    days: int,
    held_out: int,
) -> dict[str, npt.NDArray[Any]]:
    """Build the tables of an archive; the last days are held out. Money is scaled as the shipped net's was."""
    scale = float(np.median(targets)) / TARGET
    steps: npt.NDArray[np.float64] = np.linspace(log(MULTIPLIER_MIN), log(MULTIPLIER_MAX), MULTIPLIERS)
    shape = (days, len(budgets), WINDOWS, MULTIPLIERS)
    value, cost, won = (np.zeros(shape, dtype=np.float64) for _ in range(3))
    traffic = np.zeros((days, WINDOWS), dtype=np.float64)
    for one in opportunities:
        traffic[one.day, one.window] += one.weight / len(budgets)
        first = int(np.searchsorted(steps, log(max(one.needed, MULTIPLIER_MIN))))
        place = (one.day, one.seat, one.window, slice(first, None))
        value[place] += one.weight * one.value
        cost[place] += one.weight * one.cost / scale
        won[place] += one.weight
    tables: dict[str, npt.NDArray[Any]] = {
        "days": np.arange(days),
        "train_days": np.arange(days - held_out),
        "tuning_days": np.arange(days - held_out, days),
        "multipliers": np.exp(steps),
        "opportunities": np.maximum(traffic, 1e-3),  # A window without any: its share must not be 0.
        "budget": np.array(budgets, dtype=np.float64) / scale,
        "target": np.array(targets, dtype=np.float64) / scale,
        "value": value,
        "cost": cost,
        "won": won,
        "shown": won,
    }
    return tables | {"best_score": find_best_scores(tables)}
