"""One change of many campaigns: each is changed whole or not at all, and has its own result."""

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec

from adloom.catalog.campaign.model import Campaign, CampaignStatus, CampaignTransitionError
from adloom.catalog.campaign.resource import campaigns
from adloom.core.errors import AdloomError
from adloom.resource.access import Scope
from adloom.resource.changes import Catalog
from adloom.runtime.http.api.shapes import Patch

CAMPAIGNS_MAX: Final = 100
# What several campaigns may get at once.
CHANGEABLE: Final = (
    *("bid_amount_micros", "starts_at", "ends_at"),
    *("budget_daily_paisa", "budget_total_paisa", "labels"),
)

Rule = Callable[[Campaign], Campaign]


class BulkAction(StrEnum):
    """What is done to each campaign."""

    PAUSE = "pause"
    RESUME = "resume"
    CHANGE = "change"


class BulkResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one campaign: how it is now, or why nothing was changed."""

    id: UUID
    campaign: Campaign | None = None
    error: AdloomError | None = None

    @property
    def is_done(self) -> bool:
        return self.error is None


def build_rule(action: BulkAction, patch: Patch | None, now: datetime) -> Rule:
    """Return what an action does to one campaign; one that has it already stays as it is."""
    match action:
        case BulkAction.PAUSE:
            return lambda one: _move(one, CampaignStatus.PAUSED, now)
        case BulkAction.RESUME:
            return lambda one: _resume(one, now)
        case BulkAction.CHANGE:
            return lambda one: one if patch is None else campaigns.apply(patch, one, now)


async def change_all(
    catalog: Catalog, scope: Scope, campaign_ids: Sequence[UUID], rule: Rule
) -> list[BulkResult]:
    """Change campaigns one after the other, each in a transaction of its own."""
    results: list[BulkResult] = []
    for campaign_id in dict.fromkeys(campaign_ids):
        try:
            async with catalog.write() as write:
                after = await campaigns.change(write, scope, campaign_id, rule)
        except AdloomError as error:
            results.append(BulkResult(id=campaign_id, error=error))
        else:
            results.append(BulkResult(id=campaign_id, campaign=after))
    return results


def _move(campaign: Campaign, status: CampaignStatus, now: datetime) -> Campaign:
    return campaign if campaign.require_present().status is status else campaign.moved_to(status, now=now)


def _resume(campaign: Campaign, now: datetime) -> Campaign:
    # A draft becomes active by a decision about itself, not among others.
    if campaign.require_present().status not in {CampaignStatus.PAUSED, CampaignStatus.ACTIVE}:
        raise CampaignTransitionError(
            f"The campaign is {campaign.status}. Only one that is paused can be resumed."
        )
    return _move(campaign, CampaignStatus.ACTIVE, now)
