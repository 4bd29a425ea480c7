"""`adloom ledger replay` in the test's own process: frequency counts, and what cannot be replayed."""

import io
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import structlog
from rich.console import Console

from adloom.cli.replay import ReplayError, run
from adloom.events.frequency.counts import FrequencyCounters
from adloom.events.frequency.windows import Window
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import BANNER, an_impression
from tests.events.catalog import cap_banners, insert_catalog
from tests.events.followed import USER, Followed
from tests.support.for_each import for_each


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """The command redirects logs for the rest of its process; restore them after the test."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


async def replay(projection: str, start: str, *, database_url: str, redis_url: str) -> str:
    output = io.StringIO()
    console = Console(file=output, soft_wrap=True)
    await run(projection, start, database_url=database_url, redis_url=redis_url, console=console)
    return output.getvalue()


async def test_frequency_counts_are_rebuilt_from_the_tables(
    pool: Pool, valkey: Valkey, database_url: str, redis_url: str
) -> None:
    now = datetime.now(UTC)
    await insert_catalog(pool)
    await cap_banners(pool)
    await Followed(pool, valkey).record(
        *(an_impression(f"{number}", user_id=USER, occurred_at=now, received_at=now) for number in range(3))
    )

    output = await replay("frequency", "beginning", database_url=database_url, redis_url=redis_url)

    assert "frequency has counted 3 valid impressions of users" in output
    assert (await FrequencyCounters(valkey).read_user(USER, now))[Window.DAY] == {BANNER: 3}


async def test_a_replay_of_frequency_counts_can_only_start_at_the_beginning(
    database_url: str, redis_url: str
) -> None:
    with pytest.raises(ReplayError, match="only start at the beginning"):
        await replay("frequency", "2026-11-15", database_url=database_url, redis_url=redis_url)


@for_each(
    ("projection", "start", "error"),
    [
        ("topics", "beginning", "The topics cannot be replayed.* would get everything twice"),
        ("charges", "beginning", "Charges cannot be replayed"),
        ("auctions", "beginning", "Auctions cannot be replayed"),
        ("weather", "beginning", "There is no projection 'weather'"),
        ("event_tables", "tomorrow", "'tomorrow' is no place in the ledger"),
    ],
)
async def test_an_impossible_replay_is_refused(
    projection: str, start: str, error: str, database_url: str, redis_url: str
) -> None:
    with pytest.raises(ReplayError, match=error):
        await replay(projection, start, database_url=database_url, redis_url=redis_url)
