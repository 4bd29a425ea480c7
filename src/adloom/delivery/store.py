"""Reading the catalog for the index. Only the keeper of the index imports this, never the public path."""

from typing import cast
from uuid import UUID

import msgspec

from adloom.delivery.rows import AssignmentRow, Changes, PlacementRow, Snapshot
from adloom.runtime.postgres import Connection

VERSION = "SELECT version FROM catalog_version"
OLDEST_CHANGE = "SELECT coalesce(min(version), 0) FROM catalog_changes"

PLACEMENTS = """
    SELECT id AS key, public_id AS id, slug, label, layout_type::text AS layout_type, max_banners, is_active,
           fallback_placeholder_url, allow_partial_render
      FROM placements
     WHERE $1::integer[] IS NULL OR id = ANY ($1)
"""
ASSIGNMENTS = """
    SELECT assignment.placement_id AS placement_key, campaign.public_id AS campaign_id, banner.public_id AS banner_id,
           assignment.is_active AND link.is_active AND banner.is_active AND campaign.status = 'active'
               AND banner.deleted_at IS NULL AND campaign.deleted_at IS NULL AS is_live,
           campaign.starts_at, campaign.ends_at,
           assignment.display_order, assignment.weight, campaign.priority AS campaign_priority,
           banner.priority AS banner_priority, assignment.is_fallback, assignment.fallback_priority,
           banner.title, coalesce(assignment.override_headline, banner.headline) AS headline,
           coalesce(assignment.override_subheadline, banner.subheadline) AS subheadline, banner.description,
           banner.primary_image_url, banner.primary_image_alt, banner.mobile_image_url, banner.video_url,
           banner.media_variants, coalesce(assignment.override_cta_label, banner.cta_label) AS cta_label,
           coalesce(assignment.override_cta_url, banner.cta_url) AS cta_url, banner.cta_open_new_tab,
           banner.utm_source, banner.utm_medium, banner.utm_campaign, banner.utm_content, banner.bg_color,
           assignment.transition_duration_ms
      FROM banner_assignments AS assignment
      JOIN campaign_placements AS link USING (campaign_id, placement_id)
      JOIN campaigns AS campaign ON campaign.id = assignment.campaign_id
      JOIN banners AS banner ON banner.id = assignment.banner_id
     WHERE $1::integer[] IS NULL OR assignment.placement_id = ANY ($1)
"""
# Deleted ones too: an offer may be reported after what it offered has gone.
BANNER_IDS = "SELECT public_id FROM banners WHERE $1::integer[] IS NULL OR id = ANY ($1)"
CAMPAIGN_IDS = "SELECT public_id FROM campaigns WHERE $1::integer[] IS NULL OR id = ANY ($1)"

CHANGED_KEYS = "SELECT DISTINCT noun, noun_key FROM catalog_changes WHERE version > $1"
AFFECTED_PLACEMENTS = """
    SELECT DISTINCT placement_id FROM banner_assignments
     WHERE banner_id = ANY ($1::integer[]) OR campaign_id = ANY ($2::integer[])
"""


async def version(connection: Connection) -> int:
    """Tell the catalog's version."""
    return cast("int", await connection.fetchval(VERSION))


async def snapshot(connection: Connection) -> Snapshot:
    """Read the whole catalog, all of it at one version."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        return Snapshot(
            version=await version(connection),
            placements=await _placements(connection, None),
            assignments=await _assignments(connection, None),
            banner_ids=await _ids(connection, BANNER_IDS, None),
            campaign_ids=await _ids(connection, CAMPAIGN_IDS, None),
        )


async def changes(connection: Connection, *, since: int) -> Changes | None:
    """Read what changed after a version, None where that is too long ago to know."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        if await connection.fetchval(OLDEST_CHANGE) > since + 1:
            return None
        placement_keys, banner_keys, campaign_keys = await _changed_keys(connection, since)
        return Changes(
            version=await version(connection),
            placement_keys=placement_keys,
            placements=await _placements(connection, placement_keys),
            assignments=await _assignments(connection, placement_keys),
            banner_ids=await _ids(connection, BANNER_IDS, banner_keys),
            campaign_ids=await _ids(connection, CAMPAIGN_IDS, campaign_keys),
        )


async def _changed_keys(connection: Connection, since: int) -> tuple[list[int], list[int], list[int]]:
    keys: dict[str, list[int]] = {"placement": [], "banner": [], "campaign": []}
    for noun, key in await connection.fetch(CHANGED_KEYS, since):
        keys[noun].append(key)
    affected = await connection.fetch(AFFECTED_PLACEMENTS, keys["banner"], keys["campaign"])
    placement_keys = {*keys["placement"], *(row[0] for row in affected)}
    return sorted(placement_keys), keys["banner"], keys["campaign"]


async def _placements(connection: Connection, keys: list[int] | None) -> list[PlacementRow]:
    return [msgspec.convert(dict(row), PlacementRow) for row in await connection.fetch(PLACEMENTS, keys)]


async def _assignments(connection: Connection, keys: list[int] | None) -> list[AssignmentRow]:
    return [msgspec.convert(dict(row), AssignmentRow) for row in await connection.fetch(ASSIGNMENTS, keys)]


async def _ids(connection: Connection, query: str, keys: list[int] | None) -> list[UUID]:
    return [row[0] for row in await connection.fetch(query, keys)]
