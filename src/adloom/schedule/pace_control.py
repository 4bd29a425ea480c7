"""Which share of its offers a campaign leaves out, so that it spends its day as traffic comes: a PI controller.

`base` is what the plan alone would leave out at this moment. The controller adds to it while the campaign is
ahead of the plan, and takes from it while it is behind. It only ever lets less through than leases do.
"""

import math
from typing import Final

import msgspec

GAIN_NOW: Final = 0.5  # Of the error now,
GAIN_SUM: Final = 0.3  # and of its sum.
SUM_KEPT: Final = 0.995
SUM_MAX: Final = 1.0
STEP_SECONDS_MIN: Final = 0.001
STEP_SECONDS_MAX: Final = 1.0
THROTTLE_MAX: Final = 0.99  # The rest shows how much traffic there is.
STOPPED: Final = 1.0
EXPECTED_SHARE_MIN: Final = 0.01

SMOOTHING: Final = 0.3
SMOOTHING_MIN: Final = 0.1
SMOOTHING_MAX: Final = 0.5
OVERPACE: Final = 2.0  # How much stronger the controller brakes than it speeds up.
OVERPACE_KEPT: Final = 0.95  # From a day that was not spent too early.
OVERPACE_MIN: Final = 1.5
OVERPACE_MAX: Final = 5.0

TUNED_AFTER: Final = 20  # Ratios,
TUNE_SECONDS_MIN: Final = 0.5  # and seconds.

RATE_WEIGHT: Final = 0.3
RATE_SECONDS: Final = 10.0  # Processes report every 5 s.
RATES_MIN: Final = 3
REQUESTS_MIN: Final = 10
GRACE_SECONDS: Final = 10.0
STALE_SECONDS: Final = 30.0
SCALED_SECONDS_MIN: Final = 1.0
DAY_SECONDS: Final = 86_400.0
LAST_SHARE: Final = 0.01  # Of a day: what is left is spread over what comes, without regard to the plan.
EARLY_SHARE: Final = 0.05  # Of a day left when the budget is spent: too fast.


class PaceState(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller remembers between two steps."""

    ratio: float = 1.0  # Of spend to the plan, smoothed.
    error_sum: float = 0.0
    smoothing: float = SMOOTHING
    overpace: float = OVERPACE
    throttle: float = 0.0
    at: float | None = None  # The last step, in seconds since the epoch.
    since: float = 0.0  # When this run of steps began; a pause or another plan begins a new one.
    spent_early: float | None = None  # The share of the day that was left when its budget was spent.
    plan: tuple[int, int] = (0, 0)  # Budget and cost that this was learned with.
    # Requests, and how many came a second.
    rate: float = 0.0
    rates: int = 0
    rate_since: float = 0.0
    requests: int = 0  # Since then.
    requests_all: int = 0
    # Ratios since the last tuning.
    ratios: int = 0
    ratio_sum: float = 0.0
    ratio_squares: float = 0.0
    tuned_at: float = 0.0


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign has spent, and what it was meant to have spent by now."""

    now: float  # Seconds since the epoch.
    daily_budget: int
    spent: int
    cost: int  # Of one offer.
    share: float  # Of the day's traffic that has come,
    volume: float  # and how many times the average comes now.
    requests: int  # Since the last step: offers, and those left out.
    day_seconds: float = DAY_SECONDS
    seconds_left: float = DAY_SECONDS


def control_pace(state: PaceState, pace: Pace) -> PaceState:
    """Take a step: `throttle` of the result is the share of offers to leave out."""
    state = _restart_if_due(state, pace)
    elapsed = 0.0 if state.at is None else pace.now - state.at
    state = _measure_rate(state, pace)
    if pace.spent + pace.cost > pace.daily_budget or pace.seconds_left <= 0:
        left = state.spent_early or max(0.0, pace.seconds_left / pace.day_seconds)
        return msgspec.structs.replace(state, throttle=STOPPED, at=pace.now, spent_early=left)
    base = compute_base(
        daily_budget=pace.daily_budget,
        cost=pace.cost,
        day_seconds=pace.day_seconds,
        volume=pace.volume,
        rate=state.rate,
    )
    if is_in_grace(state, pace):
        return msgspec.structs.replace(state, throttle=base if state.rates >= RATES_MIN else 0.0, at=pace.now)
    expected = pace.daily_budget * max(EXPECTED_SHARE_MIN, pace.share)
    state = apply_ratio(state, pace.spent / expected, base=base, seconds=elapsed)
    if pace.seconds_left <= LAST_SHARE * pace.day_seconds:
        offers_left = (pace.daily_budget - pace.spent) / max(1, pace.cost)
        needed = offers_left / max(1e-9, state.rate * pace.seconds_left)
        state = msgspec.structs.replace(state, throttle=min(max(0.0, 1 - needed), THROTTLE_MAX))
    return _tune(msgspec.structs.replace(state, at=pace.now), pace.now)


def compute_target(*, daily_budget: int, cost: int, day_seconds: float, volume: float) -> float:
    """Return how many offers a second the plan makes."""
    return daily_budget / day_seconds / max(1, cost) * volume


def compute_base(*, daily_budget: int, cost: int, day_seconds: float, volume: float, rate: float) -> float:
    """Return the share to leave out by the plan alone."""
    target = compute_target(daily_budget=daily_budget, cost=cost, day_seconds=day_seconds, volume=volume)
    return min(max(0.0, 1 - target / rate), THROTTLE_MAX) if rate > 0 else 0.0


def apply_ratio(state: PaceState, ratio: float, *, base: float, seconds: float) -> PaceState:
    """Move the throttle by the ratio of spend to the plan."""
    smooth = state.smoothing * ratio + (1 - state.smoothing) * state.ratio
    error = 1 - smooth
    step = min(max(seconds, STEP_SECONDS_MIN), STEP_SECONDS_MAX)
    error_sum = min(max(state.error_sum * SUM_KEPT + error * step, -SUM_MAX), SUM_MAX)
    strength = state.overpace if error < 0 else 1.0
    throttle = base - strength * (GAIN_NOW * error + GAIN_SUM * error_sum)
    return msgspec.structs.replace(
        state,
        ratio=smooth,
        error_sum=error_sum,
        throttle=min(max(throttle, 0.0), THROTTLE_MAX),
        ratios=state.ratios + 1,
        ratio_sum=state.ratio_sum + ratio,
        ratio_squares=state.ratio_squares + ratio * ratio,
    )


def is_in_grace(state: PaceState, pace: Pace) -> bool:
    """Whether too little is known of the traffic yet to correct anything."""
    grace = max(SCALED_SECONDS_MIN, GRACE_SECONDS * pace.day_seconds / DAY_SECONDS)
    is_early = pace.now - state.since < grace
    return is_early or state.requests_all < REQUESTS_MIN or state.rates < RATES_MIN


def roll_pace(state: PaceState) -> PaceState:
    """Begin another day: brake more if the budget of the last one was spent too early."""
    left = state.spent_early or 0.0
    overpace = state.overpace * (1 + left if left > EARLY_SHARE else OVERPACE_KEPT)
    return msgspec.structs.replace(
        state,
        ratio=1.0,
        error_sum=0.0,
        throttle=0.0 if state.throttle == STOPPED else state.throttle,
        spent_early=None,
        overpace=min(max(overpace, OVERPACE_MIN), OVERPACE_MAX),
    )


def _restart_if_due(state: PaceState, pace: Pace) -> PaceState:
    """Forget the errors of before after a pause without requests, or under another budget or price."""
    plan = (pace.daily_budget, pace.cost)
    stale = max(SCALED_SECONDS_MIN, STALE_SECONDS * pace.day_seconds / DAY_SECONDS)
    is_stale = state.at is None or pace.now - state.at > stale
    if not is_stale and plan == state.plan:
        return state
    state = msgspec.structs.replace(state, ratio=1.0, error_sum=0.0, plan=plan)
    if not is_stale:
        return state
    return msgspec.structs.replace(
        state, since=pace.now, rate=0.0, rates=0, rate_since=pace.now, requests=0, requests_all=0
    )


def _measure_rate(state: PaceState, pace: Pace) -> PaceState:
    requests, seconds = state.requests + pace.requests, pace.now - state.rate_since
    total = state.requests_all + pace.requests
    if seconds < max(SCALED_SECONDS_MIN, RATE_SECONDS * pace.day_seconds / DAY_SECONDS):
        return msgspec.structs.replace(state, requests=requests, requests_all=total)
    rate = requests / seconds
    return msgspec.structs.replace(
        state,
        rate=rate if state.rates == 0 else blend(state.rate, rate, RATE_WEIGHT),
        rates=state.rates + 1,
        rate_since=pace.now,
        requests=0,
        requests_all=total,
    )


def blend(before: float, value: float, weight: float) -> float:
    return weight * value + (1 - weight) * before


def _tune(state: PaceState, now: float) -> PaceState:
    """Brake more if spend is ahead again and again; smooth more if the ratio swings."""
    if state.ratios < TUNED_AFTER or now - state.tuned_at < TUNE_SECONDS_MIN:
        return state
    mean = state.ratio_sum / state.ratios
    deviation = math.sqrt(max(0.0, state.ratio_squares / state.ratios - mean * mean))
    return msgspec.structs.replace(
        state,
        overpace=tune_overpace(state.overpace, mean),
        smoothing=tune_smoothing(state.smoothing, deviation),
        ratios=0,
        ratio_sum=0.0,
        ratio_squares=0.0,
        tuned_at=now,
    )


def tune_overpace(overpace: float, mean: float) -> float:
    if mean > 1.05:  # noqa: PLR2004 - ahead
        return min(overpace * 1.15, OVERPACE_MAX)
    if 0.98 < mean < 1.02:  # noqa: PLR2004 - on the plan
        return max(overpace * 0.95, OVERPACE_MIN)
    return overpace


def tune_smoothing(smoothing: float, deviation: float) -> float:
    if deviation > 0.08:  # noqa: PLR2004 - swings
        return max(smoothing / 1.3, SMOOTHING_MIN)
    if deviation < 0.04:  # noqa: PLR2004 - steady
        return min(smoothing * 1.05, SMOOTHING_MAX)
    return smoothing
