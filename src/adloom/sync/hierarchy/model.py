"""Ad accounts, sell pages, campaigns, ad sets and ads, and what can be wrong with them."""

from datetime import datetime
from decimal import Decimal
from typing import NewType
from uuid import UUID

import msgspec

from adloom.core.errors import ConflictError, NotFoundError
from adloom.core.ids import AdvertiserId
from adloom.sync.words import BudgetType, EntityStatus, Platform

AdAccountId = NewType("AdAccountId", UUID)
SellpageId = NewType("SellpageId", UUID)
SyncedCampaignId = NewType("SyncedCampaignId", UUID)
AdsetId = NewType("AdsetId", UUID)
AdId = NewType("AdId", UUID)


class AdAccountNotFoundError(NotFoundError):
    """No such ad account, or it is somebody else's."""

    code = "AD_ACCOUNT_NOT_FOUND"


class SellpageNotFoundError(NotFoundError):
    """No such sell page, or it is somebody else's."""

    code = "SELLPAGE_NOT_FOUND"


class SyncedCampaignNotFoundError(NotFoundError):
    """No such campaign of an ad account, or it is somebody else's."""

    code = "SYNCED_CAMPAIGN_NOT_FOUND"


class AdsetNotFoundError(NotFoundError):
    """No such ad set, or it is somebody else's."""

    code = "ADSET_NOT_FOUND"


class AdNotFoundError(NotFoundError):
    """No such ad, or it is somebody else's."""

    code = "AD_NOT_FOUND"


class ExternalIdTakenError(ConflictError):
    """Another one has this external id, and statistics would be counted twice."""

    code = "EXTERNAL_ID_EXISTS"


class StillInUseError(ConflictError):
    """Something hangs on it that must go first."""

    code = "STILL_IN_USE"


class CredentialsNotTakenError(ConflictError):
    """Credentials cannot be kept safely here, so they are not kept at all."""

    code = "CREDENTIALS_NOT_TAKEN"


class AdAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A connection to an account on a platform; its credentials are never read here."""

    id: AdAccountId
    advertiser_id: AdvertiserId
    name: str
    platform: Platform
    external_id: str | None
    is_active: bool
    currency: str
    timezone: str
    credentials_expired_at: datetime | None
    credentials_problem: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class Sellpage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that sells, to which campaigns lead."""

    id: SellpageId
    advertiser_id: AdvertiserId
    name: str
    url: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class SyncedCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign of an ad account."""

    id: SyncedCampaignId
    advertiser_id: AdvertiserId
    ad_account_id: AdAccountId
    sellpage_id: SellpageId
    name: str
    status: EntityStatus
    budget: Decimal
    budget_type: BudgetType
    external_campaign_id: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class Adset(msgspec.Struct, frozen=True, kw_only=True):
    """An ad set of a campaign."""

    id: AdsetId
    advertiser_id: AdvertiserId
    campaign_id: SyncedCampaignId
    name: str
    status: EntityStatus
    external_adset_id: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class Ad(msgspec.Struct, frozen=True, kw_only=True):
    """An ad of an ad set."""

    id: AdId
    advertiser_id: AdvertiserId
    adset_id: AdsetId
    name: str
    status: EntityStatus
    external_ad_id: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
