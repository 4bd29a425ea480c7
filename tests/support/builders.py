"""Entities of the catalog with defaults: a test names only what it is about."""

import itertools
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from adloom.auction.bid import BidType
from adloom.catalog.campaign.model import Campaign, CampaignStatus, Source
from adloom.core.ids import CampaignId
from adloom.schedule.pacing import PacingStrategy

Json = dict[str, Any]

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
UNKNOWN_ID = UUID("01890000-0000-7000-8000-000000000000")

_numbers = itertools.count(1)


def a_campaign(
    *,
    status: CampaignStatus = CampaignStatus.DRAFT,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    deleted_at: datetime | None = None,
) -> Campaign:
    return Campaign(
        id=CampaignId(UNKNOWN_ID),
        advertiser_id=None,
        name="Summer",
        description=None,
        source=Source.INTERNAL,
        status=status,
        starts_at=starts_at,
        ends_at=ends_at,
        budget_total_paisa=None,
        budget_daily_paisa=None,
        impression_cap=None,
        click_cap=None,
        bid_type=BidType.CPM,
        bid_amount_micros=None,
        pacing_strategy=PacingStrategy.SMOOTH,
        timezone="UTC",
        advertiser_name=None,
        advertiser_contact=None,
        contract_ref=None,
        priority=0,
        created_by=None,
        created_at=NOON,
        updated_at=NOON,
        deleted_at=deleted_at,
    )


def placement_body(**fields: object) -> Json:
    slug = f"place-{next(_numbers)}"
    return {"slug": slug, "label": f"Label of {slug}", "layoutType": "full_slider", **fields}


def banner_body(**fields: object) -> Json:
    title = f"Banner {next(_numbers)}"
    return {"title": title, "primaryImageUrl": "https://cdn.example.com/image.png", **fields}


def campaign_body(**fields: object) -> Json:
    return {"name": f"Campaign {next(_numbers)}", **fields}


def advertiser_body(**fields: object) -> Json:
    return {"name": f"Advertiser {next(_numbers)}", **fields}


def publisher_body(**fields: object) -> Json:
    return {"name": f"Publisher {next(_numbers)}", **fields}


def site_body(**fields: object) -> Json:
    return {"domain": f"site-{next(_numbers)}.example.com", **fields}


def reference_body(**fields: object) -> Json:
    number = next(_numbers)
    return {"id": number, "label": f"Record {number}", **fields}


def rule_body(**fields: object) -> Json:
    return {"ruleType": "country", "operator": "in", "value": ["DE"], **fields}
