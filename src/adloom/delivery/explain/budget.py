"""Which budget keeps a campaign from being offered, as its brain knows it: pure.

Delivery processes know it by the leases that they are refused. Whoever explains has no leases, and asks
what a process would be told that asked for one now.
"""

from datetime import datetime

from adloom.brain import advertiser_step, campaign_step
from adloom.brain.advertiser import AdvertiserState
from adloom.brain.allotting import left
from adloom.brain.campaign import CampaignState
from adloom.brain.messages import Verdict
from adloom.brain.room import room
from adloom.core.money import Micros
from adloom.delivery.lease_share import REASONS


def lacking(
    campaign: CampaignState, advertiser: AdvertiserState | None, *, cost: Micros, now: datetime
) -> str | None:
    """Name the budget that is lacking for an offer, or None."""
    campaign = campaign_step.as_of(campaign, now)
    if campaign.config is None or _can_be_given(campaign, cost):
        return None
    found = room(campaign, now, is_paced=True)
    if found.fits(cost):
        return None
    if found.verdict is Verdict.ADVERTISER_BUDGET and _has_some(advertiser, cost, now):
        return None  # It is allotted to whoever asks for it.
    return REASONS.get(found.verdict)


def _can_be_given(campaign: CampaignState, cost: Micros) -> bool:
    """Tell whether a process has an offer's worth of it."""
    return any(
        lease.unassigned >= cost and lease.closed_second is None and lease.window == campaign.window
        for lease in campaign.leases.values()
    )


def _has_some(advertiser: AdvertiserState | None, cost: Micros, now: datetime) -> bool:
    if advertiser is None or advertiser.config is None:
        return True
    unallotted = left(advertiser_step.as_of(advertiser, now))
    return unallotted is None or unallotted >= cost
