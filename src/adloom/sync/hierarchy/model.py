"""Ad accounts, sell pages, campaigns, ad sets and ads, and what can be wrong with them."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, ClassVar, Final
from uuid import UUID

import msgspec
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from adloom.core.ids import AdvertiserId
from adloom.resource.shapes import TimeZone, parse_amount
from adloom.runtime.http.api.shapes import NOT_BLANK, Flag, Name, Text255, WebAddress, make_pattern_check
from adloom.sync.words import BudgetType, EntityStatus, Platform

BUDGET_MAX: Final = 9_999_999_999


def _parse_budget(value: object) -> Decimal:
    return round(parse_amount(value, like="2500 or 99.5", most=BUDGET_MAX, places=2), 2)


Amount = Annotated[
    Decimal,
    BeforeValidator(_parse_budget),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": BUDGET_MAX}),
]
Currency = Annotated[
    str,
    AfterValidator(
        make_pattern_check(r"[A-Z]{3}", "must be a currency of three capitals like USD (ISO 4217)")
    ),
]


def _normalize_external_id(text: str) -> str:
    """Return one spelling of an id: ids that are pasted have blanks around them, and ids of Adloom any spelling of a UUID."""
    text = text.strip()
    if not text:
        raise ValueError("must not be blank; null means that there is none")
    try:
        return str(UUID(text))
    except ValueError:
        return text


ExternalId = Annotated[
    Text255, AfterValidator(_normalize_external_id), Field(json_schema_extra={"pattern": NOT_BLANK})
]


class SellerRow(msgspec.Struct, frozen=True, kw_only=True):
    """What all rows of a seller have."""

    id: UUID
    advertiser_id: AdvertiserId
    name: Name
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class AdAccount(SellerRow, frozen=True, kw_only=True):
    """A connection to an account on a platform. Its credentials are never read here, only whether it has any."""

    virtual: ClassVar[Mapping[str, str]] = {"has_credentials": "it.credentials IS NOT NULL"}

    platform: Platform = Platform.MOCK
    external_id: ExternalId | None = None
    is_active: Flag = True
    currency: Currency = "USD"
    timezone: TimeZone = "UTC"
    has_credentials: bool = False
    credentials_expired_at: datetime | None = None
    credentials_problem: str | None = None


class Sellpage(SellerRow, frozen=True, kw_only=True):
    """A page that sells, to which campaigns lead."""

    url: WebAddress | None = None


class SyncedCampaign(SellerRow, frozen=True, kw_only=True):
    """A campaign of an ad account; its budget is in the account's currency."""

    ad_account_id: UUID
    sellpage_id: UUID
    status: EntityStatus = EntityStatus.ACTIVE
    budget: Amount
    budget_type: BudgetType = BudgetType.DAILY
    external_campaign_id: ExternalId | None = None


class Adset(SellerRow, frozen=True, kw_only=True):
    """An ad set of a campaign."""

    campaign_id: UUID
    status: EntityStatus = EntityStatus.ACTIVE
    external_adset_id: ExternalId | None = None


class Ad(SellerRow, frozen=True, kw_only=True):
    """An ad of an ad set."""

    adset_id: UUID
    status: EntityStatus = EntityStatus.ACTIVE
    external_ad_id: ExternalId | None = None
