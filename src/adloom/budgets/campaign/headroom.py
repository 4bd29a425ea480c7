"""How much more a campaign may commit within its budgets and caps, and which budget prevents more."""

# pure

from datetime import datetime

import msgspec

from adloom.budgets.campaign.state import NOTHING, CampaignState, find_current_day
from adloom.budgets.messages import BudgetVerdict
from adloom.core.money import Micros
from adloom.schedule.pacing import compute_allowance


class Headroom(msgspec.Struct, frozen=True):
    """How much more may be committed, and which budget prevents more; None is unlimited."""

    amount: Micros | None
    verdict: BudgetVerdict

    def fits(self, amount: Micros) -> bool:
        return self.amount is None or amount <= self.amount


def compute_headroom(
    state: CampaignState, now: datetime, *, is_paced: bool = False, is_allotted: bool = True
) -> Headroom:
    """Return what can still be committed.

    Without `is_allotted` the advertiser's budget is left out. With `is_paced` only what may be spent by now counts.
    """
    config = state.config
    if config is None:
        return Headroom(NOTHING, BudgetVerdict.NOT_RUNNING)
    limits: list[tuple[int, BudgetVerdict]] = []
    if config.total_budget is not None:
        left = config.total_budget - state.spent_total - state.outstanding
        limits.append((left, BudgetVerdict.TOTAL_BUDGET))
    if config.daily_budget is not None:
        committed = state.spent_window + state.outstanding_of_window
        limits.append((config.daily_budget - committed, BudgetVerdict.DAILY_BUDGET))
        if is_paced:
            limits.append((compute_pacing_allowance(state, now) - committed, BudgetVerdict.PACING))
    if is_allotted and config.is_allotted:
        limits.append((state.allotted - state.committed_today, BudgetVerdict.ADVERTISER_BUDGET))
    if not limits:
        return Headroom(None, BudgetVerdict.GRANTED)
    amount, verdict = min(limits, key=lambda limit: limit[0])
    if amount < max(1, state.cost):
        # If several limits leave too little for an offer, report the first: it lasts longest.
        verdict = next(why for left, why in limits if left < max(1, state.cost))
    unfit = find_unfit_budget(state, state.price) if state.price else None
    # Whether a click fits the advertiser's budget is found out when there is one.
    if unfit is not None and unfit is not BudgetVerdict.ADVERTISER_BUDGET:
        return Headroom(NOTHING, unfit)
    return Headroom(Micros(max(0, amount)), verdict)


def find_unfit_budget(state: CampaignState, amount: Micros) -> BudgetVerdict | None:
    """Return the budget that a charge without a hold does not fit; None if it fits all.

    What other clicks may cost does not count against it: their holds guarantee no charge.
    """
    config = state.configured
    if config.total_budget is not None and state.spent_total + state.firm + amount > config.total_budget:
        return BudgetVerdict.TOTAL_BUDGET
    spent = state.spent_window + state.firm_of_window
    if config.daily_budget is not None and spent + amount > config.daily_budget:
        return BudgetVerdict.DAILY_BUDGET
    if config.is_allotted and state.firm_today + amount > state.allotted:
        return BudgetVerdict.ADVERTISER_BUDGET
    return None


def compute_offers_left(state: CampaignState) -> int:
    """Return how many more offers may be leased; none before it is known how many impressions there were."""
    cap, counted = state.configured.impression_cap, state.counted
    if cap is None or counted is None:
        return 0
    out = sum(one.outstanding for one in state.offers.values())
    return max(0, cap - counted.impressions - len(state.seen) - out)


def is_click_cap_reached(state: CampaignState) -> bool:
    """Whether no offer is to be made for the clicks that there were, as we or the event tables have counted them."""
    cap = state.configured.click_cap
    is_counted = cap is not None and state.counted is not None and state.counted.clicks >= cap
    return is_counted or not state.has_click_left


def limit_to_caps(state: CampaignState, amount: Micros) -> Micros:
    """Return how much of an amount is needed for the offers that the caps leave, and for those leased without money."""
    if is_click_cap_reached(state):
        return NOTHING
    if state.configured.impression_cap is None or state.counted is None:
        return amount  # What is not known yet is asked for meanwhile.
    price = state.offer_price
    needed = compute_offers_left(state) * price
    for number, lease in state.leases.items():
        offers = state.offers.get(number)
        if offers is not None:
            needed += max(0, (offers.unassigned - offers.ahead) * price - lease.unassigned)
    return Micros(min(amount, needed))


def compute_pacing_allowance(state: CampaignState, now: datetime) -> int:
    config = state.configured
    assert config.daily_budget is not None
    return compute_allowance(
        now, strategy=config.pacing, daily_budget=config.daily_budget, day=find_current_day(state)
    )


def find_exhausted_budget(state: CampaignState) -> BudgetVerdict | None:
    """Return the budget that is used up; a remainder smaller than one offer counts as nothing."""
    config = state.configured
    offer_cost = state.offer_price
    if config.total_budget is not None and config.total_budget - state.spent_total < offer_cost:
        return BudgetVerdict.TOTAL_BUDGET
    if config.daily_budget is not None and config.daily_budget - state.spent_window < offer_cost:
        return BudgetVerdict.DAILY_BUDGET
    return None
