"""Budget status for readers of the API and the console.

A stored state is brought up to the clock and the current catalog, so that day and budgets are right even if
no message came since midnight or since a change.

    budget = spent + held + remaining

What processes have leased and not offered yet counts as remaining: it is promised to no visitor.
"""

# pure

from collections.abc import Iterable
from datetime import date, datetime
from typing import Final

import msgspec

from adloom.budgets.advertiser import step as advertiser_step
from adloom.budgets.advertiser.state import AdvertiserState
from adloom.budgets.bid_model import BidProgress
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.headroom import compute_pacing_allowance
from adloom.budgets.campaign.pace import get_throttle
from adloom.budgets.campaign.state import NOTHING, CampaignState, find_current_day
from adloom.budgets.messages import ConfigureAdvertiser, ConfigureCampaign
from adloom.core.money import Micros
from adloom.schedule.budget_day import BudgetDay
from adloom.schedule.pacing import PacingStrategy

# What a few minutes have cost says little of a day: less than an hour of it counts as an hour.
PROJECTED_FROM_MICROSECONDS: Final = 3_600_000_000

_changed = msgspec.structs.replace


class BudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign's budgets; None is no limit, or no pace.

    `spent_window` is of today, or since an admin opened a new window.
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
    budget_day: BudgetDay
    throttle: float = 0.0  # The share of its offers that is left out to keep pace.
    bids: BidProgress | None = None  # Of a campaign with a bid that was offered today.
    site_key: int | None = None  # Whose traffic it follows; else that of the installation.
    unconfirmed: Micros = NOTHING  # Held by offers of today that nobody saw or clicked in time.


class AdvertiserBudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """An advertiser's day, over all its campaigns; None is no limit."""

    day: date
    daily_budget: Micros | None
    spent: Micros
    held: Micros
    remaining: Micros | None


def build_campaign_status(
    state: CampaignState | None, config: ConfigureCampaign, *, now: datetime
) -> BudgetStatus:
    """Treat a campaign without a state as one that was never offered for money."""
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
        remaining_today=_compute_remaining_today(state, config),
        pace=_compute_campaign_pace(state, config, now),
        projected=project_spend(
            state.spent_today,
            find_current_day(state),
            now=now,
            left=_compute_unspent(state, config) if config.is_running else NOTHING,
        ),
        budget_day=find_current_day(state),
        throttle=get_throttle(state),
        bids=state.bids if state.bids is not None and state.bids.day == state.day else None,
        site_key=state.site_key,
        unconfirmed=Micros(sum(one.expired for one in state.leases.values() if one.day == state.day)),
    )


def build_advertiser_status(
    state: AdvertiserState | None,
    campaigns: Iterable[CampaignState],
    config: ConfigureAdvertiser,
    *,
    now: datetime,
) -> AdvertiserBudgetStatus:
    """Sum the campaigns' states: the advertiser's own state only says which day it is."""
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
    """Spent over allowed by now: 1 is on schedule, less is behind; None if nothing is allowed yet."""
    return spent / line_now if line_now > 0 else None


def project_spend(spent: Micros, day: BudgetDay, *, now: datetime, left: Micros | None) -> Micros:
    """Extrapolate to the end of the day, within what the budgets leave."""
    elapsed = day.compute_elapsed_micros(now)
    more = spent * (day.length_micros - elapsed) // max(elapsed, PROJECTED_FROM_MICROSECONDS)
    return Micros(spent + (more if left is None else min(more, left)))


def project_advertiser(advertiser: AdvertiserBudgetStatus, running: Iterable[BudgetStatus]) -> Micros:
    """Add to what was spent what each running campaign is projected to spend more, within the advertiser's budget."""
    more = sum(one.projected - one.spent_today for one in running)
    left = _subtract(advertiser.daily_budget, advertiser.spent)
    return Micros(advertiser.spent + (more if left is None else min(more, left)))


def _advance_to(state: CampaignState, config: ConfigureCampaign, now: datetime) -> CampaignState:
    """Apply the catalog and the clock; only the actor knows how long holds last."""
    if state.config is not None:
        config = _changed(config, hold_seconds=state.config.hold_seconds)
    return campaign_step.advance_to(_changed(state, config=config), now)


def _compute_campaign_pace(state: CampaignState, config: ConfigureCampaign, now: datetime) -> float | None:
    if config.daily_budget is None or config.pacing is not PacingStrategy.SMOOTH:
        return None
    return compute_pace(state.spent_window, compute_pacing_allowance(state, now))


def _compute_remaining_today(state: CampaignState, config: ConfigureCampaign) -> Micros | None:
    """Return what can still be promised to visitors today, by the budget that leaves least."""
    held_of_window = sum(
        lease.holding + lease.ahead for lease in state.leases.values() if lease.window == state.window
    )
    return _find_least(
        _subtract(config.daily_budget, state.spent_window + held_of_window),
        _subtract(config.total_budget, state.spent_total + state.held),
    )


def _compute_unspent(state: CampaignState, config: ConfigureCampaign) -> Micros | None:
    """Return what can still be spent today, promised or not."""
    return _find_least(
        _subtract(config.daily_budget, state.spent_window),
        _subtract(config.total_budget, state.spent_total),
    )


def _sum_holds(state: CampaignState, *, day: date) -> int:
    """Sum the holds of one day: just after midnight there are holds of two."""
    return sum(lease.holding + lease.ahead for lease in state.leases.values() if lease.day == day)


def _subtract(budget: Micros | None, used: int) -> Micros | None:
    """Never below zero: a budget may be lowered below its use."""
    return None if budget is None else Micros(max(0, budget - used))


def _find_least(*amounts: Micros | None) -> Micros | None:
    return min((amount for amount in amounts if amount is not None), default=None)
