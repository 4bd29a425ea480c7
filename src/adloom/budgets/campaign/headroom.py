"""How much more a campaign can commit, and what stands in the way of more."""

from datetime import datetime

import msgspec

from adloom.budgets.campaign.state import NOTHING, CampaignState, today_of
from adloom.budgets.messages import Verdict
from adloom.core.money import Micros
from adloom.schedule.pacing import spendable_by


class Room(msgspec.Struct, frozen=True):
    """How much more can be committed, and what stands in the way of more; None is without bound."""

    amount: Micros | None
    verdict: Verdict

    def fits(self, amount: Micros) -> bool:
        """Tell whether an amount can be committed."""
        return self.amount is None or amount <= self.amount


def room(state: CampaignState, now: datetime, *, is_paced: bool = False, is_allotted: bool = True) -> Room:
    """Tell how much more can be committed: by now where it is paced, of what the advertiser has allotted or of all."""
    config = state.config
    if config is None:
        return Room(NOTHING, Verdict.NOT_RUNNING)
    limits: list[tuple[int, Verdict]] = []
    if config.total_budget is not None:
        limits.append((config.total_budget - state.spent_total - state.outstanding, Verdict.TOTAL_BUDGET))
    if config.daily_budget is not None:
        committed = state.spent_window + state.outstanding_of_window
        limits.append((config.daily_budget - committed, Verdict.DAILY_BUDGET))
        if is_paced:
            limits.append((line(state, now) - committed, Verdict.PACING))
    if is_allotted and config.is_allotted:
        limits.append((state.allotted - state.committed_today, Verdict.ADVERTISER_BUDGET))
    if not limits:
        return Room(None, Verdict.GRANTED)
    amount, verdict = min(limits, key=lambda limit: limit[0])
    if amount < max(1, state.cost):
        # Of several that leave too little for an offer, the first named is the one that lasts.
        verdict = next(why for left, why in limits if left < max(1, state.cost))
    return Room(Micros(max(0, amount)), verdict)


def line(state: CampaignState, now: datetime) -> int:
    """Tell what may be spent of the daily budget by now."""
    config = state.config
    assert config is not None
    assert config.daily_budget is not None
    return spendable_by(now, strategy=config.pacing, daily_budget=config.daily_budget, day=today_of(state))


def exhausted_by(state: CampaignState) -> Verdict | None:
    """Tell which budget is spent: what is left and pays for no offer is dust, and counts as nothing."""
    config = state.config
    assert config is not None
    dust = max(1, state.cost)
    if config.total_budget is not None and config.total_budget - state.spent_total < dust:
        return Verdict.TOTAL_BUDGET
    if config.daily_budget is not None and config.daily_budget - state.spent_window < dust:
        return Verdict.DAILY_BUDGET
    return None
