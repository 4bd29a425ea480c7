"""Reads sites and their slots for site actors."""

from collections.abc import Sequence
from typing import Final

from adloom.core.ids import SiteId
from adloom.pages.site.messages import ConfigureSite, SiteConfig, SlotConfig
from adloom.resource.changes import read_version
from adloom.runtime.postgres import Pool, raise_if_away, read_snapshot

SITES: Final = """
    SELECT public_id, domain, verified_host IS NOT NULL AS is_verified, is_suspended
      FROM sites WHERE public_id = ANY ($1::uuid[])
"""
SLOTS: Final = """
    SELECT site.public_id AS site_id, slug, recommended_width AS width, recommended_height AS height
      FROM placements AS placement
      JOIN sites AS site ON site.id = placement.site_id
     WHERE placement.delivery = 'contextual' AND placement.is_active AND site.public_id = ANY ($1::uuid[])
     ORDER BY slug
"""


async def read_sites(pool: Pool, site_ids: Sequence[SiteId]) -> dict[SiteId, ConfigureSite]:
    """Read sites at one version of the catalog; of one that is gone, that it is."""
    with raise_if_away("Sites cannot be read"):
        async with read_snapshot(pool) as connection:
            version = await read_version(connection)
            rows = await connection.fetch(SITES, site_ids)
            slots: dict[SiteId, list[SlotConfig]] = {}
            for site_id, *slot in await connection.fetch(SLOTS, site_ids):
                slots.setdefault(SiteId(site_id), []).append(SlotConfig(*slot))
    found = {
        SiteId(site_id): SiteConfig(
            domain=domain,
            is_verified=is_verified,
            is_suspended=is_suspended,
            slots=tuple(slots.get(SiteId(site_id), ())),
        )
        for site_id, domain, is_verified, is_suspended in rows
    }
    return {site_id: ConfigureSite(version, found.get(site_id)) for site_id in site_ids}
