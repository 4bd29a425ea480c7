"""Builders of the rows that an index is compiled from; each names only what its test is about."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId, SiteId
from adloom.serving.index.rows import AssignmentRow, PlacementRow, Snapshot
from adloom.serving.index.site import SiteRow

HOME_KEY = 1


def an_id(number: int) -> UUID:
    """A well-formed UUIDv7 that is the same in every run."""
    return UUID(int=(0x7 << 76) | (0b10 << 62) | number)


def a_placement_row(**fields: Any) -> PlacementRow:
    row = PlacementRow(
        key=HOME_KEY,
        id=PlacementId(an_id(1)),
        slug="home",
        label="Home",
        layout_type="full_slider",
        max_banners=3,
        is_active=True,
        fallback_placeholder_url=None,
        allow_partial_render=False,
    )
    return msgspec.structs.replace(row, **fields)


def an_assignment_row(**fields: Any) -> AssignmentRow:
    row = AssignmentRow(
        placement_key=HOME_KEY,
        campaign_id=CampaignId(an_id(2)),
        banner_id=BannerId(an_id(3)),
        title="A banner",
        primary_image_url="https://cdn.example.com/a.png",
        cta_url="https://shop.example.com/",
    )
    return msgspec.structs.replace(row, **fields)


def a_site_row(**fields: Any) -> SiteRow:
    return msgspec.structs.replace(SiteRow(key=1, id=SiteId(an_id(4)), domain="example.com"), **fields)


def a_snapshot(
    *assignments: AssignmentRow, version: int = 1, sites: Sequence[SiteRow] = (), **placement: Any
) -> Snapshot:
    return Snapshot(
        version=version,
        placements=[a_placement_row(**placement)],
        assignments=list(assignments),
        banner_ids=sorted({one.banner_id for one in assignments}),
        campaign_ids=sorted({one.campaign_id for one in assignments}),
        sites=list(sites),
    )
