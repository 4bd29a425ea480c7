"""Click rates as Beta distributions: the range in which a rate lies, and how probable it is that it is the highest.

Before anything is seen every rate is as probable as any other: a rate with so many clicks of so many impressions is
then distributed as `Beta(1 + clicks, 1 + misses)`. Both answers are integrals, computed on a grid: no chance is needed.
"""

# pure

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

IMPRESSIONS_MIN: Final = 100  # A banner that was shown less often says nothing yet.
POINTS_MAX: Final = 400  # Of each rate; more change no answer by a thousandth.
GRID_MAX: Final = 1_000  # Of all together.
WIDTH: Final = 8.0  # In standard deviations to both sides: beyond there is nothing.
OUTSIDE: Final = 0.025  # On each side of a range.
RATES_MAX: Final = 10


class RateResult(NamedTuple):
    """The range in which a click rate lies with 95 %, and how probable it is that it is the highest of all."""

    low: float
    high: float
    best: float


class _Beta(NamedTuple):
    hits: float
    misses: float
    constant: float


def compare_rates(counts: Sequence[tuple[int, int]]) -> list[RateResult]:
    """Compare up to `RATES_MAX` rates, given as impressions and clicks."""
    assert len(counts) <= RATES_MAX
    if not counts:
        return []
    rates = [_build(impressions, clicks) for impressions, clicks in counts]
    points = min(POINTS_MAX, GRID_MAX // len(rates))
    placed = [_place_points(rate, points) for rate in rates]
    grid = sorted({point for one in placed for point in one})
    # A rate has no weight where only others have points: between two far points one density would count for all.
    widths = [_measure_steps(grid, one[0], one[-1]) for one in placed]
    densities = [[_compute_density(rate, point) for point in grid] for rate in rates]
    below = [_cumulate(*one) for one in zip(widths, densities, strict=True)]
    chances = [
        _integrate_best(widths[number], densities[number], [*below[:number], *below[number + 1 :]])
        for number in range(len(rates))
    ]
    whole = sum(chances)
    return [
        RateResult(_find_quantile(grid, one, OUTSIDE), _find_quantile(grid, one, 1.0 - OUTSIDE), best / whole)
        for one, best in zip(below, chances, strict=True)
    ]


def _build(impressions: int, clicks: int) -> _Beta:
    # A late click may make more clicks than impressions.
    hits, misses = 1.0 + clicks, 1.0 + max(impressions - clicks, 0)
    return _Beta(hits, misses, math.lgamma(hits + misses) - math.lgamma(hits) - math.lgamma(misses))


def _place_points(rate: _Beta, points: int) -> list[float]:
    total = rate.hits + rate.misses
    mean = rate.hits / total
    spread = WIDTH * math.sqrt(mean * (1.0 - mean) / (total + 1.0))
    low, high = max(0.0, mean - spread), min(1.0, mean + spread)
    return [low + (high - low) * number / points for number in range(points + 1)]


def _compute_density(rate: _Beta, point: float) -> float:
    hits, misses, constant = rate
    if (point <= 0.0 and hits > 1.0) or (point >= 1.0 and misses > 1.0):
        return 0.0
    logarithm = constant
    logarithm += (hits - 1.0) * math.log(point) if hits > 1.0 else 0.0
    logarithm += (misses - 1.0) * math.log1p(-point) if misses > 1.0 else 0.0
    return math.exp(logarithm)


def _measure_steps(grid: Sequence[float], low: float, high: float) -> list[float]:
    """Return the width of each step of a grid, 0 outside of a range."""
    return [right - left if low <= left and right <= high else 0.0 for left, right in pairwise(grid)]


def _cumulate(widths: Sequence[float], density: Sequence[float]) -> list[float]:
    """Return how probable it is that a rate is below each point."""
    sums = [0.0]
    for width, (before, after) in zip(widths, pairwise(density), strict=True):
        sums.append(sums[-1] + width * (before + after) / 2.0)
    return [one / sums[-1] for one in sums]


def _integrate_best(
    widths: Sequence[float], densities: Sequence[float], others: Sequence[Sequence[float]]
) -> float:
    """Return how probable it is that a rate has a value and all others are below it, over all values."""
    values = [density * math.prod(one[place] for one in others) for place, density in enumerate(densities)]
    steps = zip(widths, pairwise(values), strict=True)
    return sum(width * (before + after) / 2.0 for width, (before, after) in steps)


def _find_quantile(grid: Sequence[float], below: Sequence[float], share: float) -> float:
    place = next(number for number, one in enumerate(below) if one >= share)
    if place == 0:
        return grid[0]
    step = below[place] - below[place - 1]
    part = (share - below[place - 1]) / step if step else 0.0
    return grid[place - 1] + part * (grid[place] - grid[place - 1])


class BannerResult(msgspec.Struct, frozen=True, kw_only=True):
    """How often a banner was seen and clicked; the others are None where it is not compared."""

    banner_id: UUID
    impressions: int
    clicks: int
    ctr_low: float | None = None
    ctr_high: float | None = None
    best_chance: float | None = None

    @property
    def ctr(self) -> float:
        return self.clicks / self.impressions if self.impressions else 0.0


def compare_banners(counted: Sequence[BannerResult]) -> list[BannerResult]:
    """Compare the banners with most impressions; the one that leads comes first, those not compared last."""
    ordered = sorted(counted, key=lambda one: (-one.impressions, one.banner_id))
    compared = [one for one in ordered if one.impressions >= IMPRESSIONS_MIN][:RATES_MAX]
    rates = compare_rates([(one.impressions, one.clicks) for one in compared])
    results = [
        msgspec.structs.replace(one, ctr_low=rate.low, ctr_high=rate.high, best_chance=rate.best)
        for one, rate in zip(compared, rates, strict=True)
    ]
    results.sort(key=lambda one: (-(one.best_chance or 0.0), one.banner_id))
    return results + [one for one in ordered if one not in compared]


def find_leader(results: Sequence[BannerResult]) -> BannerResult | None:
    """Return the banner that leads, where at least two are compared."""
    compared = [one for one in results if one.best_chance is not None]
    return compared[0] if len(compared) > 1 else None
