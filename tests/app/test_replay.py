"""`adloom ledger replay`: its output, its errors, and a kill in the middle."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from uuid import uuid4

import pytest

from adloom.cli.replay import ReplayError, parse_start
from adloom.events.log.event import encode_event
from adloom.events.log.stream import STREAM
from adloom.events.ports import DecodedEntry
from adloom.events.tables.store import EventTables
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import NOW, an_impression
from tests.events.catalog import insert_catalog
from tests.support.for_each import for_each
from tests.support.forked import ForkedPopen
from tests.support.product import Finished, clean_environment

EVENTS = 3_000
SECONDS_MAX = 60
FIGURES = """
    SELECT md5(string_agg((to_jsonb(it) - 'id')::text, ',' ORDER BY correlation_id)) FROM events.banner_impressions AS it
    UNION ALL
    SELECT string_agg(to_jsonb(it)::text, ',' ORDER BY it) FROM events.event_counts AS it
    UNION ALL
    SELECT string_agg(to_jsonb(it)::text, ',' ORDER BY it) FROM events.event_days AS it
"""


def drop_progress(err: str) -> str:
    """Remove the lines that come once a second: a slow machine has some."""
    return re.sub(r"^… .* s\n", "", err, flags=re.MULTILINE)


class Installation:
    """An event log with its tables, and the command that replays it."""

    def __init__(self, pool: Pool, database_url: str, redis_url: str) -> None:
        self.pool = pool
        self.environment = {**clean_environment(), "DATABASE_URL": database_url, "REDIS_URL": redis_url}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return ForkedPopen(
            [sys.executable, "-m", "adloom", "ledger", "replay", *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    async def replay(self, *words: str) -> Finished:
        process = self.start(*words)
        out, err = await asyncio.to_thread(process.communicate, timeout=SECONDS_MAX)
        return Finished(process.returncode, out, drop_progress(err))

    async def figures(self) -> list[str]:
        return [row[0] for row in await self.pool.fetch(FIGURES)]

    async def is_building(self) -> bool:
        return await self.pool.fetchval("SELECT to_regnamespace('events_rebuild') IS NOT NULL")

    async def is_replaced(self) -> bool:
        return await self.pool.fetchval("SELECT to_regnamespace('events_old') IS NOT NULL")


@pytest.fixture
async def installation(pool: Pool, valkey: Valkey, database_url: str, redis_url: str) -> Installation:
    await insert_catalog(pool)
    tables = EventTables(pool)
    events = [
        an_impression(f"{number}", user_id=uuid4(), occurred_at=NOW - timedelta(seconds=number))
        for number in range(EVENTS)
    ]
    ids = [f"{int(NOW.timestamp() * 1000)}-{number}" for number in range(1, EVENTS + 1)]
    pipeline = valkey.pipeline()
    for entry_id, event in zip(ids, events, strict=True):
        pipeline.xadd(STREAM, {"e": encode_event(event)}, id=entry_id)
    await pipeline.execute()
    records = [DecodedEntry(entry_id, event) for entry_id, event in zip(ids, events, strict=True)]
    await tables.commit(records, after=await tables.read_cursor(), cursor=ids[-1])
    return Installation(pool, database_url, redis_url)


async def test_a_replay_prints_its_steps_and_its_result(installation: Installation) -> None:
    before = await installation.figures()

    done = await installation.replay("--projection", "event_tables")

    assert (done.code, done.err) == (0, "")
    steps = done.out.splitlines()
    assert [step.split()[0] for step in steps[:-1]] == [
        "Scanning",
        "Copying",
        "Counting",
        "Applying",
        "Swapping",
    ]
    assert "event_tables has 3,000 events: 0 copied, 3,000 applied from" in steps[-1]
    assert "No figure has changed." in steps[-1]
    assert await installation.figures() == before


async def test_a_replay_prints_how_many_days_it_corrected(installation: Installation) -> None:
    before = await installation.figures()
    await installation.pool.execute("DELETE FROM events.banner_impressions WHERE correlation_id LIKE '1%'")
    await installation.pool.execute("UPDATE events.event_counts SET impressions = 1")

    done = await installation.replay("--projection", "event_tables", "--from", "2026-11-15")

    assert done.code == 0, done.err
    assert "There were 3,000 events; 1 days have other figures now." in done.out
    assert (await installation.figures())[:2] == before[:2]


async def test_a_refusal_is_one_line(pool: Pool, database_url: str, redis_url: str) -> None:
    done = await Installation(pool, database_url, redis_url).replay("--projection", "weather")

    assert (done.code, done.out) == (1, "")
    assert "There is no projection 'weather'" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_a_killed_replay_changes_nothing_and_can_be_started_again(
    installation: Installation, number: signal.Signals
) -> None:
    before = await installation.figures()
    # The lock stops the replay before it swaps the tables.
    async with installation.pool.acquire() as worker, worker.transaction():
        await worker.execute("SELECT FROM projection_cursors WHERE projection = 'event_tables' FOR UPDATE")
        process = installation.start("--projection", "event_tables")
        async with asyncio.timeout(SECONDS_MAX):
            while not await is_waiting(installation.pool):  # noqa: ASYNC110 - it waits in the database
                await asyncio.sleep(0.02)
        os.kill(process.pid, number)
        await asyncio.to_thread(process.communicate, timeout=SECONDS_MAX)

    assert await installation.is_building()
    assert await installation.figures() == before
    async with asyncio.timeout(SECONDS_MAX):
        while "under way" in (done := await installation.replay("--projection", "event_tables")).err:  # noqa: ASYNC110 - the server notices it
            await asyncio.sleep(0.5)  # Until the server notices that the killed process is gone.
    assert done.code == 0, done.err
    assert not await installation.is_building()
    assert not await installation.is_replaced()
    assert await installation.figures() == before


async def is_waiting(pool: Pool) -> bool:
    return await pool.fetchval(
        """
        SELECT EXISTS (
            SELECT FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'
        )
        """
    )


async def test_a_concurrent_replay_is_refused_with_one_line(installation: Installation) -> None:
    async with installation.pool.acquire() as worker:
        batch = worker.transaction()
        await batch.start()
        await worker.execute("SELECT FROM projection_cursors WHERE projection = 'event_tables' FOR UPDATE")
        first = installation.start("--projection", "event_tables")
        async with asyncio.timeout(SECONDS_MAX):
            while not await is_waiting(installation.pool):  # noqa: ASYNC110 - it waits in the database
                await asyncio.sleep(0.02)

        second = await installation.replay("--projection", "event_tables")

        await batch.rollback()
    _, err = await asyncio.to_thread(first.communicate, timeout=SECONDS_MAX)
    assert (first.returncode, drop_progress(err)) == (0, "")
    assert (second.code, second.err) == (
        1,
        "adloom: Another replay of these tables is under way; wait until it has ended.\n",
    )


async def test_a_replay_without_valkey_is_refused_with_one_line(installation: Installation) -> None:
    installation.environment["REDIS_URL"] = "redis://127.0.0.1:1/0"

    done = await installation.replay("--projection", "event_tables")

    assert done.code == 1
    assert done.err.startswith("adloom: The replay has ended early: Valkey does not answer")


@pytest.mark.parametrize(
    ("text", "entry_id"),
    [
        ("beginning", "0-0"),
        ("1794700800000-7", "1794700800000-7"),
        ("2026-11-15", "1794700800000-0"),
        ("2026-11-15T00:00:00Z", "1794700800000-0"),
        ("2026-11-15T01:30:00.250+01:00", "1794702600250-0"),
        ("1969-01-01", "0-0"),
    ],
)
def test_a_replay_can_start_at_an_entry_a_time_a_day_or_the_beginning(text: str, entry_id: str) -> None:
    assert parse_start(text) == entry_id


@for_each(
    "text",
    [
        "",
        "end",
        "2026-11",
        "20261115",
        "2026-W46-7",
        "2026-11-31",
        "2026-11-15T00:00:00",
        "12-0",
        "-1-0",
        "1794700800000",
    ],
)
def test_the_error_for_any_other_start_says_what_is_expected(text: str) -> None:
    with pytest.raises(ReplayError, match="Expected"):
        parse_start(text)
