"""A campaign, and what can be wrong with one."""

from datetime import datetime

import msgspec

from adloom.auction.bid import BidType
from adloom.catalog.campaign.lifecycle import CampaignStatus, check_move
from adloom.catalog.source import Source
from adloom.core.errors import BadRequestError
from adloom.core.ids import AdvertiserId, CampaignId, UserId
from adloom.core.money import Micros
from adloom.resource.soft_delete import SoftDeletable
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
    name: str
    description: str | None
    source: Source
    status: CampaignStatus
    starts_at: datetime | None
    ends_at: datetime | None
    budget_total_paisa: int | None
    budget_daily_paisa: int | None
    impression_cap: int | None
    click_cap: int | None
    bid_type: BidType
    bid_amount_micros: Micros | None
    pacing_strategy: PacingStrategy
    timezone: str
    advertiser_name: str | None
    advertiser_contact: str | None
    contract_ref: str | None
    priority: int
    created_by: UserId | None
    created_at: datetime

    def with_dates_checked(self) -> "Campaign":
        """Give the campaign itself, if its dates make sense together."""
        if self.starts_at is not None and self.ends_at is not None and self.starts_at >= self.ends_at:
            raise CampaignDateError("endsAt must be after startsAt.")
        if self.status is CampaignStatus.SCHEDULED and self.starts_at is None:
            raise CampaignDateError("A scheduled campaign needs a startsAt.")
        return self

    def moved_to(self, status: CampaignStatus, *, now: datetime) -> "Campaign":
        """Give the campaign in another status, if the table of moves has the way there."""
        check_move(self.present().status, status)
        return msgspec.structs.replace(self, status=status, updated_at=now).with_dates_checked()

    def scheduled(self, *, starts_at: datetime | None, ends_at: datetime | None, now: datetime) -> "Campaign":
        """Give the campaign as scheduled, with new dates where they are given."""
        dated = msgspec.structs.replace(
            self, starts_at=starts_at or self.starts_at, ends_at=ends_at or self.ends_at
        )
        return dated.moved_to(CampaignStatus.SCHEDULED, now=now)
