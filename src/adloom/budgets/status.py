"""How a budget stands, for whoever reads it: pure.

A state that was kept is brought up to the clock and to what the catalog says by now, so that the day and the
budgets are right even where no message has come since midnight, or since somebody has changed them.

    budget = spent + held + remaining

What processes have leased and not offered yet is part of what remains: it is promised to no reader.
"""

# pure

from collections.abc import Iterable
from datetime import date, datetime
from typing import Final

import msgspec

from adloom.budgets.advertiser import step as advertiser_step
from adloom.budgets.advertiser.state import AdvertiserState
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.headroom import pacing_allowance
from adloom.budgets.campaign.state import NOTHING, CampaignState, current_day
from adloom.budgets.messages import ConfigureAdvertiser, ConfigureCampaign
from adloom.core.money import Micros
from adloom.schedule.budget_day import BudgetDay
from adloom.schedule.pacing import PacingStrategy

# What a few minutes have cost says little of a day: less than an hour of it counts as an hour.
PROJECTED_FROM_MICROSECONDS: Final = 3_600_000_000

_changed = msgspec.structs.replace


class BudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a campaign's budgets stand; None is no limit, or no pace.

    What was spent of the window is that of today, or since somebody has opened a new one.
    """

    day: date
    daily_budget: Micros | None
    total_budget: Micros | None
    spent_today: Micros
    spent_window: Micros
    spent_total: Micros
    held: Micros
    leased: Micros
    remaining_today: Micros | None
    pace: float | None
    projected: Micros


class AdvertiserBudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How an advertiser's day stands, over all its campaigns; None is no limit."""

    day: date
    daily_budget: Micros | None
    spent: Micros
    held: Micros
    remaining: Micros | None


def build_campaign_status(
    state: CampaignState | None, config: ConfigureCampaign, *, now: datetime
) -> BudgetStatus:
    """Tell how a campaign stands; one without a state was never offered for money."""
    state = _advance_to(state or CampaignState(), config, now)
    return BudgetStatus(
        day=state.day,
        daily_budget=config.daily_budget,
        total_budget=config.total_budget,
        spent_today=state.spent_today,
        spent_window=state.spent_window,
        spent_total=state.spent_total,
        held=state.held,
        leased=state.leased,
        remaining_today=_remaining_today(state, config),
        pace=_campaign_pace(state, config, now),
        projected=project_spend(
            state.spent_today,
            current_day(state),
            now=now,
            left=_unspent(state, config) if config.is_running else NOTHING,
        ),
    )


def build_advertiser_status(
    state: AdvertiserState | None,
    campaigns: Iterable[CampaignState],
    config: ConfigureAdvertiser,
    *,
    now: datetime,
) -> AdvertiserBudgetStatus:
    """Tell how an advertiser stands: its own state knows the day, those of its campaigns what they have spent."""
    day = advertiser_step.advance_to(_changed(state or AdvertiserState(), config=config), now).day
    known = [campaign_step.advance_to(campaign, now) for campaign in campaigns]
    spent = sum(campaign.spent_by_day.get(day, 0) for campaign in known)
    held_today = sum(_sum_holds(campaign, day=day) for campaign in known)
    return AdvertiserBudgetStatus(
        day=day,
        daily_budget=config.daily_budget,
        spent=Micros(spent),
        held=Micros(sum(campaign.held for campaign in known)),
        remaining=_subtract(config.daily_budget, spent + held_today),
    )


def compute_pace(spent: Micros, line_now: int) -> float | None:
    """Relate what was spent to what may be by now: 1 is on the line, less behind it; None where nothing may be."""
    return spent / line_now if line_now > 0 else None


def project_spend(spent: Micros, day: BudgetDay, *, now: datetime, left: Micros | None) -> Micros:
    """Tell what will be spent at the end of the day if it goes on as it has so far, and the budgets allow it."""
    elapsed = day.elapsed_micros(now)
    more = spent * (day.length_micros - elapsed) // max(elapsed, PROJECTED_FROM_MICROSECONDS)
    return Micros(spent + (more if left is None else min(more, left)))


def _advance_to(state: CampaignState, config: ConfigureCampaign, now: datetime) -> CampaignState:
    """Take what the catalog says, and look at the clock; for how long holds last only the budget actor was told."""
    if state.config is not None:
        config = _changed(config, hold_seconds=state.config.hold_seconds)
    return campaign_step.advance_to(_changed(state, config=config), now)


def _campaign_pace(state: CampaignState, config: ConfigureCampaign, now: datetime) -> float | None:
    """Tell the pace of a campaign that has a line to keep to."""
    if config.daily_budget is None or config.pacing is not PacingStrategy.SMOOTH:
        return None
    return compute_pace(state.spent_window, pacing_allowance(state, now))


def _remaining_today(state: CampaignState, config: ConfigureCampaign) -> Micros | None:
    """Tell what can still be promised to readers today, by the budget of which least is left."""
    held_of_window = sum(
        lease.holding + lease.ahead for lease in state.leases.values() if lease.window == state.window
    )
    return _least(
        _subtract(config.daily_budget, state.spent_window + held_of_window),
        _subtract(config.total_budget, state.spent_total + state.held),
    )


def _unspent(state: CampaignState, config: ConfigureCampaign) -> Micros | None:
    """Tell what can still be spent today, whether it is promised or not."""
    return _least(
        _subtract(config.daily_budget, state.spent_window),
        _subtract(config.total_budget, state.spent_total),
    )


def _sum_holds(state: CampaignState, *, day: date) -> int:
    """Tell what is held of a day: in the first minutes of the next one there are holds of both."""
    return sum(lease.holding + lease.ahead for lease in state.leases.values() if lease.day == day)


def _subtract(budget: Micros | None, used: int) -> Micros | None:
    """Tell what a budget leaves: nothing, where it was lowered below what it has been used for."""
    return None if budget is None else Micros(max(0, budget - used))


def _least(*amounts: Micros | None) -> Micros | None:
    """Give the least of what is bounded; None is without bound."""
    return min((amount for amount in amounts if amount is not None), default=None)
