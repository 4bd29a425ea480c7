"""Which share of its offers a campaign leaves out, so that it spends its day as traffic comes: a PI controller.

`base` is what the plan alone would leave out at this moment. The controller adds to it while the campaign is
ahead of the plan, and takes from it while it is behind. It only ever lets less through than leases do.
"""

import math
from typing import Final

import msgspec

GAIN_NOW: Final = 0.5  # Of the error now,
GAIN_SUM: Final = 0.3  # and of its sum.
SUM_KEPT: Final = 0.995  # From step to step,
SUM_SECONDS: Final = 5.0  # which are no further apart as a rule: then more is forgotten.
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

RATE_SECONDS: Final = 30.0  # The rate is that of so many seconds; processes report every 5 s.
RATE_OFFERS: Final = 10  # If so many offers take longer, it is theirs,
RATE_SECONDS_MAX: Final = 7_200.0  # up to this.
CHARGES_KEPT: Final = 100  # What an offer costs is learned from about so many charges.
CHARGES_ASSUMED: Final = 2  # What offers hold counts as much as so many.
COST_MIN: Final = 0.01  # Of a hold.
REQUESTS_MIN: Final = 10
GRACE_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 30.0
PAUSE_OFFERS_MIN: Final = 10  # So many were expected in it,
PAUSE_SHARE: Final = 0.1  # and less than this share of them came.
SCALED_SECONDS_MIN: Final = 1.0
DAY_SECONDS: Final = 86_400.0
LAST_SHARE: Final = 0.01  # Of a day: what is left is spread over what comes, without regard to the plan,
LAST_CHARGES: Final = 10  # and so are the last ones that the budget pays for.
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
    # Offers a second that there would be without a pace on the day's average, and from how many seconds this is known.
    rate: float = 0.0
    rate_seconds: float = 0.0
    requests_all: int = 0  # Since this run of steps began.
    # What was charged lately, and for how many offers.
    charged: float = 0.0
    offers: float = 0.0
    spent: tuple[int, int] | None = None  # At the last step: the budget's window, and what was spent of it.
    # Ratios since the last tuning.
    ratios: int = 0
    ratio_sum: float = 0.0
    ratio_squares: float = 0.0
    tuned_at: float = 0.0


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign has spent, and what it was meant to have spent by now."""

    now: float  # Seconds since the epoch.
    daily_budget: int
    window: int  # Of the daily budget: an admin may open another,
    spent: int  # and this is spent in it.
    cost: int  # What one offer holds,
    price: int  # and what is charged at once: the price of a click is more than its offer holds.
    share: float  # Of the day's traffic that has come,
    volume: float  # and how many times the average comes now.
    offers: int  # Since the last step,
    requests: int  # and how many there would have been without a pace.
    day_seconds: float = DAY_SECONDS
    seconds_left: float = DAY_SECONDS


def control_pace(state: PaceState, pace: Pace) -> PaceState:
    """Take a step: `throttle` of the result is the share of offers to leave out."""
    state = _measure_cost(_apply_plan(_forget_early_end(state, pace), pace), pace)
    elapsed = 0.0 if state.at is None else max(0.0, pace.now - state.at)
    if state.at is None or _was_pause(state, pace, elapsed):
        state = _restart(state, pace)
    elif state.throttle != STOPPED:  # Then nothing is known of what is left out.
        state = _measure_rate(state, pace, elapsed)
    if pace.spent + pace.cost > pace.daily_budget or pace.seconds_left <= 0:
        left = state.spent_early or max(0.0, pace.seconds_left / pace.day_seconds)
        return msgspec.structs.replace(state, throttle=STOPPED, at=pace.now, spent_early=left)
    cost = estimate_cost(state, pace)
    base = compute_base(
        daily_budget=pace.daily_budget, cost=cost, day_seconds=pace.day_seconds, rate=state.rate
    )
    if pace.now - state.since < _scale(GRACE_SECONDS, pace):
        return msgspec.structs.replace(state, throttle=0.0, at=pace.now)
    expected = pace.daily_budget * max(EXPECTED_SHARE_MIN, pace.share)
    if state.requests_all < REQUESTS_MIN:  # Too few to correct anything, or to know a rate.
        return msgspec.structs.replace(state, throttle=base if pace.spent > expected else 0.0, at=pace.now)
    state = apply_ratio(state, pace.spent / expected, base=base, seconds=elapsed)
    budget_left = pace.daily_budget - pace.spent
    if pace.seconds_left <= LAST_SHARE * pace.day_seconds or budget_left <= LAST_CHARGES * pace.price:
        needed = budget_left / cost / max(1e-9, state.rate * (1 - pace.share) * pace.day_seconds)
        state = msgspec.structs.replace(state, throttle=min(max(0.0, 1 - needed), THROTTLE_MAX))
    return _tune(msgspec.structs.replace(state, at=pace.now), pace.now)


def estimate_cost(state: PaceState, pace: Pace) -> float:
    """Return what is charged for an offer on average: less than it holds, if not all are seen, clicked or paid in full."""
    assumed = CHARGES_ASSUMED * pace.price
    return max(COST_MIN * pace.cost, (state.charged + assumed) / (state.offers + assumed / pace.cost))


def compute_target(*, daily_budget: int, cost: float, day_seconds: float) -> float:
    """Return how many offers a second the plan makes on the day's average."""
    return daily_budget / day_seconds / cost


def compute_base(*, daily_budget: int, cost: float, day_seconds: float, rate: float) -> float:
    """Return the share to leave out by the plan alone; it is the same at any hour of a day that has its shape."""
    target = compute_target(daily_budget=daily_budget, cost=cost, day_seconds=day_seconds)
    return min(max(0.0, 1 - target / rate), THROTTLE_MAX) if rate > 0 else 0.0


def apply_ratio(state: PaceState, ratio: float, *, base: float, seconds: float) -> PaceState:
    """Move the throttle by the ratio of spend to the plan."""
    smooth = state.smoothing * ratio + (1 - state.smoothing) * state.ratio
    error = 1 - smooth
    step = min(max(seconds, STEP_SECONDS_MIN), STEP_SECONDS_MAX)
    kept = SUM_KEPT ** max(1.0, seconds / SUM_SECONDS)
    error_sum = min(max(state.error_sum * kept + error * step, -SUM_MAX), SUM_MAX)
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


def _forget_early_end(state: PaceState, pace: Pace) -> PaceState:
    """Forget that the budget was spent if there is more of it now: it was raised, or an admin has opened a window."""
    window, _ = state.spent or (pace.window, 0)
    is_more = pace.daily_budget > state.plan[0] or pace.window != window
    return msgspec.structs.replace(state, spent_early=None) if is_more else state


def _apply_plan(state: PaceState, pace: Pace) -> PaceState:
    """Forget the errors of before under another budget or price, and what offers cost under another price."""
    plan = (pace.daily_budget, pace.cost)
    if plan == state.plan:
        return state
    before, state = state, msgspec.structs.replace(state, ratio=1.0, error_sum=0.0, plan=plan)
    return state if before.plan[1] == pace.cost else msgspec.structs.replace(state, charged=0.0, offers=0.0)


def _was_pause(state: PaceState, pace: Pace, elapsed: float) -> bool:
    """Whether hardly any offers were made for so long that what is known of the rate is of no use."""
    expected = (1 - state.throttle) * state.rate * pace.volume * elapsed
    is_long = elapsed > _scale(PAUSE_SECONDS, pace) and expected > PAUSE_OFFERS_MIN
    return is_long and pace.offers < PAUSE_SHARE * expected


def _restart(state: PaceState, pace: Pace) -> PaceState:
    return msgspec.structs.replace(
        state, ratio=1.0, error_sum=0.0, since=pace.now, rate=0.0, rate_seconds=0.0, requests_all=0
    )


def _measure_cost(state: PaceState, pace: Pace) -> PaceState:
    window, spent = state.spent or (pace.window, pace.spent)
    new = pace.spent - (spent if window == pace.window else 0)
    kept = max(0.0, 1 - pace.offers * estimate_cost(state, pace) / (CHARGES_KEPT * pace.price))
    return msgspec.structs.replace(
        state,
        charged=max(0.0, kept * state.charged + new),  # Less than before if holds expire.
        offers=kept * state.offers + pace.offers,
        spent=(pace.window, pace.spent),
    )


def _measure_rate(state: PaceState, pace: Pace, elapsed: float) -> PaceState:
    forgotten = max(
        min(elapsed / _scale(RATE_SECONDS, pace), pace.offers / RATE_OFFERS),
        elapsed / _scale(RATE_SECONDS_MAX, pace),
    )
    before = state.rate_seconds * max(0.0, 1 - forgotten)
    seconds = before + elapsed * pace.volume
    total = state.requests_all + pace.requests
    if seconds <= 0:
        return msgspec.structs.replace(state, requests_all=total)
    rate = (state.rate * before + pace.requests) / seconds
    return msgspec.structs.replace(state, rate=rate, rate_seconds=seconds, requests_all=total)


def _scale(seconds: float, pace: Pace) -> float:
    """Return as much of a simulated day as so many seconds are of a whole one."""
    return max(SCALED_SECONDS_MIN, seconds * pace.day_seconds / DAY_SECONDS)


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
