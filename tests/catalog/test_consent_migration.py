"""What an older version left is accepted, and goes on as it was."""

from adloom.core.ids import SystemIds
from adloom.runtime import migrate
from adloom.runtime.postgres import open_pool
from tests.support.migrating import go_back_to

LINK = """
    WITH placement AS (
        INSERT INTO placements (public_id, slug, label, layout_type) VALUES ($1, 'a', 'A', 'popup') RETURNING id
    ), campaign AS (INSERT INTO campaigns (public_id, name) VALUES ($1, 'C') RETURNING id)
    INSERT INTO campaign_placements (campaign_id, placement_id)
    SELECT campaign.id, placement.id FROM campaign, placement
"""
BANNERS = """
    INSERT INTO banners (public_id, title, primary_image_url, schedule_status, publish_at, bg_color)
    VALUES ($1, 'Undated', 'https://x/', 'scheduled', NULL, '#ff8800'),
           ($2, 'Dated', 'https://x/', 'scheduled', now(), NULL)
"""


async def test_links_of_an_older_version_are_accepted_and_undated_banners_active(database_url: str) -> None:
    await go_back_to(database_url, "0013")
    ids = SystemIds()
    async with open_pool(database_url, size_max=1) as pool:
        await pool.execute(LINK, ids.make())
        await pool.execute(BANNERS, ids.make(), ids.make())

        await migrate.upgrade(database_url)

        [link] = await pool.fetch("SELECT state, reason, is_asked_for FROM campaign_placements")
        banners = await pool.fetch("SELECT title, schedule_status::text FROM banners")
        is_open = await pool.fetchval("SELECT is_open FROM placements")
    assert tuple(link) == ("accepted", None, False)
    assert dict(map(tuple, banners)) == {"Undated": "active", "Dated": "scheduled"}
    assert is_open is False
