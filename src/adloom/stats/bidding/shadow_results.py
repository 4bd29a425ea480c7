"""What each window of a day has brought, and what it would have brought at the multipliers of other strategies.

Impressions and prices rise with the bid as the campaign's own windows show it: where cost rises like the power p of the
multiplier, impressions rise like p - 1, and what one of them costs like the multiplier itself. Strategies that are not
in charge get what the one in charge has brought, so each window is a question of its own.
"""

# pure

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import Final, TypedDict, Unpack

import msgspec

from adloom.bidding.pacer import POWER_MAX, POWER_MIN, CostRise
from adloom.bidding.window import BidStrategy
from adloom.budgets.bid_model import BidRow

MULTIPLIER_MIN: Final = 0.01  # As of bids.
DEVIATIONS: Final = 1.645  # On both sides: 90 % of chances.


class WindowResults(msgspec.Struct, frozen=True):
    """What ads brought in a window; spent is in micros. What is estimated has parts of an impression."""

    spent: float
    impressions: float
    clicks: float
    conversions: float

    def scale(self, shown: float, spent: float) -> "WindowResults":
        return WindowResults(
            self.spent * spent, self.impressions * shown, self.clicks * shown, self.conversions * shown
        )

    def __add__(self, other: "WindowResults") -> "WindowResults":
        return WindowResults(
            self.spent + other.spent,
            self.impressions + other.impressions,
            self.clicks + other.clicks,
            self.conversions + other.conversions,
        )


class EstimateBounds(TypedDict):
    """What no strategy can exceed: the daily budget, and the day's opportunities."""

    daily_budget: int | None
    opportunities: float


NO_RESULTS: Final = WindowResults(0.0, 0.0, 0.0, 0.0)


class DecidedWindow(msgspec.Struct, frozen=True):
    """What a window brought, and what it would have brought by others; None while it lasts, or where nothing says it."""

    actual: WindowResults | None
    shadows: Mapping[BidStrategy, WindowResults | None]


class StrategyTotal(msgspec.Struct, frozen=True):
    """The windows of a day for which it is known what a strategy brought, or would have brought."""

    windows: int
    results: WindowResults


class ResultRange(msgspec.Struct, frozen=True):
    """Between what the sum of estimates lies, with at least 90 % of chances."""

    low: WindowResults
    high: WindowResults


def estimate_windows(
    rows: Sequence[BidRow], rise: CostRise, **bounds: Unpack[EstimateBounds]
) -> list[DecidedWindow]:
    """Estimate for each decision of a day, in order."""
    daily_budget, opportunities = bounds["daily_budget"], bounds["opportunities"]
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
                totals[strategy] = StrategyTotal(known.windows + 1, known.results + results)
    return totals


def find_ranges(
    rows: Sequence[BidRow], rise: CostRise, **bounds: Unpack[EstimateBounds]
) -> dict[BidStrategy, ResultRange]:
    """Return the ranges of totals that are estimated.

    They may be wrong in two ways: delivery may rise with the bid less or more than the campaign's own windows show, and
    what would have been won or lost beside what was is a matter of chance.
    """
    powers = [
        min(POWER_MAX, max(POWER_MIN, rise.power + side * DEVIATIONS * rise.error)) for side in (-1, 0, 1)
    ]
    less, windows, more = (estimate_windows(rows, CostRise(power), **bounds) for power in powers)
    totals, daily_budget = sum_up(rows, windows), bounds["daily_budget"]
    left = float("inf") if daily_budget is None or not rows else max(0.0, daily_budget - rows[0].spent)
    ranges: dict[BidStrategy, ResultRange] = {}
    for strategy, total in totals.items():
        estimated = [
            (window.actual, one.shadows.get(strategy), found, other.shadows.get(strategy))
            for one, window, other in zip(less, windows, more, strict=True)
            if (found := window.shadows.get(strategy)) is not None
        ]
        if estimated:
            low, high = _find_range(total.results, estimated)
            spent = max(total.results.spent, min(high.spent, left))
            ranges[strategy] = ResultRange(low, msgspec.structs.replace(high, spent=spent))
    return ranges


def _find_range(
    total: WindowResults, estimated: Sequence[tuple[WindowResults | None, ...]]
) -> tuple[WindowResults, WindowResults]:
    """Return the ends of a total; each of `estimated` is what was counted, and the estimates by less, by it, and by more.

    Where one window is taken up and another down, errors would cancel out if the market followed a power: it does not,
    so they are added up.
    """
    below, above, squares = [0.0] * 4, [0.0] * 4, [0.0] * 4
    for window in estimated:
        actual, less, middle, more = (NO_RESULTS if one is None else one for one in window)
        part = middle.impressions / actual.impressions if actual.impressions else 1.0
        cost = middle.spent / middle.impressions if middle.impressions else 0.0
        # Of n that were won, this part would have been won too, or as many times n.
        chance = part * abs(1.0 - part)
        counted = (cost * cost * actual.impressions, actual.impressions, actual.clicks, actual.conversions)
        columns = zip(*map(msgspec.structs.astuple, (less, middle, more)), strict=True)
        for number, (one, value, other) in enumerate(columns):
            below[number] += value - min(one, value, other)
            above[number] += max(one, value, other) - value
            squares[number] += DEVIATIONS**2 * counted[number] * chance
    values = msgspec.structs.astuple(total)
    low = [max(0.0, value - sqrt(below[n] ** 2 + squares[n])) for n, value in enumerate(values)]
    high = [value + sqrt(above[n] ** 2 + squares[n]) for n, value in enumerate(values)]
    return WindowResults(*low), WindowResults(*high)


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
    return actual.scale(shown, shown * ratio ** min(1.0, power))


def _limit(results: WindowResults, left: float) -> WindowResults:
    """Spend no more than what is left of the budget."""
    if results.spent <= left:
        return results
    part = left / results.spent
    return results.scale(part, part)
