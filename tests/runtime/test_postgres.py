"""The pool of connections to PostgreSQL."""

import asyncio

import pytest

from adloom.runtime.postgres import (
    ACQUIRE_SECONDS_MAX,
    IDLE_IN_TRANSACTION_SECONDS_MAX,
    Pool,
    open_pool,
)


async def test_json_is_read_as_it_was_written(pool: Pool) -> None:
    assert await pool.fetchval("SELECT $1::jsonb", {"a": [1, None, "ä"]}) == {"a": [1, None, "ä"]}


async def test_waiting_for_a_connection_is_bounded(database_url: str) -> None:
    async with open_pool(database_url, size_max=1) as pool, pool.acquire():
        started_at = asyncio.get_running_loop().time()

        with pytest.raises(TimeoutError):
            await pool.fetchval("SELECT 1")

        assert asyncio.get_running_loop().time() - started_at == pytest.approx(ACQUIRE_SECONDS_MAX, abs=1)


async def test_a_process_frozen_in_a_transaction_loses_its_locks(pool: Pool) -> None:
    bound = await pool.fetchval("SHOW idle_in_transaction_session_timeout")

    assert bound == f"{IDLE_IN_TRANSACTION_SECONDS_MAX}s"


@pytest.mark.parametrize(("is_reset", "zone"), [(True, "UTC"), (False, "Asia/Kolkata")])
async def test_a_pool_without_reset_does_not_reset_its_connections(
    database_url: str, *, is_reset: bool, zone: str
) -> None:
    async with open_pool(f"{database_url}?options=-ctimezone%3DUTC", size_max=1, is_reset=is_reset) as pool:
        await pool.execute("SET timezone = 'Asia/Kolkata'")

        assert await pool.fetchval("SELECT current_setting('timezone')") == zone
