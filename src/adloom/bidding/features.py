"""What the nets see of a campaign: its own counters, as ratios; nothing in them says which campaign it is."""

from math import log
from typing import Final

import msgspec

from adloom.bidding.state import BidState
from adloom.bidding.window import BidWindow

SLOW: Final = 0.12
EPSILON: Final = 0.001
ROOM: Final = 0.02
CENT: Final = 0.01
CONVERSIONS: Final = 30.0  # The fleet's median budget buys so many at the target,
TARGET: Final = 95.0  # and this is its median target.
# A target so many times that, or a fraction of it, is in a currency that we do not know.
TARGET_RANGE: Final = 4.0
SHARE_MIN: Final = 1e-4
INPUTS: Final = 8  # Of `dqn`.
IMPRESSIONS: Final = 100.0


def observe_window(state: BidState, window: BidWindow) -> BidState:
    """Add the window that has ended to the day's slow averages and traffic."""
    spend, value = log_paces(state, window)
    return msgspec.structs.replace(
        state,
        traffic=state.traffic + window.opportunities,
        slow_spend=state.slow_spend + SLOW * (spend - state.slow_spend),
        slow_value=state.slow_value + SLOW * (value - state.slow_value),
    )


def log_paces(state: BidState, window: BidWindow) -> tuple[float, float]:
    """Ln of the last window's spend, and of its value at the target, over its part of the budget."""
    pace = window.budget * max(SHARE_MIN, state.share or window.traffic_share)
    worth = window.window_value * (window.target or 0.0)
    return log(EPSILON + window.window_cost / pace), log(EPSILON + worth / pace)


def build_features(state: BidState, window: BidWindow, *, money_scale: float = 1.0) -> list[float]:
    """Compute the 18 features of `fleet` for a window that begins; `state` has observed the one before."""
    target, budget = window.target or 0.0, window.budget
    time = min(1.0, window.window / window.windows)
    is_first = window.window == 0 or state.window < 0
    remaining = min(1.0, max(0.0, window.remaining / budget))
    left = state.compute_left(window)
    spend, value = (0.0, 0.0) if is_first else log_paces(state, window)
    last = 0.0 if is_first else log(window.last_multiplier or state.multiplier or 1.0)
    scaled_target = target / money_scale / TARGET
    return [
        time,
        remaining,
        log((remaining + CENT) / (left + CENT)),
        log((window.cost + ROOM * budget) / (target * window.value + ROOM * budget)),
        window.value * target / budget,
        last,
        spend,
        value,
        0.0 if is_first or window.opportunities <= 0 else min(1.0, window.wins / window.opportunities),
        0.0 if is_first else _measure_surprise(state, window, left),
        state.slow_spend,
        state.slow_value,
        log(budget / target / CONVERSIONS),
        log(scaled_target) if 1 / TARGET_RANGE <= scaled_target <= TARGET_RANGE else 0.0,
        left,
        float(window.window == 0),
        (24 * window.window // window.windows) / 24,
        1.0 - time,
    ]


def _measure_surprise(state: BidState, window: BidWindow, left: float) -> float:
    """Ln of the last window's opportunities over what the day so far, by its shape, lets one expect."""
    passed = 1.0 - left
    if passed <= 0 or window.opportunities <= 0 or state.traffic <= 0:
        return 0.0
    expected = state.traffic / passed * max(SHARE_MIN, state.share or window.traffic_share)
    return log(window.opportunities / expected)


def build_dqn_state(state: BidState, window: BidWindow) -> list[float]:
    """Compute the eight numbers of `dqn`; the spend rate follows the traffic shape, as the pacing does."""
    is_first = window.window == 0 or state.window < 0
    wins = 0.0 if is_first else window.wins
    value = 0.0 if is_first else window.window_value
    left = state.compute_left(window)
    planned = window.budget * (1.0 - left)
    return [
        min(2.0, state.chosen if window.last_multiplier is None or is_first else window.last_multiplier),
        min(1.0, value / wins) if wins > 0 else 0.0,
        min(1.0, wins / window.opportunities) if window.opportunities > 0 and not is_first else 0.5,
        min(1.0, max(0.0, window.remaining / window.budget)),
        min(1.0, max(0.0, 1.0 - window.window / window.windows)),
        min(3.0, window.cost / planned) if planned > 0 and not is_first else 1.0,
        min(2.0, wins / IMPRESSIONS),
        min(2.0, window.window_cost / value / (window.target or 1.0)) if value > 0 else 0.0,
    ]
