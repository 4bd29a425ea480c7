"""Rows of the catalog for events to refer to."""

from uuid import UUID

from adloom.runtime.postgres import Pool
from tests.events.builders import BANNER, CAMPAIGN, PLACEMENT


async def insert_placement(pool: Pool, public_id: UUID = PLACEMENT) -> None:
    await pool.execute(
        "INSERT INTO placements (public_id, slug, label, layout_type) VALUES ($1, $2, 'A place', 'full_static')",
        public_id,
        f"slug-{public_id}",
    )


async def insert_banner(pool: Pool, public_id: UUID = BANNER) -> None:
    await pool.execute(
        "INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'A banner', 'https://i.example/a.png')",
        public_id,
    )


async def insert_campaign(pool: Pool, public_id: UUID = CAMPAIGN) -> None:
    await pool.execute("INSERT INTO campaigns (public_id, name) VALUES ($1, 'A campaign')", public_id)


async def insert_catalog(pool: Pool) -> None:
    await insert_placement(pool)
    await insert_banner(pool)
    await insert_campaign(pool)


async def cap_banners(pool: Pool) -> None:
    """Give all banners a frequency cap: others are not counted."""
    await pool.execute(
        """
        INSERT INTO frequency_caps (public_id, banner_id, max_impressions_per_user, "window")
        SELECT gen_random_uuid(), id, 5, 'Day' FROM banners
        """
    )
