"""Builds the tables of market days out of auctions that were held: what each multiplier would have won and paid."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from adloom.bidding.features import TARGET
from adloom.bidding.training.generated import find_best_scores
from adloom.bidding.training.market_days import WINDOWS

MULTIPLIER_MIN, MULTIPLIER_MAX, MULTIPLIERS = 0.05, 10.0, 64


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
    steps: npt.NDArray[np.float64] = np.linspace(
        math.log(MULTIPLIER_MIN), math.log(MULTIPLIER_MAX), MULTIPLIERS
    )
    shape = (days, len(budgets), WINDOWS, MULTIPLIERS)
    value, cost, won = (np.zeros(shape, dtype=np.float64) for _ in range(3))
    traffic = np.zeros((days, WINDOWS), dtype=np.float64)
    for one in opportunities:
        traffic[one.day, one.window] += one.weight / len(budgets)
        first = int(np.searchsorted(steps, math.log(max(one.needed, MULTIPLIER_MIN))))
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
