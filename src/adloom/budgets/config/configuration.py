"""Configurations of budget actors, made from rows of the catalog."""

# pure

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.bidding.window import BidStrategy
from adloom.budgets.messages import ConfigureAdvertiser, ConfigureCampaign
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros, micros_from_paisa
from adloom.schedule.pacing import PacingStrategy
from adloom.schedule.schedule import find_zone

ANY_ZONE: Final = "UTC"


class AdvertiserRow(msgspec.Struct, frozen=True, kw_only=True):
    """An advertiser, as the catalog has it."""

    id: UUID
    is_deleted: bool
    daily_budget_paisa: int | None
    timezone: str


class CampaignRow(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign as the catalog has it, with its advertiser."""

    id: UUID
    advertiser: AdvertiserRow | None
    status: str
    is_deleted: bool
    starts_at: datetime | None
    ends_at: datetime | None
    budget_daily_paisa: int | None
    budget_total_paisa: int | None
    pacing_strategy: str
    timezone: str
    impression_cap: int | None = None
    click_cap: int | None = None
    bid_amount_micros: int | None = None
    bid_strategy: str = BidStrategy.FIXED
    target_cpa_micros: int | None = None


def build_campaign_config(
    row: CampaignRow, *, version: int, hold_seconds: int, now: datetime
) -> ConfigureCampaign:
    """Use the day of the advertiser, if there is one."""
    payer = row.advertiser
    return ConfigureCampaign(
        version=version,
        campaign_id=CampaignId(row.id),
        advertiser_id=None if payer is None else AdvertiserId(payer.id),
        is_running=is_running(row, now),
        daily_budget=_convert_paisa(row.budget_daily_paisa),
        total_budget=_convert_paisa(row.budget_total_paisa),
        pacing=PacingStrategy(row.pacing_strategy),
        timezone=_check_zone(row.timezone if payer is None else payer.timezone),
        hold_seconds=hold_seconds,
        is_allotted=payer is not None and not payer.is_deleted and payer.daily_budget_paisa is not None,
        impression_cap=row.impression_cap,
        click_cap=row.click_cap,
        has_bid=bool(row.bid_amount_micros),
        bid_strategy=BidStrategy(row.bid_strategy),
        target=None if not row.target_cpa_micros else Micros(row.target_cpa_micros),
    )


def build_advertiser_config(row: AdvertiserRow, *, version: int) -> ConfigureAdvertiser:
    return ConfigureAdvertiser(
        version=version,
        advertiser_id=AdvertiserId(row.id),
        is_active=not row.is_deleted,
        daily_budget=_convert_paisa(row.daily_budget_paisa),
        timezone=_check_zone(row.timezone),
    )


def is_running(row: CampaignRow, now: datetime) -> bool:
    """Whether the campaign may serve, now or once it starts.

    It starts at the second, before anyone tells us: so it may be leased ahead.
    """
    if row.is_deleted or (row.advertiser is not None and row.advertiser.is_deleted):
        return False
    if row.ends_at is not None and row.ends_at <= now:
        return False
    return row.status == "active" or (row.status == "scheduled" and row.starts_at is not None)


def _convert_paisa(paisa: int | None) -> Micros | None:
    return None if paisa is None else micros_from_paisa(paisa)


def _check_zone(name: str) -> str:
    """Fall back to UTC: a zone that this machine does not know must not stop a budget."""
    return name if find_zone(name) is not None else ANY_ZONE
