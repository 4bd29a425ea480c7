"""The pacer: the multiplier at which what is left of the budget lasts exactly until the day's end.

A decayed histogram over 96 logarithmic buckets of multipliers says what an opportunity cost at each; the traffic shape
says how many opportunities are left. Between and beside what was tried, cost rises like a power of the multiplier.
"""

from array import array
from itertools import compress
from math import ceil, exp, floor, inf, log, sqrt
from typing import Final

import msgspec

BUCKETS: Final = 96
LOG_MIN: Final = log(0.01)
LOG_MAX: Final = log(3.0)
WIDTH: Final = (LOG_MAX - LOG_MIN) / (BUCKETS - 1)
KEPT: Final = 0.96  # Of the histogram, by window.
WEIGHT_MAX: Final = 1e6
FIRST: Final = 0.2  # Too high at night costs money at bad prices; too low is made up for in minutes.
FIRST_WITH_TARGET: Final = 1.0
RISE_MAX: Final = 1.6  # From one window to the next, while little is known.
NEAR: Final = 0.8  # Buckets count less the farther (in ln m) they are from the last multiplier.
POWER: Final = 2.5  # How cost rises with the multiplier, until windows show it:
POWER_SPREAD: Final = 0.15  # windows whose multipliers differ by much more than this.
POWER_MIN, POWER_MAX = 0.1, 6.0
POWER_ERROR: Final = 1.0  # How far it may be from that, as a standard deviation;
POWER_ERROR_MIN: Final = 0.2  # no market follows a power exactly.
DAYS_BEFORE: Final = 0.3  # Of a day: how much yesterday's traffic counts beside today's.
LAST_WINDOWS: Final = (
    0.6  # What is left over at the end is lost, so the last windows ask for more than their part.
)
# Where even 1 buys little more than is needed, a late lack of traffic could not be made up for: be ahead by so much of
# the day, the less so the more 1 would buy (ln of how many times).
LEAD: Final = 0.015
LEAD_HEADROOM: Final = 0.5


class PacerState(msgspec.Struct, frozen=True, kw_only=True):
    """Opportunities and their cost by bucket; traffic of today and of a day before.

    The newest window counts `weight`: instead of all buckets falling with each window, it rises.
    """

    seen: bytes = bytes(4 * BUCKETS)
    paid: bytes = bytes(4 * BUCKETS)
    weight: float = 1.0
    traffic: float = 0.0
    day_before: float = 0.0


def begin_day(state: PacerState) -> PacerState:
    day = state.traffic or state.day_before
    return msgspec.structs.replace(state, traffic=0.0, day_before=day)


def observe(state: PacerState, *, multiplier: float, opportunities: float, cost: float) -> PacerState:
    """Count a window: it lies between two buckets, so that its multiplier is not rounded."""
    if opportunities <= 0 or multiplier <= 0:
        return state
    seen, paid, newest = array("f", state.seen), array("f", state.paid), state.weight
    if newest > WEIGHT_MAX:
        seen, paid = (array("f", [one / newest for one in part]) for part in (seen, paid))
        newest = 1.0
    at = (min(LOG_MAX, max(LOG_MIN, log(multiplier))) - LOG_MIN) / WIDTH
    low, high = floor(at), ceil(at)
    part = at - low
    for index, weight in ((low, 1.0 - part), (high, part)):
        seen[index] += newest * weight * opportunities
        paid[index] += newest * weight * cost
    return PacerState(
        seen=seen.tobytes(),
        paid=paid.tobytes(),
        weight=newest / KEPT,
        traffic=state.traffic + opportunities,
        day_before=state.day_before,
    )


def solve(  # noqa: PLR0913 - one for each counter
    state: PacerState,
    *,
    remaining: float,
    share: float,
    left: float,
    last: float | None,
    has_target: bool = False,
) -> float:
    """Return the multiplier, at most 1: `share` of the day's traffic is in this window, `left` from here on."""
    if remaining <= 0:
        return exp(LOG_MIN)
    fit = _fit(state, last)
    if fit is None:
        return FIRST_WITH_TARGET if has_target else FIRST
    opportunities = _expect_opportunities(state, left)
    if opportunities <= 0:
        return 1.0
    needed = remaining / opportunities * (1.0 + LAST_WINDOWS * min(1.0, share / max(left, share, 1e-9)) ** 2)
    headroom = fit.log_cost - fit.power * fit.log_m - log(needed)
    lead = LEAD * min(1.0, max(0.0, 1.0 - headroom / LEAD_HEADROOM))
    needed *= left / max(left - lead, left / 2)
    return min(1.0, fit.compute_multiplier(needed))


class CostRise(msgspec.Struct, frozen=True):
    """How cost rises with the multiplier: like this power of it; assumed, until bids have differed enough to show it."""

    power: float = POWER
    is_measured: bool = False
    error: float = POWER_ERROR  # The standard deviation of the power.


def find_rise(state: PacerState, last: float | None) -> CostRise:
    fit = _fit(state, last)
    if fit is None:
        return CostRise()
    rows, prior = _list_costs(state, last), POWER_SPREAD**2
    error = POWER_ERROR * prior / (fit.spread + prior)
    if rows:
        total = sum(weight for weight, _, _ in rows)
        squares = sum(
            weight * (cost - fit.log_cost - fit.power * (at - fit.log_m)) ** 2 for weight, at, cost in rows
        )
        own = squares / total / max(1, len(rows) - 2) * fit.spread / (fit.spread + prior) ** 2
        error = sqrt(error * error + own)
    return CostRise(fit.power, fit.spread > prior, max(POWER_ERROR_MIN, error))


class _Fit(msgspec.Struct, frozen=True):
    """ln cost by opportunity as a line in ln m."""

    log_m: float
    log_cost: float
    power: float
    log_max: float
    spread: float = 0.0  # Of the multipliers that it is drawn through: the variance of ln m.

    def compute_multiplier(self, cost: float) -> float:
        log_m = self.log_m + (log(cost) - self.log_cost) / self.power if cost > 0 else LOG_MIN
        return exp(max(LOG_MIN, min(log_m, self.log_max)))


def _list_costs(state: PacerState, last: float | None) -> list[tuple[float, float, float]]:
    """List the buckets in which something was paid: their weight, ln m, and ln of the cost by opportunity."""
    seen, paid = array("f", state.seen), array("f", state.paid)
    middle = log(last) if last is not None and last > 0 else None
    rows: list[tuple[float, float, float]] = []
    for index in compress(range(BUCKETS), paid):
        at = LOG_MIN + index * WIDTH
        near = 1.0 if middle is None else exp(-0.5 * ((at - middle) / NEAR) ** 2)
        if seen[index] > 0 and near > 0:
            rows.append((seen[index] * near, at, log(paid[index] / seen[index])))
    return rows


def _fit(state: PacerState, last: float | None) -> _Fit | None:
    tried = list(compress(range(BUCKETS), array("f", state.seen)))
    if not tried:
        return None
    rows = _list_costs(state, last)
    highest = LOG_MIN + tried[-1] * WIDTH
    if not rows:  # Nothing was paid at what was tried.
        return _Fit(highest, -inf, POWER, highest + log(RISE_MAX))
    total = sum(weight for weight, _, _ in rows)
    mean_m = sum(weight * at for weight, at, _ in rows) / total
    mean_cost = sum(weight * cost for weight, _, cost in rows) / total
    spread = sum(weight * (at - mean_m) ** 2 for weight, at, _ in rows) / total
    both = sum(weight * (at - mean_m) * (cost - mean_cost) for weight, at, cost in rows) / total
    prior = POWER_SPREAD**2
    power = (both + prior * POWER) / (spread + prior)
    return _Fit(mean_m, mean_cost, min(POWER_MAX, max(POWER_MIN, power)), highest + log(RISE_MAX), spread)


def _expect_opportunities(state: PacerState, left: float) -> float:
    """How many are to come: today's rate so far, beside that of the day before."""
    passed = max(0.0, 1.0 - left)
    if state.day_before > 0:
        whole = (state.traffic + DAYS_BEFORE * state.day_before) / (passed + DAYS_BEFORE)
    else:
        whole = state.traffic / passed if passed > 0 else 0.0
    return whole * left
