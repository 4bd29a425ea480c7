"""A database with a table for what tallies record."""

import pytest

from adloom.runtime.postgres import Pool


@pytest.fixture
async def tables(pool: Pool) -> Pool:
    await pool.execute("CREATE TABLE test_rows (key text, number integer, UNIQUE (key, number))")
    return pool
