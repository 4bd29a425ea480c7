"""The pool of connections to PostgreSQL."""

import asyncio

import pytest

from adloom.runtime.postgres import (
    ACQUIRE_SECONDS_MAX,
    IDLE_IN_TRANSACTION_SECONDS_MAX,
    Pool,
    open_pool,
)


async def test_json_comes_back_as_it_went_in(pool: Pool) -> None:
    assert await pool.fetchval("SELECT $1::jsonb", {"a": [1, None, "ä"]}) == {"a": [1, None, "ä"]}


async def test_whoever_gets_no_connection_in_time_is_told_so(database_url: str) -> None:
    async with open_pool(database_url, size_max=1) as pool, pool.acquire():
        started_at = asyncio.get_running_loop().time()

        with pytest.raises(TimeoutError):
            await pool.fetchval("SELECT 1")

        assert asyncio.get_running_loop().time() - started_at == pytest.approx(ACQUIRE_SECONDS_MAX, abs=1)


async def test_who_is_frozen_in_a_transaction_does_not_keep_its_locks_for_ever(pool: Pool) -> None:
    bound = await pool.fetchval("SHOW idle_in_transaction_session_timeout")

    assert bound == f"{IDLE_IN_TRANSACTION_SECONDS_MAX}s"


@pytest.mark.parametrize(("is_reset", "zone"), [(True, "UTC"), (False, "Asia/Kolkata")])
async def test_who_is_trusted_to_leave_nothing_behind_is_not_tidied_up_after(
    database_url: str, *, is_reset: bool, zone: str
) -> None:
    async with open_pool(f"{database_url}?options=-ctimezone%3DUTC", size_max=1, is_reset=is_reset) as pool:
        await pool.execute("SET timezone = 'Asia/Kolkata'")

        assert await pool.fetchval("SELECT current_setting('timezone')") == zone
