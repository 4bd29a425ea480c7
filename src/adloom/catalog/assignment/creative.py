"""Creatives hang on a campaign: its owner owns them, and their change is one of it.

Unlike an assignment a creative names no placement: a publisher decides about the banner for its whole site.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.catalog.assignment.resource import BANNER_USABLE
from adloom.catalog.banner import banners
from adloom.catalog.campaign.resource import campaigns
from adloom.core.errors import BannerNotFoundError, ConflictError
from adloom.core.ids import BannerId, CampaignId
from adloom.resource.access import ADVERTISER, Scope
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.resource import Resource

CREATIVES_A_CAMPAIGN_MAX: Final = 200


class Creative(msgspec.Struct, frozen=True, kw_only=True):
    """A banner that a campaign shows in contextual slots."""

    campaign_id: CampaignId
    banner_id: BannerId
    created_at: datetime


creatives = Resource(
    struct=Creative,
    name="creative",
    table_name="creatives",
    missing="The campaign does not show this banner in contextual slots.",
    owner=ADVERTISER,
    identity=("campaign_id", "banner_id"),
    references={"campaign_id": campaigns, "banner_id": banners},
    parents=("campaign_id", "banner_id"),
    touches=(IndexedNoun.CAMPAIGN, "campaign_id"),
    docs={"body": "A banner for a campaign to show in contextual slots."},
    create_form={"banner_id": (UUID, ...)},
    taken=lambda _creative: ConflictError(
        "The campaign shows this banner already.", code="CREATIVE_ALREADY_EXISTS"
    ),
    list_name="creatives",
    siblings_max=CREATIVES_A_CAMPAIGN_MAX,
)


async def insert_creative(write: CatalogWrite, scope: Scope, creative: Creative) -> None:
    """Add a banner of the scope to a campaign that is locked."""
    if not await write.connection.fetchval(BANNER_USABLE, creative.banner_id, scope.account_id):
        raise BannerNotFoundError("There is no banner with this id.")
    counts = await creatives.table.count_siblings(write.connection, [creative.campaign_id])
    if counts.get(creative.campaign_id, 0) >= CREATIVES_A_CAMPAIGN_MAX:
        raise ConflictError(
            f"The campaign has {CREATIVES_A_CAMPAIGN_MAX} creatives, which is the most it may have.",
            code="CREATIVE_LIMIT_REACHED",
        )
    await creatives.insert(write, creative)
