"""Ad accounts, sell pages, campaigns, ad sets and ads, and what can be wrong with them."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, ClassVar, Final, NewType
from uuid import UUID

import msgspec
from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from adloom.core.ids import AdvertiserId
from adloom.resource.shapes import TimeZone
from adloom.runtime.http.api.shapes import Flag, Name, Text255, WebAddress, make_pattern_check
from adloom.sync.words import BudgetType, EntityStatus, Platform

AdAccountId = NewType("AdAccountId", UUID)
SellpageId = NewType("SellpageId", UUID)
SyncedCampaignId = NewType("SyncedCampaignId", UUID)
AdsetId = NewType("AdsetId", UUID)
AdId = NewType("AdId", UUID)


BUDGET_MAX: Final = 9_999_999_999


def _parse_amount(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number like 2500 or 99.5")  # noqa: TRY004 - Pydantic reports only this
    # The shortest text of a float is what its writer wrote.
    amount = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    if not amount.is_finite() or not 0 <= amount <= BUDGET_MAX:
        raise ValueError(f"must be between 0 and {BUDGET_MAX}")
    if amount != round(amount, 2):
        raise ValueError("must have at most 2 decimal places")
    return round(amount, 2)


Amount = Annotated[
    Decimal,
    BeforeValidator(_parse_amount),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": BUDGET_MAX}),
]
Currency = Annotated[
    str,
    AfterValidator(
        make_pattern_check(r"[A-Z]{3}", "must be a currency of three capitals like USD (ISO 4217)")
    ),
]


class AdAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A connection to an account on a platform. Its credentials are never read here, only whether it has any."""

    virtual: ClassVar[Mapping[str, str]] = {"has_credentials": "it.credentials IS NOT NULL"}

    id: AdAccountId
    advertiser_id: AdvertiserId
    name: Name
    platform: Platform = Platform.MOCK
    external_id: Text255 | None = None
    is_active: Flag = True
    currency: Currency = "USD"
    timezone: TimeZone = "UTC"
    has_credentials: bool = False
    credentials_expired_at: datetime | None = None
    credentials_problem: str | None = None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class Sellpage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that sells, to which campaigns lead."""

    id: SellpageId
    advertiser_id: AdvertiserId
    name: Name
    url: WebAddress | None = None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class SyncedCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign of an ad account; its budget is in the account's currency."""

    id: SyncedCampaignId
    advertiser_id: AdvertiserId
    ad_account_id: AdAccountId
    sellpage_id: SellpageId
    name: Name
    status: EntityStatus = EntityStatus.ACTIVE
    budget: Amount
    budget_type: BudgetType = BudgetType.DAILY
    external_campaign_id: Text255 | None = None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class Adset(msgspec.Struct, frozen=True, kw_only=True):
    """An ad set of a campaign."""

    id: AdsetId
    advertiser_id: AdvertiserId
    campaign_id: SyncedCampaignId
    name: Name
    status: EntityStatus = EntityStatus.ACTIVE
    external_adset_id: Text255 | None = None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class Ad(msgspec.Struct, frozen=True, kw_only=True):
    """An ad of an ad set."""

    id: AdId
    advertiser_id: AdvertiserId
    adset_id: AdsetId
    name: Name
    status: EntityStatus = EntityStatus.ACTIVE
    external_ad_id: Text255 | None = None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
