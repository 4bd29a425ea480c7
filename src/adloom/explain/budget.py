"""Which budget keeps a campaign from being offered, as its brain knows it: pure.

Delivery processes know it by the leases that they are refused. Whoever explains has no leases, and asks
what a process would be told that asked for one now.
"""

# pure

from datetime import datetime

from adloom.budgets.advertiser import step as advertiser_step
from adloom.budgets.advertiser.allot import compute_unallotted
from adloom.budgets.advertiser.state import AdvertiserState
from adloom.budgets.campaign import step as campaign_step
from adloom.budgets.campaign.headroom import compute_headroom
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import BudgetVerdict
from adloom.core.money import Micros
from adloom.serving.leases.campaign_lease import REASON_BY_VERDICT


def lacking(
    campaign: CampaignState, advertiser: AdvertiserState | None, *, cost: Micros, now: datetime
) -> str | None:
    """Name the budget that is lacking for an offer, or None."""
    campaign = campaign_step.advance_to(campaign, now)
    if campaign.config is None or _can_be_given(campaign, cost):
        return None
    found = compute_headroom(campaign, now, is_paced=True)
    if found.fits(cost):
        return None
    if found.verdict is BudgetVerdict.ADVERTISER_BUDGET and _has_some(advertiser, cost, now):
        return None  # It is allotted to whoever asks for it.
    return REASON_BY_VERDICT.get(found.verdict)


def _can_be_given(campaign: CampaignState, cost: Micros) -> bool:
    """Tell whether a process has an offer's worth of it."""
    return any(
        lease.unassigned >= cost and lease.closed_second is None and lease.window == campaign.window
        for lease in campaign.leases.values()
    )


def _has_some(advertiser: AdvertiserState | None, cost: Micros, now: datetime) -> bool:
    if advertiser is None or advertiser.config is None:
        return True
    unallotted = compute_unallotted(advertiser_step.advance_to(advertiser, now))
    return unallotted is None or unallotted >= cost
