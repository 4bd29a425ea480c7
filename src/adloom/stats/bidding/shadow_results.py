"""What each window of a day has brought, and what it would have brought at the multipliers of other strategies.

Impressions and prices rise with the bid as the campaign's own windows show it: where cost rises like the power p of the
multiplier, impressions rise like p - 1, and what one of them costs like the multiplier itself. Strategies that are not
in charge are told what the one in charge has brought, so each window is a question of its own.
"""

# pure

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from adloom.bidding.pacer import CostRise
from adloom.bidding.window import BidStrategy
from adloom.budgets.bid_model import BidRow

MULTIPLIER_MIN: Final = 0.01  # As of bids.


class WindowResults(msgspec.Struct, frozen=True):
    """What ads brought in a window; spent is in micros. What is estimated has parts of an impression."""

    spent: float
    impressions: float
    clicks: float
    conversions: float

    def times(self, shown: float, spent: float) -> "WindowResults":
        return WindowResults(
            self.spent * spent, self.impressions * shown, self.clicks * shown, self.conversions * shown
        )

    def plus(self, other: "WindowResults") -> "WindowResults":
        return WindowResults(
            self.spent + other.spent,
            self.impressions + other.impressions,
            self.clicks + other.clicks,
            self.conversions + other.conversions,
        )


NO_RESULTS: Final = WindowResults(0.0, 0.0, 0.0, 0.0)


class DecidedWindow(msgspec.Struct, frozen=True):
    """What a window brought, and what it would have brought by others; None while it lasts, or where nothing says it."""

    actual: WindowResults | None
    shadows: Mapping[BidStrategy, WindowResults | None]


class StrategyTotal(msgspec.Struct, frozen=True):
    """The windows of a day for which it is known what a strategy brought, or would have brought."""

    windows: int
    results: WindowResults


def estimate_windows(
    rows: Sequence[BidRow], rise: CostRise, *, daily_budget: int | None, opportunities: float
) -> list[DecidedWindow]:
    """Estimate for each decision of a day, in order; `opportunities` are the day's, and no strategy wins more."""
    shown = rows[-1].impressions - rows[0].impressions if rows else 0
    most = max(1.0, opportunities / shown) if shown > 0 and opportunities > 0 else 1.0
    windows: list[DecidedWindow] = []
    spent: dict[BidStrategy, float] = {}
    for row, after in pairwise(rows):
        actual = _subtract(after, row)
        shadows: dict[BidStrategy, WindowResults | None] = {}
        for strategy, decision in row.shadows.items():
            found = _estimate(actual, row.multiplier, decision.multiplier, rise.power, most)
            if found is not None and daily_budget is not None:
                left = max(0.0, daily_budget - rows[0].spent - spent.get(strategy, 0.0))
                found = _limit(found, left)
            if found is not None:
                spent[strategy] = spent.get(strategy, 0.0) + found.spent
            shadows[strategy] = found
        windows.append(DecidedWindow(actual, shadows))
    if rows:
        windows.append(DecidedWindow(None, dict.fromkeys(rows[-1].shadows)))
    return windows


def sum_up(rows: Sequence[BidRow], windows: Sequence[DecidedWindow]) -> dict[BidStrategy, StrategyTotal]:
    """Add up the windows of each strategy: those in which it was in charge, and those in which it was not."""
    totals: dict[BidStrategy, StrategyTotal] = {}
    for row, window in zip(rows, windows, strict=True):
        for strategy, results in ((row.strategy, window.actual), *window.shadows.items()):
            if results is not None:
                known = totals.get(strategy, StrategyTotal(0, NO_RESULTS))
                totals[strategy] = StrategyTotal(known.windows + 1, known.results.plus(results))
    return totals


def _subtract(after: BidRow, before: BidRow) -> WindowResults:
    """Return what came between two decisions, at least nothing: refunds and invalid events are taken back later."""
    return WindowResults(
        float(max(0, after.spent - before.spent)),
        float(max(0, after.impressions - before.impressions)),
        float(max(0, after.clicks - before.clicks)),
        float(max(0, after.conversions - before.conversions)),
    )


def _estimate(
    actual: WindowResults, used: float, wanted: float, power: float, most: float
) -> WindowResults | None:
    """Estimate a window at another multiplier; a window without impressions does not say what more would bring."""
    other = max(MULTIPLIER_MIN, min(1.0, wanted)) if wanted > 0 else MULTIPLIER_MIN  # NaN is not more.
    ratio = other / max(MULTIPLIER_MIN, used)
    if not actual.impressions and ratio > 1:
        return None
    shown = min(ratio ** max(0.0, power - 1.0), max(1.0, most))
    return actual.times(shown, shown * ratio ** min(1.0, power))


def _limit(results: WindowResults, left: float) -> WindowResults:
    """Spend no more than what is left of the budget."""
    if results.spent <= left:
        return results
    part = left / results.spent
    return results.times(part, part)
