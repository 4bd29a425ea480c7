"""An upgrade keeps what an older version left; a backup from before it brings all of it back."""

from pathlib import Path

import asyncpg
import pytest

from adloom.core.ids import SystemIds
from adloom.ops.backup.dump import dump_database, restore_database
from adloom.runtime import schema
from adloom.runtime.postgres import open_pool, read_snapshot
from tests.support.migrating import go_back_to

OLDER = "0030"
TABLES = """
    SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
     WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1
"""
CATALOG = """
    WITH placement AS (
        INSERT INTO placements (public_id, slug, label, layout_type) VALUES ($1, 'a', 'A', 'popup') RETURNING id
    ), campaign AS (INSERT INTO campaigns (public_id, name) VALUES ($1, 'C') RETURNING id)
    INSERT INTO campaign_placements (campaign_id, placement_id)
    SELECT campaign.id, placement.id FROM campaign, placement
"""
BANNER = "INSERT INTO banners (public_id, title, primary_image_url) VALUES ($1, 'Autumn', 'https://x/')"
KEPT = """
    SELECT p.public_id, p.slug, c.name, b.title, b.public_id
      FROM campaign_placements l JOIN placements p ON p.id = l.placement_id
      JOIN campaigns c ON c.id = l.campaign_id, banners b
"""


async def read_all(database_url: str) -> dict[str, list[str]]:
    """Return every row of every table as text."""
    connection = await asyncpg.connect(database_url)
    try:
        names = [row[0] for row in await connection.fetch(TABLES)]
        return {
            name: [row[0] for row in await connection.fetch(f"SELECT t::text FROM {name} t ORDER BY 1")]  # noqa: S608 - PostgreSQL's own names
            for name in names
        }
    finally:
        await connection.close()


async def dump(database_url: str, file: Path) -> None:
    async with open_pool(database_url, size_max=1) as pool, read_snapshot(pool) as connection:
        await dump_database(
            database_url, await connection.fetchval("SELECT pg_export_snapshot()"), file, lambda: None
        )


@pytest.mark.slow
async def test_data_of_an_older_version_is_upgraded_brought_back_and_upgraded_again(
    database_url: str, tmp_path: Path
) -> None:
    await go_back_to(database_url, OLDER)
    connection = await asyncpg.connect(database_url)
    ids = SystemIds()
    await connection.execute(CATALOG, ids.make())
    await connection.execute(BANNER, ids.make())
    kept = await connection.fetch(KEPT)
    older, file = await read_all(database_url), tmp_path / "older.dump"
    await dump(database_url, file)

    assert await schema.upgrade_schema(database_url) == schema.read_newest_revision()
    newer = await read_all(database_url)
    upgraded = await connection.fetch(KEPT)
    await connection.execute("DROP SCHEMA public, events, auction, sync CASCADE; CREATE SCHEMA public")
    await restore_database(database_url, file, lambda: None)

    assert await schema.read_current_revision(connection) == OLDER
    assert await read_all(database_url) == older
    assert await schema.upgrade_schema(database_url) == schema.read_newest_revision()
    assert await connection.fetch(KEPT) == upgraded == kept
    assert {name: len(rows) for name, rows in (await read_all(database_url)).items()} == {
        name: len(rows) for name, rows in newer.items()
    }
    await connection.close()
