"""Which budget keeps a campaign from being offered, by the state that the budget service has stored.

A delivery process knows it from refused leases. An explanation has no leases, so it computes what a process
would be answered now.
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


def find_missing_budget(
    campaign: CampaignState, advertiser: AdvertiserState | None, *, cost: Micros, now: datetime
) -> str | None:
    """Return the name of the budget that does not pay for an offer, or None."""
    campaign = campaign_step.advance_to(campaign, now)
    if campaign.config is None or _has_leased(campaign, cost):
        return None
    found = compute_headroom(campaign, now, is_paced=True)
    if found.fits(cost):
        return None
    if found.verdict is BudgetVerdict.ADVERTISER_BUDGET and _has_unallotted(advertiser, cost, now):
        return None  # The advertiser allots it when a process asks.
    return REASON_BY_VERDICT.get(found.verdict)


def _has_leased(campaign: CampaignState, cost: Micros) -> bool:
    """Whether a delivery process has the price of an offer left in a lease."""
    return any(
        lease.unassigned >= cost and lease.closed_second is None and lease.window == campaign.window
        for lease in campaign.leases.values()
    )


def _has_unallotted(advertiser: AdvertiserState | None, cost: Micros, now: datetime) -> bool:
    if advertiser is None or advertiser.config is None:
        return True
    unallotted = compute_unallotted(advertiser_step.advance_to(advertiser, now))
    return unallotted is None or unallotted >= cost
