"""`adloom rollup`: rolls days up again on demand, with errors that say what to do."""

import asyncio
import io
from datetime import date, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from adloom.cli.days import roll_up
from adloom.core.clock import ManualClock
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from adloom.runtime.schema import DatabaseError
from adloom.stats.rollup import RollupRefusedError
from tests.stats.event_rows import NOON, an_event, insert_catalog, insert_events
from tests.support.product import adloom

DAY = NOON.date()
ONE_DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
async def _events(pool: Pool) -> None:
    await insert_catalog(pool, 1)
    await insert_events(pool, an_event(), an_event(kind="clicks"), an_event(at=NOON + 2 * ONE_DAY))


async def run_rollup(
    database_url: str, first: date, last: date, *, today: date = DAY + 2 * ONE_DAY, terminal: bool = False
) -> str:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=100, color_system=None)
    clock = ManualClock(NOON + (today - DAY))
    await roll_up(database_url, first, last, clock, console)
    return output.getvalue()


async def test_each_day_from_first_to_last_is_a_line(pool: Pool, database_url: str) -> None:
    output = await run_rollup(database_url, DAY, DAY + 2 * ONE_DAY)

    assert [line.split()[:5] for line in output.splitlines()] == [
        ["2026-11-14", "2", "events", "1", "rows"],
        ["2026-11-15", "0", "events", "0", "rows"],
        ["2026-11-16", "1", "events", "1", "rows"],
    ]
    rows = await pool.fetch("SELECT stat_date, impressions, clicks FROM banner_stats ORDER BY 1")
    assert [tuple(row) for row in rows] == [(DAY, 1, 1), (DAY + 2 * ONE_DAY, 1, 0)]


async def test_a_terminal_gets_a_progress_bar(database_url: str) -> None:
    output = await run_rollup(database_url, DAY, DAY, terminal=True)

    assert "━" in output
    assert "100% of 1 day" in output


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        (DAY, DAY - ONE_DAY, "--to is 2026-11-13, which is before --from 2026-11-14."),
        (
            DAY,
            DAY + 4 * ONE_DAY,
            "--to is 2026-11-18, but today is 2026-11-16 (UTC): nothing has happened then.",
        ),
        (date(2000, 1, 1), DAY, "--from 2000-01-01 --to 2026-11-14 are more than 3660 days at once."),
    ],
)
async def test_an_invalid_range_is_refused_with_one_line(
    database_url: str, first: date, last: date, message: str
) -> None:
    with pytest.raises(RollupRefusedError) as raised:
        await run_rollup(database_url, first, last)

    assert str(raised.value) == message


async def test_tomorrow_is_allowed_because_clocks_differ(database_url: str) -> None:
    assert "2026-11-15" in await run_rollup(database_url, DAY, DAY + ONE_DAY, today=DAY)


async def test_days_with_dropped_rows_are_refused_before_any_change(pool: Pool, database_url: str) -> None:
    await pool.execute("DROP TABLE events.banner_impressions_20261114, events.banner_clicks_20261114")

    with pytest.raises(RollupRefusedError) as raised:
        await run_rollup(database_url, DAY - ONE_DAY, DAY + ONE_DAY)

    assert str(raised.value) == (
        "The rows of 2026-11-14 were dropped (ADLOOM_EVENT_RETENTION_DAYS), so there is nothing to roll up from;"
        " what was rolled up before stays. Begin with --from 2026-11-15."
    )
    assert await pool.fetchval("SELECT count(*) FROM rollup_days") == 0


async def test_the_error_about_an_unreachable_database_names_it() -> None:
    with pytest.raises(DatabaseError, match="The database 'adloom' at"):
        await run_rollup(f"postgresql://adloom@127.0.0.1:{find_port()}/adloom", DAY, DAY)


async def test_the_command_uses_the_database_of_the_dotenv_file(
    pool: Pool, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(f"DATABASE_URL={database_url}\n")

    done = await asyncio.to_thread(
        adloom, "rollup", "--from", "2026-11-14", "--to", "2026-11-14", cwd=tmp_path, env_file=".env"
    )

    assert (done.code, done.err) == (0, "")
    assert done.out.split()[:5] == ["2026-11-14", "2", "events", "1", "rows"]
    assert await pool.fetchval("SELECT events FROM rollup_days") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "2026-11-14", "--to", "2026-11-13"), "adloom: --to is 2026-11-13, which is before"),
        (("--from", "yesterday", "--to", "2026-11-13"), "'yesterday' is not a day like 2026-11-15."),
        (("--from", "2026-1-5", "--to", "2026-11-13"), "'2026-1-5' is not a day like 2026-11-15."),
        (("--from", "2026-11-14"), "--to"),
    ],
)
async def test_an_error_is_printed_without_a_traceback(
    words: tuple[str, ...], message: str, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(f"DATABASE_URL={database_url}\n")

    done = await asyncio.to_thread(adloom, "rollup", *words, cwd=tmp_path, env_file=".env")

    assert done.code != 0
    assert message in done.err
    assert "Traceback" not in done.err
