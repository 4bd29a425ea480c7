"""The databases of tests: emptied, and used again."""

import asyncio

import pytest

from adloom.runtime.postgres import Pool
from tests.support.databases import DELETE_BYTES_MAX, Databases

ROW_BYTES = 250
FILL = """
    INSERT INTO audit_entries (at, subject, role, noun, noun_id, action, changes)
    SELECT now(), repeat('x', $1), 'admin', 'thing', number::text, 'create', '{}'
      FROM generate_series(1, $2) AS number
"""


async def test_a_database_is_as_before_after_a_large_table_but_not_after_statistics(
    databases: Databases, database_url: str, pool: Pool
) -> None:
    await pool.execute(FILL, ROW_BYTES, 2 * DELETE_BYTES_MAX // ROW_BYTES)

    await asyncio.to_thread(databases.empty, database_url)

    assert await pool.fetchval("SELECT count(*) FROM audit_entries") == 0
    await pool.execute("ANALYZE audit_entries")
    with pytest.raises(AssertionError, match="the schema has changed"):
        await asyncio.to_thread(databases.empty, database_url)
