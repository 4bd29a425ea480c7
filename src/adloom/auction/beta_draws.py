"""Draws from Beta distributions in a fraction of the time of `betavariate`: what does not change is computed once.

A Beta draw is `x / (x + y)` with two Gamma draws, by the method of Marsaglia and Tsang. Its normal draws come from a
table of quantiles, which is exact enough: shares of winners cannot be told apart in a hundred thousand draws. One
random number has bits enough for the normal draw and for its test.

Where misses are many, as nearly always, one Gamma draw does: `-log(1 - share) * (beta + (alpha - 1) / 2)` is
distributed as the hits are, but for the square of `1 / beta`. `1 - exp(-x)` is computed as a fraction.
"""

import math
from collections.abc import Callable, Iterable
from statistics import NormalDist
from typing import Final, NamedTuple

QUANTILES: Final = 4_096  # Uses 12 of the 53 random bits of a draw.
_QUANTILES: Final = float(QUANTILES)  # A product of two floats is faster.
MISSES_MIN: Final = 100.0  # For the draw of one Gamma,
SHARE_MAX: Final = 0.05  # and so many hits at most for each of them.
_TWELFTH: Final = 1.0 / 12.0
_normal: Final = tuple(NormalDist().inv_cdf((place + 0.5) / QUANTILES) for place in range(QUANTILES))
# Of the method: beyond this bound no logarithm is needed, 19 times of 20. Each has its place added, as the draw has.
_bounds: Final = tuple(place + 0.0331 * z**4 for place, z in enumerate(_normal))


class GammaShape(NamedTuple):
    """The constants of the method; `boost` is for a parameter below 1, and 0 for others."""

    d: float
    c: float
    boost: float


# A Beta distribution, ready to be drawn from: the scale of the hits' draw, their shape, and that of the misses. Without
# one, the scale has them. Plain tuples are unpacked faster than named ones.
BetaShape = tuple[float, float, float, float, GammaShape | None]
ReadyDraw = tuple[float, float, float, float, float, GammaShape | None]  # A weight before that.


def prepare_beta(alpha: float, beta: float) -> BetaShape:
    """Prepare draws; both parameters are positive."""
    d, c, boost = _prepare_gamma(alpha)
    if beta < MISSES_MIN or alpha > beta * SHARE_MAX:
        return d, d, c, boost, _prepare_gamma(beta)
    return d / (beta + (alpha - 1.0) / 2.0), d, c, boost, None


def _prepare_gamma(parameter: float) -> GammaShape:
    assert parameter > 0.0
    d = (parameter if parameter >= 1.0 else parameter + 1.0) - 1.0 / 3.0
    return GammaShape(d, 1.0 / math.sqrt(9.0 * d), 0.0 if parameter >= 1.0 else 1.0 / parameter)


def draw_weighted(ready: Iterable[ReadyDraw], draw: Callable[[], float]) -> list[float]:
    """Draw a share from each, and return it times its weight; `draw` returns uniform numbers below 1.

    All in one loop: calls would cost more.
    """
    normal, bounds = _normal, _bounds
    weighted: list[float] = []
    for weight, scale, d, c, boost, misses in ready:
        point = draw() * _QUANTILES
        place = int(point)
        if point > bounds[place]:
            v = 1.0 + c * normal[place]  # Above zero: no `c` is above .41, and no such quantile under -2.35.
            x = scale * v * v * v
        else:
            x = scale * _draw_tested(d, c, place, 1.0 - (point - place), draw)
        if boost:
            x *= draw() ** boost
        if misses is None:
            weighted.append(weight * x / (1.0 + x * (0.5 + x * _TWELFTH)))
        else:
            total = x + _draw_gamma(misses, draw)
            weighted.append(weight * x / total if total else 0.0)
    return weighted


def _draw_gamma(shape: GammaShape, draw: Callable[[], float]) -> float:
    d, c, boost = shape
    drawn = d * _draw_tested(d, c, int(draw() * QUANTILES), 1.0 - draw(), draw)
    return drawn * draw() ** boost if boost else drawn


def _draw_tested(d: float, c: float, place: int, uniform: float, draw: Callable[[], float]) -> float:
    """Test a normal draw, given by its place in the table, with a uniform one above zero; draw others until one passes."""
    while True:
        z = _normal[place]
        v = 1.0 + c * z
        if v > 0.0:
            v *= v * v
            if math.log(uniform) < 0.5 * z * z + d * (1.0 - v + math.log(v)):
                return v
        place, uniform = int(draw() * QUANTILES), 1.0 - draw()
