"""How a campaign with smooth pacing follows the traffic of its day: which share of their offers processes leave out."""

# pure

from datetime import datetime

import msgspec

from adloom.budgets.campaign.state import CampaignState, find_current_day
from adloom.budgets.messages import LeaseUsage
from adloom.core.money import Micros
from adloom.schedule.pace_control import Pace, PaceState, control_pace, roll_pace
from adloom.schedule.pacing import PacingStrategy
from adloom.schedule.traffic_shape import TrafficShape, build_day_curve

_changed = msgspec.structs.replace


def update_pace(state: CampaignState, usage: LeaseUsage, now: datetime) -> CampaignState:
    """Take a step of the controller with a process's report."""
    config = state.configured
    if config.daily_budget is None or config.pacing is not PacingStrategy.SMOOTH:
        return state if state.pace is None else _changed(state, pace=None)
    day = find_current_day(state)
    curve = build_day_curve(usage.shape or TrafficShape(), day.starts_at, day.ends_at)
    pace = Pace(
        now=now.timestamp(),
        daily_budget=config.daily_budget,
        window=state.window,
        spent=estimate_spent(state),
        cost=max(1, usage.cost),
        price=max(1, usage.cost, usage.price),
        # A process of an older version does not say: as many as hold what it gave.
        offers=usage.offers or sum(amount for _, amount in usage.given) // max(1, usage.cost),
        share=curve.compute_share(now),
        volume=curve.get_volume(now),
        requests=usage.requests,
        day_seconds=(day.ends_at - day.starts_at).total_seconds(),
        seconds_left=(day.ends_at - now).total_seconds(),
    )
    return _changed(state, pace=control_pace(state.pace or PaceState(), pace))


def estimate_spent(state: CampaignState) -> Micros:
    """Return what is spent, and what is likely to be of offers that are out: as large a share as of those before."""
    charged = expired = held = 0
    for lease in state.leases.values():
        if lease.window == state.window and not lease.is_by_click:
            charged += lease.given - lease.holding - lease.expired
            expired += lease.expired
            held += lease.holding
    shown = (charged + 1) / (charged + expired + 1)
    return Micros(state.spent_window + int(held * min(1.0, shown)))


def lower_spent_before(state: CampaignState, refunded: int) -> PaceState | None:
    """Return the pace with less spent at its last step: to give money back is no sign that offers cost less."""
    pace = state.pace
    if pace is None or pace.spent is None or pace.spent[0] != state.window:
        return pace
    return _changed(pace, spent=(state.window, pace.spent[1] - refunded))


def get_throttle(state: CampaignState) -> float:
    return 0.0 if state.pace is None else state.pace.throttle


def start_pace_of_day(state: CampaignState) -> PaceState | None:
    return None if state.pace is None else roll_pace(state.pace)
