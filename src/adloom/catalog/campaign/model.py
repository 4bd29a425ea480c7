"""A campaign, and what can be wrong with one."""

from datetime import datetime
from typing import Annotated

import msgspec
from pydantic import Field

from adloom.auction.bid import BidType
from adloom.catalog.campaign.lifecycle import CampaignStatus, check_move
from adloom.catalog.source import Source
from adloom.core.errors import BadRequestError
from adloom.core.ids import AdvertiserId, CampaignId, UserId
from adloom.resource.shapes import Paisa, Price, TimeZone
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.shapes import Moment, Name, Natural, Text, Text255
from adloom.schedule.pacing import PacingStrategy


class CampaignAlreadyDeletedError(BadRequestError):
    """The campaign is deleted, so it cannot be changed or deleted again."""

    code = "CAMPAIGN_ALREADY_DELETED"


class CampaignNotDeletedError(BadRequestError):
    """Only what is deleted can be restored."""

    code = "CAMPAIGN_NOT_DELETED"


class CampaignDateError(BadRequestError):
    """The dates are missing or in the wrong order."""

    code = "CAMPAIGN_DATE_INVALID"


class Campaign(SoftDeletable, frozen=True, kw_only=True):
    """A purpose with dates."""

    noun_name = "campaign"
    already_deleted = CampaignAlreadyDeletedError
    not_deleted = CampaignNotDeletedError

    id: CampaignId
    advertiser_id: AdvertiserId | None
    name: Name
    description: Text | None = None
    source: Source = Source.INTERNAL
    status: CampaignStatus = CampaignStatus.DRAFT
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    budget_total_paisa: Paisa | None = None
    budget_daily_paisa: Paisa | None = None
    impression_cap: Natural | None = None
    click_cap: Natural | None = None
    bid_type: BidType = BidType.CPM
    bid_amount_micros: Annotated[
        Price | None, Field(alias="bidAmount", description="Per thousand impressions, or per click.")
    ] = None
    pacing_strategy: PacingStrategy = PacingStrategy.SMOOTH
    timezone: TimeZone = "UTC"
    advertiser_name: Text255 | None = None
    advertiser_contact: Text255 | None = None
    contract_ref: Text255 | None = None
    priority: Natural = 0
    created_by: UserId | None = None
    created_at: datetime

    def with_dates_checked(self) -> "Campaign":
        """Return the campaign, or raise where its dates contradict each other."""
        if self.starts_at is not None and self.ends_at is not None and self.starts_at >= self.ends_at:
            raise CampaignDateError("endsAt must be after startsAt.")
        if self.status is CampaignStatus.SCHEDULED and self.starts_at is None:
            raise CampaignDateError("A scheduled campaign needs a startsAt.")
        return self

    def moved_to(self, status: CampaignStatus, *, now: datetime) -> "Campaign":
        """Return the campaign in another status; raises for a move that is not in the table."""
        check_move(self.present().status, status)
        return msgspec.structs.replace(self, status=status, updated_at=now).with_dates_checked()

    def scheduled(self, *, starts_at: datetime | None, ends_at: datetime | None, now: datetime) -> "Campaign":
        """Return the campaign as scheduled, with new dates where they are given."""
        dated = msgspec.structs.replace(
            self, starts_at=starts_at or self.starts_at, ends_at=ends_at or self.ends_at
        )
        return dated.moved_to(CampaignStatus.SCHEDULED, now=now)
