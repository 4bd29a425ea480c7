"""The pool of connections to PostgreSQL."""

import asyncio
import re
from datetime import date
from pathlib import Path

import pytest

import adloom
from adloom.runtime import postgres
from adloom.runtime.postgres import (
    ACQUIRE_SECONDS_MAX,
    IDLE_IN_TRANSACTION_SECONDS_MAX,
    Pool,
    open_pool,
    read_snapshot,
    reset_after_use,
)

SOURCE = Path(adloom.__file__).parent
# Locks and settings that are not those of a transaction.
OF_A_SESSION = re.compile(
    r"pg_(try_)?advisory_lock|set_config\([^)]*false\)|\bSET (SESSION|timezone|statement)|\bLISTEN "
)
WITHOUT_A_POOL = {"migrate.py"}


async def test_json_is_read_as_it_was_written(pool: Pool) -> None:
    assert await pool.fetchval("SELECT $1::jsonb", {"a": [1, None, "ä"]}) == {"a": [1, None, "ä"]}


async def test_waiting_for_a_connection_is_bounded(database_url: str) -> None:
    async with open_pool(database_url, size_max=1) as pool, pool.acquire():
        started_at = asyncio.get_running_loop().time()

        with pytest.raises(TimeoutError):
            await pool.fetchval("SELECT 1")

        assert asyncio.get_running_loop().time() - started_at == pytest.approx(ACQUIRE_SECONDS_MAX, abs=1)


async def test_another_connection_is_opened_only_if_none_is_returned_for_a_moment(database_url: str) -> None:
    async def ask(pool: Pool, times: int) -> list[int]:
        return await asyncio.gather(*(pool.fetchval("SELECT pg_backend_pid()") for _ in range(times)))

    async with open_pool(database_url, size_max=5, patience_seconds=60.0) as pool:
        [first] = await ask(pool, 1)
        assert await ask(pool, 20) == [first] * 20
        assert pool.get_size() == 1

    async with open_pool(database_url, size_max=5, patience_seconds=0.01) as pool, pool.acquire():
        assert len(await ask(pool, 20)) == 20
        assert pool.get_size() > 1


async def test_connections_that_all_can_do_without_are_closed_however_often_they_are_used(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "SPARE_SECONDS", 0.0)
    async with open_pool(database_url, size_max=3, patience_seconds=0.01) as pool:
        async with pool.acquire(), pool.acquire(), pool.acquire():
            opened = pool.get_size()
        for _ in range(opened):
            assert await pool.fetchval("SELECT 1") == 1

        assert (opened, pool.get_size()) == (3, 1)

        # The server would notice a while after that a lock is not held any more.
        async with pool.acquire() as other:
            async with pool.acquire() as connection:
                reset_after_use(connection)
                await connection.execute("SELECT pg_advisory_lock(1, 2)")
            assert await other.fetchval("SELECT pg_try_advisory_xact_lock(1, 2)")
            assert pool.get_size() == 2


async def test_a_process_frozen_in_a_transaction_loses_its_locks(pool: Pool) -> None:
    bound = await pool.fetchval("SHOW idle_in_transaction_session_timeout")

    assert bound == f"{IDLE_IN_TRANSACTION_SECONDS_MAX}s"


async def test_a_connection_is_reset_after_use_only_where_that_was_asked_for(database_url: str) -> None:
    async def set_zone(zone: str, *, is_reset: bool) -> str:
        """Set the time zone of the only connection; return which one its next user has."""
        async with pool.acquire() as connection:
            if is_reset:
                reset_after_use(connection)
            await connection.execute(f"SET timezone = '{zone}'")
            await connection.execute("SELECT pg_advisory_lock(1)")
        return await pool.fetchval("SELECT current_setting('timezone')")

    async def count_locks() -> int:
        return await pool.fetchval(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        )

    async with open_pool(f"{database_url}?options=-ctimezone%3DUTC", size_max=1) as pool:
        assert await set_zone("Asia/Kolkata", is_reset=False) == "Asia/Kolkata"
        assert await count_locks() == 1
        assert await set_zone("Asia/Tokyo", is_reset=True) == "UTC"
        assert await count_locks() == 0
        assert await set_zone("Asia/Tokyo", is_reset=False) == "Asia/Tokyo"


def test_code_that_changes_more_than_a_transaction_has_its_connection_reset() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    changing = {path for path, text in sources.items() if OF_A_SESSION.search(text)}

    assert len(changing) > 3
    assert {path.name for path in changing if "reset_after_use(" not in sources[path]} == WITHOUT_A_POOL


async def test_what_one_connection_has_learned_of_arrays_holds_for_all(pool: Pool) -> None:
    asked: list[str] = []

    async def read_arrays() -> list[object]:
        async with pool.acquire() as connection, pool.acquire() as another:
            for one in (connection, another):
                one.add_query_logger(lambda query: asked.append(query.query))
            days = [[date(2026, 11, 18)], [None, date(2026, 11, 19)]]
            return [
                await one.fetchval("SELECT $1::date[]", some)
                for one, some in zip((connection, another), days, strict=True)
            ]

    assert await read_arrays() == [[date(2026, 11, 18)], [None, date(2026, 11, 19)]]
    assert sum("typeinfo_tree" in query for query in asked) <= 1


async def test_rows_that_are_none_leave_no_transaction_open(pool: Pool) -> None:
    await pool.executemany("INSERT INTO banners (title) VALUES ($1)", [])

    async with read_snapshot(pool) as connection:
        assert await connection.fetchval("SELECT count(*) FROM banners") == 0
