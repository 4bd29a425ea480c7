"""A small catalog: one placement with three banners in two campaigns."""

from typing import Final

import msgspec

from adloom.core.ids import BannerId, CampaignId, IdSource, PlacementId
from adloom.serving.index.compile import compile_index
from adloom.serving.index.index import Index
from adloom.serving.index.rows import AssignmentRow, PlacementRow, Snapshot
from simulation.tables import CatalogKeys

SLUG: Final = "home"
BANNERS: Final = 3


class Catalog(msgspec.Struct, frozen=True):
    """The index that delivery has, and the keys that the tables have."""

    index: Index
    keys: CatalogKeys


def a_catalog(ids: IdSource) -> Catalog:
    """Compile the catalog of the simulation."""
    placement = PlacementRow(
        key=1,
        id=PlacementId(ids.new()),
        slug=SLUG,
        label="Home",
        layout_type="full_slider",
        max_banners=BANNERS,
        is_active=True,
        fallback_placeholder_url=None,
        allow_partial_render=False,
    )
    campaign_ids = [CampaignId(ids.new()) for _ in range(2)]
    assignments = [
        _assignment(number, campaign_ids[number % 2], BannerId(ids.new())) for number in range(BANNERS)
    ]
    snapshot = Snapshot(
        version=1,
        placements=[placement],
        assignments=assignments,
        banner_ids=[one.banner_id for one in assignments],
        campaign_ids=list(campaign_ids),
    )
    keys = CatalogKeys(
        banners={one.banner_id.int: number for number, one in enumerate(assignments)},
        placements={placement.id.int: placement.key},
        campaigns={campaign_id.int: number for number, campaign_id in enumerate(campaign_ids)},
    )
    return Catalog(compile_index(snapshot), keys)


def _assignment(number: int, campaign_id: CampaignId, banner_id: BannerId) -> AssignmentRow:
    return AssignmentRow(
        placement_key=1,
        campaign_id=campaign_id,
        banner_id=banner_id,
        starts_at=None,
        ends_at=None,
        display_order=number,
        weight=100,
        campaign_priority=0,
        banner_priority=0,
        is_fallback=False,
        fallback_priority=None,
        title=f"Banner {number}",
        headline=None,
        subheadline=None,
        description=None,
        primary_image_url="https://cdn.example/banner.png",
        primary_image_alt=None,
        mobile_image_url=None,
        video_url=None,
        media_variants={},
        cta_label=None,
        cta_url="https://shop.example/",
        cta_open_new_tab=False,
        utm_source=None,
        utm_medium=None,
        utm_campaign=None,
        utm_content=None,
        bg_color=None,
        transition_duration_ms=None,
    )
