"""A day of bidding on recorded tables: what a window brings, features by rows, and the guard, with their slopes."""

from typing import Final, Self

import msgspec
import numpy as np
import numpy.typing as npt

from adloom.bidding import guard
from adloom.bidding.network import FEATURES, UNITS, Array
from adloom.bidding.training.batch import SeatDays
from adloom.bidding.training.market_days import WINDOWS, MarketDays

SLOW: Final = np.float32(0.12)
EPSILON: Final = np.float32(0.001)
ROOM: Final = np.float32(0.02)
CENT: Final = np.float32(0.01)


class Carried(msgspec.Struct, kw_only=True):
    """What goes from one window of rows to the next; its gradients go back the same way."""

    cost: Array
    value: Array
    window_cost: Array
    window_value: Array
    wins: Array  # Share of the last window's opportunities.
    last: Array  # ln m.
    slow_spend: Array
    slow_value: Array
    state: Array

    @classmethod
    def start(cls, count: int) -> Self:
        zero = dict.fromkeys(cls.__struct_fields__, np.zeros(count, dtype=np.float32))
        return cls(**zero | {"state": np.zeros((count, UNITS), dtype=np.float32)})


class DayProgress(Carried, kw_only=True):
    """Where rows stand at the start of a window."""

    traffic: Array  # Opportunities so far.
    surprise: Array  # ln(opportunities / expected) of the last window.


class WindowOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What rows won and paid in a window, and how that moves with ln m."""

    cost: Array
    value: Array
    wins: Array
    full_cost: Array  # Had the budget been enough.
    full_value: Array
    cost_slope: Array
    value_slope: Array
    win_slope: Array
    is_capped: npt.NDArray[np.bool_]


def bid_window(days: MarketDays, rows: SeatDays, t: int, log_m: Array, spent: Array) -> WindowOutcome:
    day, at = rows.day[:, t], rows.at[:, t]
    found, slopes = days.interpolate(at, day, rows.seat, log_m + rows.log_shift)
    value, cost = found[:, 0], found[:, 1] * rows.price
    per_traffic = rows.win_scale / days.opportunities[day, at]
    left = rows.budget - spent
    is_capped = cost > left
    fits = np.where(is_capped, left / np.maximum(cost, np.float32(1e-9)), np.float32(1.0))
    return WindowOutcome(
        cost=fits * cost,
        value=fits * value,
        wins=np.where(rows.counts_shown, found[:, 3], found[:, 2]) * per_traffic,
        full_cost=cost,
        full_value=value,
        cost_slope=slopes[:, 1] * rows.price,
        value_slope=slopes[:, 0],
        win_slope=np.where(rows.counts_shown, slopes[:, 3], slopes[:, 2]) * per_traffic,
        is_capped=is_capped,
    )


def advance(  # noqa: PLR0913, PLR0917 - a window: where, when, from what, and what came
    days: MarketDays, rows: SeatDays, t: int, now: DayProgress, outcome: WindowOutcome, log_m: Array
) -> None:
    """Bring the standing to the start of window t + 1."""
    now.cost, now.value = now.cost + outcome.cost, now.value + outcome.value
    now.window_cost, now.window_value = outcome.cost, outcome.value
    now.wins, now.last = outcome.wins, log_m
    pace = rows.budget * rows.share[:, t]
    spend = np.log(EPSILON + outcome.cost / pace)
    gain = np.log(EPSILON + outcome.value * rows.target / pace)
    now.slow_spend = now.slow_spend + SLOW * (spend - now.slow_spend)
    now.slow_value = now.slow_value + SLOW * (gain - now.slow_value)
    traffic = days.opportunities[rows.day[:, t], rows.at[:, t]]
    now.traffic = now.traffic + traffic
    passed = 1.0 - rows.left[:, t] + rows.share[:, t]
    now.surprise = np.log(traffic / (now.traffic / passed * rows.share[:, t])).astype(np.float32)


def build_features(rows: SeatDays, t: int, now: DayProgress) -> Array:
    """Build the features of `adloom.bidding.features`, for rows."""
    share_left, budget, target = rows.left[:, t], rows.budget, rows.target
    remaining = (budget - now.cost) / budget
    pace = budget * rows.share[:, t - 1]
    features = np.zeros((len(rows), FEATURES), dtype=np.float32)
    features[:, 0] = t / WINDOWS
    features[:, 1] = remaining
    features[:, 2] = np.log((remaining + CENT) / (share_left + CENT))
    features[:, 3] = np.log((now.cost + ROOM * budget) / (target * now.value + ROOM * budget))
    features[:, 4] = now.value * target / budget
    features[:, 5] = now.last
    if t:
        features[:, 6] = np.log(EPSILON + now.window_cost / pace)
        features[:, 7] = np.log(EPSILON + now.window_value * target / pace)
    features[:, 8] = now.wins
    features[:, 9] = now.surprise
    features[:, 10] = now.slow_spend
    features[:, 11] = now.slow_value
    features[:, 12] = np.log(budget / target / 30.0)
    features[:, 13] = rows.target_feature
    features[:, 14] = share_left
    features[:, 15] = t == 0
    features[:, 16] = (24 * t // WINDOWS) / 24
    features[:, 17] = 1.0 - t / WINDOWS
    return features


def log_guard(rows: SeatDays, t: int, now: DayProgress) -> Array:
    """Ln of the highest multiplier that the guard allows; see `adloom.bidding.guard`."""
    if t == 0:
        return np.zeros(len(rows), dtype=np.float32)
    slack = np.maximum(0.0, rows.target * now.value - now.cost)
    passed = 1.0 - rows.left[:, t]
    expected = np.maximum(rows.target * now.value / passed, guard.PACE_MIN * rows.budget) * rows.share[:, t]
    limit = 1.0 + guard.SHARE * slack / expected
    return np.log(limit).astype(np.float32)


def score_days(value: Array, cost: Array, target: Array) -> Array:
    """Value, less where the cost per conversion is over the target: times (target / CPA)² there."""
    ratio = target * value / np.maximum(cost, np.float32(1e-9))
    return value * np.minimum(np.float32(1.0), ratio * ratio)
