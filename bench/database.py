"""A temporary database for benches: an embedded PostgreSQL as `adloom up` runs it, filled by SQL."""

import contextlib
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from time import perf_counter
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from adloom.runtime import migrate
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.ports import free_port
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.supervisor.program import send, start

PASSWORD: Final = "a-password-of-the-bench"  # noqa: S105 - of a server that is gone in a minute
STATEMENT_SECONDS_MAX: Final = 3_600.0
CHUNK_EVENTS: Final = 500_000
DAY_SECONDS: Final = 24 * 3600
POOL_SIZE_MAX: Final = 4
# One click in fifty impressions, and one invalid event in fifty.
CLICK_SHARE: Final = 50
INVALID_SHARE: Final = 50

CATALOG = """
    INSERT INTO placements (public_id, slug, label, layout_type)
    SELECT gen_random_uuid(), 'placement-' || n, 'P', 'full_slider' FROM generate_series(1, $1::int) AS n;
    INSERT INTO advertisers (public_id, name)
    SELECT gen_random_uuid(), 'A' FROM generate_series(1, $1::int);
    INSERT INTO campaigns (public_id, name, advertiser_id)
    SELECT gen_random_uuid(), 'C', n FROM generate_series(1, $1::int) AS n;
    INSERT INTO banners (public_id, title, primary_image_url, advertiser_id)
    SELECT gen_random_uuid(), 'B', 'https://cdn.example.com/a.png', 1 + n % $1::int
      FROM generate_series(1, $2::int) AS n;
    ANALYZE placements, advertisers, campaigns, banners
"""
# Few banners are shown often and most rarely; each is in one campaign, and on a few placements.
EVENTS = """
    INSERT INTO events.banner_{name} (
        id, correlation_id, banner_id, placement_id, campaign_id, session_id, device_type, country_code, page_url,
        occurred_at, received_at, request_id, slot, marks, is_valid, entry_ms, entry_seq
    )
    SELECT n, gen_random_uuid(), banner, 1 + (banner * 7 + n % 3) % $3::int, 1 + banner % $3::int, md5(n::text),
           (ARRAY['mobile', 'desktop', 'tablet'])[1 + n % 3], (ARRAY['DE', 'FR', 'IN', 'US'])[1 + n % 4],
           'https://magazine.example.com/articles/' || n % 10007, moment, moment, gen_random_uuid(), 0,
           CASE WHEN n % $5::int = 0 THEN ARRAY['crawler'] END, n % $5::int <> 0, 0, n
      FROM (
          SELECT n, 1 + floor(power(random(), 2) * $4::int)::int AS banner,
                 $1::timestamptz + n * $2::double precision * interval '1 second' AS moment
            FROM generate_series($6::bigint, $7::bigint) AS n
      ) AS it
"""
# As `ensure_event_day` creates it, but with indexes after the rows: ten times as fast.
MAKE_PARTITION = "CREATE TABLE events.banner_{name} (LIKE events.banner_{kind} INCLUDING DEFAULTS)"
INDEX_PARTITION = "CREATE UNIQUE INDEX ON events.banner_{name} (correlation_id)"
ATTACH_PARTITION = """
    ALTER TABLE events.banner_{kind} ATTACH PARTITION events.banner_{name} FOR VALUES FROM ('{first}') TO ('{last}')
"""
NOTE_DAY = "INSERT INTO events.event_days (day, events) VALUES ($1, $2)"


class DatabaseSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the catalog."""

    banners: int
    # The number of placements, of campaigns and of advertisers.
    places: int


@contextlib.asynccontextmanager
async def run_database(size: DatabaseSize) -> AsyncGenerator[Pool]:
    """Run a server with a catalog, and remove it at the end."""
    with open_folder() as folder:
        postgres = EmbeddedPostgres(folder / "postgres", port=free_port(), password=PASSWORD)
        await postgres.prepare()
        process = await start(postgres.program)
        try:
            await postgres.wait_until_ready()
            await migrate.upgrade(postgres.url)
            async with open_pool(postgres.url, size_max=POOL_SIZE_MAX) as pool:
                await fill_catalog(pool, size)
                yield pool
        finally:
            send(process, postgres.program.stop_signal)
            await process.wait()


@contextlib.contextmanager
def open_folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="adloom-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # As root, the server runs as another user, who needs access.
        yield folder


async def measure_seconds(work: Callable[[], Awaitable[None]]) -> float:
    started_at = perf_counter()
    await work()
    return perf_counter() - started_at


def show_ratios(console: Console, title: str, figures: dict[str, float], *, heading: str) -> None:
    """Show seconds, and their ratios to the first figure."""
    reference = next(iter(figures.values()))
    table = Table(title=title, title_justify="left", title_style="dim")
    table.add_column("")
    for name in ("s", heading):
        table.add_column(name, justify="right")
    for name, seconds in figures.items():
        table.add_row(name, f"{seconds:.2f}", f"{seconds / reference:.1f}")
    console.print(table)


async def fill_catalog(pool: Pool, size: DatabaseSize) -> None:
    for statement in CATALOG.replace("$1", str(size.places)).replace("$2", str(size.banners)).split(";"):
        await pool.execute(statement)


async def fill_day(
    pool: Pool, day: date, events: int, size: DatabaseSize, on_progress: Callable[[float], None]
) -> None:
    """Insert the events of a day in order of time, as the event log does."""
    clicks = events // CLICK_SHARE
    done = 0
    for kind, count in (("impressions", events - clicks), ("clicks", clicks)):
        name = f"{kind}_{day:%Y%m%d}"
        await pool.execute(MAKE_PARTITION.format(name=name, kind=kind))
        for first in range(0, count, CHUNK_EVENTS):
            numbers = range(first, min(first + CHUNK_EVENTS, count))
            await pool.execute(
                EVENTS.format(name=name),
                datetime.combine(day, time(), UTC),
                DAY_SECONDS / count,
                size.places,
                size.banners,
                INVALID_SHARE,
                numbers[0],
                numbers[-1],
                timeout=STATEMENT_SECONDS_MAX,
            )
            done += len(numbers)
            on_progress(done / events)
        bounds = {"first": f"{day} 00:00Z", "last": f"{day + timedelta(days=1)} 00:00Z"}
        for statement in (INDEX_PARTITION, ATTACH_PARTITION):
            await pool.execute(
                statement.format(name=name, kind=kind, **bounds), timeout=STATEMENT_SECONDS_MAX
            )
    await pool.execute(NOTE_DAY, day, events)
    # In production autovacuum has done this by night.
    await pool.execute(
        "VACUUM ANALYZE events.banner_impressions, events.banner_clicks", timeout=STATEMENT_SECONDS_MAX
    )
