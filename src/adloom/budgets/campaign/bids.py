"""A campaign's bid multiplier: when it is decided, from which counters, and what of a strategy's answer is used.

A day has 96 windows. At the first report of a window the campaign asks the strategies, which run for all campaigns at
once beside the actors. Without an answer it decides by itself: a strategy that fails or hangs costs no delivery.
"""

# pure

from datetime import datetime, timedelta
from math import isfinite
from typing import Final

import msgspec

from adloom.bidding.decide import decide
from adloom.bidding.ports import Nets
from adloom.bidding.state import BidState
from adloom.bidding.window import FALLBACK, WINDOWS, BidDecision, BidRules, BidWindow
from adloom.budgets.bid_model import (
    BIDS_TOPIC,
    NO_COUNTS,
    BidProgress,
    BidRow,
    BidsDecided,
    MultiplierRequest,
    bid_in_full,
    build_decided,
    build_window_request,
)
from adloom.budgets.campaign.pace import get_throttle
from adloom.budgets.campaign.state import CampaignState, find_current_day
from adloom.budgets.messages import LeaseUsage
from adloom.core.money import MICROS_PER_UNIT, Micros
from adloom.runtime.actors.actor import Effect, Persist, Publish, RecordRow
from adloom.schedule.budget_day import BudgetDay
from adloom.schedule.pace_control import THROTTLE_MAX
from adloom.schedule.traffic_shape import TrafficShape, build_day_curve

ANSWER_SECONDS_MAX: Final = 10
WINDOWS_MAX: Final = 50_000
DAY_SECONDS: Final = 86_400
MULTIPLIER_MIN: Final = 0.01
KEPT_A_DAY: Final = 0.8  # Of what earlier days brought.
NOT_ANSWERED: Final = "the strategies did not answer in time"
NO_NUMBER: Final = "the strategy answered no number"
NETS_AWAY: Final = Nets(NOT_ANSWERED, NOT_ANSWERED)

_changed = msgspec.structs.replace


def get_multiplier(state: CampaignState) -> float:
    """Return what bids are multiplied by: at most 1, because the bid is the most that a campaign pays."""
    bids = state.bids
    return bids.multiplier if bids is not None and bids.day == state.day else 1.0


def update_bids(
    state: CampaignState, usage: LeaseUsage, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Count a process's report, and ask for a multiplier if a window has begun."""
    config = state.configured
    if not config.has_bid:
        return state if state.bids is None else _changed(state, bids=None)
    day = find_current_day(state)
    windows = count_windows(usage.day_seconds)
    bids = _begin_day(state.bids or BidProgress(), state, windows)
    came = max(usage.opportunities, usage.requests)
    bids = _changed(
        bids,
        opportunities=bids.opportunities + came,
        let_through=bids.let_through + came * (1 - get_throttle(state)),
    )
    window = find_window(day, now, windows)
    is_new_strategy = bids.decided_at is not None and bids.strategy is not config.bid_strategy
    if window <= bids.window and not is_new_strategy:
        return _changed(state, bids=bids)
    if bids.asked_window == window and bids.asked_at is not None and not is_new_strategy:
        waits = bids.asked_at <= now < bids.asked_at + timedelta(seconds=ANSWER_SECONDS_MAX)
        if waits:
            return _changed(state, bids=bids)
        request = _build_request(state, bids, usage.shape, window)
        return _use(state, bids, _decide_here(request), now, effects)
    bids = _changed(bids, asked_window=window, asked_at=now, strategy=config.bid_strategy)
    effects.append(Publish(BIDS_TOPIC, _build_request(state, bids, usage.shape, window)))
    return _changed(state, bids=bids)


def apply_decision(
    state: CampaignState, decided: BidsDecided, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Use the answer to the last question; a late or repeated one changes nothing."""
    bids = state.bids
    if bids is None or bids.asked_at is None or decided.day != state.day or bids.day != state.day:
        return state
    if decided.window != bids.asked_window or decided.strategy is not state.configured.bid_strategy:
        return state
    return _use(state, bids, decided, now, effects)


def lower_spent_of_bids(state: CampaignState, refunded: int) -> BidProgress | None:
    """Return the bids with less of today spent at their last decision: a window cost what was charged in it."""
    bids = state.bids
    if bids is None or bids.day != state.day:
        return bids
    return _changed(bids, spent=Micros(bids.spent - refunded))


def count_windows(day_seconds: int | None) -> int:
    """Return how many windows a day has: more, where a campaign runs on a site whose days are simulated."""
    if day_seconds is None or day_seconds >= DAY_SECONDS:
        return WINDOWS
    return min(WINDOWS_MAX, WINDOWS * DAY_SECONDS // max(1, day_seconds))


def find_window(day: BudgetDay, now: datetime, windows: int) -> int:
    return min(windows - 1, windows * day.compute_elapsed_micros(now) // day.length_micros)


def find_window_start(day: BudgetDay, window: int, windows: int) -> datetime:
    return day.starts_at + (day.ends_at - day.starts_at) * window / windows


def bound_multiplier(decision: BidDecision) -> float | None:
    """Return what bids may use of a decision: at most 1 and the guard's limit; None if it is no number."""
    wanted, limit = decision.multiplier, decision.limit
    if not isfinite(wanted) or wanted < 0:
        return None
    most = min(1.0, limit) if limit is not None and isfinite(limit) else 1.0
    return max(MULTIPLIER_MIN, min(wanted, most))


def _begin_day(bids: BidProgress, state: CampaignState, windows: int) -> BidProgress:
    """Begin another day, or count in other windows; the multiplier of the last window stays until one is decided."""
    if bids.day == state.day and bids.windows == windows:
        return bids
    if bids.day == state.day:
        return _changed(bids, windows=windows, window=-1, asked_window=-1, asked_at=None)
    of_day = bids.counts.subtract(bids.counted_before)
    return _changed(
        bids,
        day=state.day,
        window=-1,
        windows=windows,
        spent=Micros(0),
        counts=NO_COUNTS,
        counted_before=NO_COUNTS,
        days_before=(bids.days_before + of_day).scale(KEPT_A_DAY),
        # Whichever window is the first that it decides, the strategy sees that another day has begun.
        memory=_changed(bids.memory, window=max(bids.memory.window, bids.windows, windows)),
        asked_window=-1,
        asked_at=None,
    )


def _build_request(
    state: CampaignState, bids: BidProgress, shape: TrafficShape | None, window: int
) -> MultiplierRequest:
    config, day = state.configured, find_current_day(state)
    budget = config.daily_budget or Micros(0)
    curve = build_day_curve(shape or TrafficShape(), day.starts_at, day.ends_at)
    begins = curve.compute_share(find_window_start(day, window, bids.windows))
    ends = curve.compute_share(find_window_start(day, window + 1, bids.windows))
    return MultiplierRequest(
        campaign_id=config.campaign_id,
        advertiser_id=config.advertiser_id,
        day=state.day,
        counts_since=day.starts_at.replace(minute=0, second=0, microsecond=0),
        strategy=config.bid_strategy,
        memory=bids.memory,
        window=BidWindow(
            window=window,
            windows=bids.windows,
            budget=float(budget),
            remaining=float(budget - state.spent_window),
            target=float(config.target) if config.target else None,
            cost=float(state.spent_today),
            value=0.0,
            window_cost=float(max(0, state.spent_today - bids.spent)),
            window_value=0.0,
            opportunities=float(bids.opportunities),
            let_through=_find_share_let_through(bids),
            wins=0.0,
            traffic_share=ends - begins,
            traffic_left=1.0 - begins,
            last_multiplier=bids.multiplier if bids.decided_at is not None else None,
        ),
        rules=BidRules(money_scale=float(MICROS_PER_UNIT)),
        counts=bids.counts,
        counted_before=bids.counted_before,
        days_before=bids.days_before,
    )


def _find_share_let_through(bids: BidProgress) -> float:
    share = bids.let_through / bids.opportunities if bids.let_through else 1.0
    return min(max(share, 1 - THROTTLE_MAX), 1.0)


def _decide_here(request: MultiplierRequest) -> BidsDecided:
    """Decide without the nets: the pacer where the campaign has a net for a strategy."""
    if not request.has_budget:
        return bid_in_full(request)
    try:
        answer = decide(build_window_request(request), NETS_AWAY)
        memory, decision = answer.state, answer.decision
    except (ArithmeticError, ValueError):
        # Whatever numbers a memory of before had: it begins anew.
        memory = BidState()
        decision = BidDecision(multiplier=1.0, reason=FALLBACK + NO_NUMBER)
    return build_decided(request, decision, memory, {})


def _use(
    state: CampaignState, bids: BidProgress, decided: BidsDecided, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Take a decision over, as far as bids may use it, and keep a row of it."""
    decision, memory = decided.decision, decided.memory
    multiplier = bound_multiplier(decision)
    if multiplier is None:
        decision = BidDecision(multiplier=1.0, reason=FALLBACK + NO_NUMBER, limit=None, note=decision.note)
        multiplier, memory = min(1.0, bids.multiplier), BidState()
    counts = decided.counts.subtract(decided.counted_before)
    row = BidRow(
        campaign_id=state.configured.campaign_id,
        day=state.day,
        at=now,
        window=decided.window,
        strategy=decided.strategy,
        multiplier=multiplier,
        wanted=decision.multiplier,
        reason=decision.reason,
        limit=decision.limit,
        note=decision.note,
        spent=state.spent_today,
        impressions=int(counts.impressions),
        clicks=int(counts.clicks),
        conversions=int(counts.conversions),
        shadows=decided.shadows,
        is_first=bids.window < 0,
    )
    effects += [RecordRow(row), Persist()]
    bids = _changed(
        bids,
        window=decided.window,
        multiplier=multiplier,
        strategy=decided.strategy,
        decision=decision,
        decided_at=now,
        # What the strategies remember of a window is what was bid, and not what they wanted.
        memory=_changed(memory, multiplier=multiplier),
        spent=state.spent_today,
        counts=decided.counts,
        counted_before=decided.counted_before,
        opportunities=0,
        let_through=0.0,
        asked_at=None,
    )
    return _changed(state, bids=bids)
