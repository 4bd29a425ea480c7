"""The guard: how high a campaign with a target may bid, so that no strategy needs to be trusted.

Under second prices a multiplier of at most 1 pays at most the target in expectation. More is allowed only out of what
the day has saved so far, and out of what the advertiser tolerates.
"""

from typing import Final

SHARE: Final = 0.3  # Of the slack, at most so much is put at risk in one window.
# A campaign that wins nearly nothing at 1 would win far more at 3, at a far worse price: what it brought so far says
# nothing about that. So a window counts as bringing at least so much of the budget's pace.
PACE_MIN: Final = 0.5


def compute_slack(target: float, value: float, cost: float, *, tolerance: float, budget: float) -> float:
    return max(0.0, target * value - cost) + tolerance * budget


def compute_limit(slack: float, expected: float) -> float:
    """Compute the limit; `expected` is what the window should bring, times the target, 0 if that is not known."""
    return 1.0 + SHARE * slack / expected if expected > 0 else 1.0


def expect_window(*, target: float, value: float, budget: float, share: float, passed: float) -> float:
    """Estimate what the window brings, in money at the target: the day's rate so far, at least some pace."""
    if passed <= 0:
        return 0.0
    return max(target * value / passed, PACE_MIN * budget) * share
