"""Measure how fast batches of the ledger are folded into the event tables, beside a plain insert of the same rows.

    uv run python scripts/event_tables.py --rows-a-day 1000000

A PostgreSQL of its own, as `adloom up` starts it, is filled with nine days of impressions. Then batches of
2,000 are folded by turns with plain inserts into a table as large as a day: with every correlation id looked
up in all days, and with the names remembered as a worker does after a while. What other work on the machine
takes away shows in rows/s, and less in the CPU time of the server's process and of ours.
"""

import argparse
import asyncio
import random  # noqa: TID251 - seeded, so that two runs are of the same events
import secrets
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.events.log.event import Impression
from adloom.events.ports import DecodedEntry
from adloom.events.tables.dedup import DedupFilter
from adloom.events.tables.store import EventTables
from adloom.runtime import migrate
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.supervisor.program import build_command

NOW: Final = datetime(2026, 11, 15, 12, tzinfo=UTC)
DAYS: Final = 9
BATCH: Final = 2_000
WARM_UP: Final = 3
FILL_SECONDS_MAX: Final = 1800.0
TICKS_A_SECOND: Final = 100

BANNERS = [BannerId(UUID(int=1 << 80 | number)) for number in range(50)]
PLACEMENTS = [PlacementId(UUID(int=2 << 80 | number)) for number in range(10)]
CAMPAIGNS = [CampaignId(UUID(int=3 << 80 | number)) for number in range(20)]

CATALOG = (
    """
    INSERT INTO banners (public_id, title, primary_image_url)
    SELECT id, 'A banner', 'https://i.example/a.png' FROM unnest($1::uuid[]) AS id
""",
    """
    INSERT INTO placements (public_id, slug, label, layout_type)
    SELECT id, id::text, 'A place', 'full_static' FROM unnest($1::uuid[]) AS id
""",
    """
    INSERT INTO campaigns (public_id, name) SELECT id, 'A campaign' FROM unnest($1::uuid[]) AS id
""",
)
FILL = """
    INSERT INTO events.banner_impressions (
        correlation_id, banner_id, placement_id, campaign_id, session_id, user_id, device_type, country_code,
        page_url, referrer_url, occurred_at, received_at, request_id, slot, entry_ms, entry_seq
    )
    SELECT gen_random_uuid(), 1 + n % 50, 1 + n % 10, 1 + n % 20, 'session ' || n % 100000, gen_random_uuid(), 'mobile',
           'DE', 'https://shop.example/page/' || n % 1000, 'https://r.example', at, at,
           overlay(gen_random_uuid()::text PLACING overlay(lpad(to_hex(ms), 12, '0') PLACING '-' FROM 9 FOR 0) FROM 1)::uuid,
           0, ms, n
      FROM (
          SELECT n, at, (extract(epoch FROM at) * 1000)::bigint AS ms
            FROM generate_series(0, $2::bigint - 1) AS n, LATERAL (SELECT $1::timestamptz + n * interval '1 day' / $2) AS it (at)
      ) AS it
"""
DAY_WRITTEN = "INSERT INTO events.event_days (day, events, last_entry_ms) VALUES ($1, $2, $3)"
PLAIN_TABLE = """
    CREATE TABLE plain_impressions (LIKE events.banner_impressions INCLUDING ALL);
    CREATE UNIQUE INDEX ON plain_impressions (correlation_id);
    INSERT INTO plain_impressions SELECT * FROM events.banner_impressions_{day:%Y%m%d};
"""
PLAIN_INSERT = """
    INSERT INTO plain_impressions (
        correlation_id, banner_id, placement_id, campaign_id, session_id, user_id, device_type, country_code,
        page_url, referrer_url, occurred_at, received_at, request_id, slot, entry_ms, entry_seq
    )
    SELECT name, 1, 1, 1, session_id, user_id, device_type, country_code, page_url, referrer_url, at, at, request_id,
           0, 1, 1
      FROM unnest(
          $1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[], $9::uuid[]
      ) AS event (name, session_id, user_id, device_type, country_code, page_url, referrer_url, at, request_id)
"""


class Spent(msgspec.Struct):
    """What some batches have taken."""

    rows: int = 0
    seconds: float = 0.0
    server_seconds: float = 0.0
    own_seconds: float = 0.0

    def __str__(self) -> str:
        """Say it by the second and by the row."""
        server, own = (1e6 * spent / self.rows for spent in (self.server_seconds, self.own_seconds))
        return (
            f"{self.rows / self.seconds:8,.0f} rows/s   CPU µs a row: server {server:5.1f}, ours {own:5.1f}"
        )


class Bench:
    """One database, and events for it."""

    def __init__(self, pool: Pool, *, seed: int) -> None:
        self._pool = pool
        self._chance = random.Random(seed)  # noqa: S311 - no secrets
        self._sequence = 0
        self._cursor = ""
        self._server_pid = 0

    async def fill(self, rows_a_day: int) -> None:
        """Make the catalog and the days."""
        self._server_pid = await self._pool.fetchval("SELECT pg_backend_pid()")
        for statement, ids in zip(CATALOG, (BANNERS, PLACEMENTS, CAMPAIGNS), strict=True):
            await self._pool.execute(statement, ids)
        for ago in range(DAYS):
            start = NOW.replace(hour=0) - timedelta(days=ago)
            await self._pool.execute("SELECT ensure_event_day('events', $1)", start.date())
            if rows_a_day:
                await self._pool.execute(FILL, start, rows_a_day, timeout=FILL_SECONDS_MAX)
                last_ms = int((start + timedelta(days=1)).timestamp() * 1000) - 1
                await self._pool.execute(DAY_WRITTEN, start.date(), rows_a_day, last_ms)
        await self._pool.execute(PLAIN_TABLE.format(day=NOW), timeout=FILL_SECONDS_MAX)
        await self._pool.execute("VACUUM ANALYZE", timeout=FILL_SECONDS_MAX)
        await self._pool.execute("CHECKPOINT", timeout=FILL_SECONDS_MAX)

    async def compare(self, tables: EventTables, batches: int) -> tuple[Spent, Spent]:
        """Fold batches and insert others plainly, by turns."""
        folded, inserted = Spent(), Spent()
        self._cursor = await tables.read_cursor()
        for number in range(WARM_UP + batches):
            is_counted = number >= WARM_UP
            await self._fold(tables, folded if is_counted else Spent())
            await self._insert(inserted if is_counted else Spent())
        return folded, inserted

    async def read_ids(self, tables: EventTables, dedup: DedupFilter) -> int:
        """Apply batches until the ids of all days are in the filter; return how many."""
        batches = 0
        days = [(NOW - timedelta(days=ago)).date() for ago in range(DAYS)]
        self._cursor = await tables.read_cursor()
        while batches < WARM_UP or dedup.select_doubtful("banner_impressions", ["a stranger"], days):
            await self._fold(tables, Spent())
            batches += 1
        return batches

    async def _fold(self, tables: EventTables, spent: Spent) -> None:
        events = self._events()
        millis = int(NOW.timestamp() * 1000)
        records = [
            DecodedEntry(f"{millis}-{self._sequence + number}", event) for number, event in enumerate(events)
        ]
        self._sequence += len(records)
        before = self._clocks()
        folded = await tables.commit(records, after=self._cursor, cursor=records[-1].entry_id)
        self._spend(spent, before)
        assert folded.counted == BATCH, folded
        self._cursor = records[-1].entry_id

    async def _insert(self, spent: Spent) -> None:
        events = self._events()
        before = self._clocks()
        await self._pool.execute(
            PLAIN_INSERT,
            [event.correlation_id for event in events],
            [event.session_id for event in events],
            [event.user_id for event in events],
            [event.device_type for event in events],
            [event.country_code for event in events],
            [event.page_url for event in events],
            [event.referrer_url for event in events],
            [event.occurred_at for event in events],
            [event.request_id for event in events],
        )
        self._spend(spent, before)

    def _events(self) -> list[Impression]:
        chance = self._chance
        moment = NOW + timedelta(milliseconds=self._sequence)
        millis = int(moment.timestamp() * 1000)
        return [
            Impression(
                correlation_id=str(UUID(int=chance.getrandbits(128), version=4)),
                banner_id=BANNERS[number := chance.randrange(50)],
                placement_id=PLACEMENTS[number % 10],
                campaign_id=CAMPAIGNS[number % 20],
                occurred_at=moment,
                received_at=moment,
                request_id=RequestId(UUID(int=millis << 80 | 7 << 76 | 2 << 62 | chance.getrandbits(62))),
                slot=0,
                session_id=f"session {chance.randrange(100_000)}",
                user_id=UUID(int=chance.getrandbits(128), version=4),
                device_type=chance.choice(["mobile", "mobile", "desktop"]),
                country_code=chance.choice(["DE", "DE", "FR", "AT"]),
                page_url=f"https://shop.example/page/{chance.randrange(1000)}",
                referrer_url="https://r.example",
            )
            for _ in range(BATCH)
        ]

    def _clocks(self) -> tuple[float, float, float]:
        fields = Path(f"/proc/{self._server_pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        server_ticks = int(fields[11]) + int(fields[12])
        return time.perf_counter(), server_ticks / TICKS_A_SECOND, time.process_time()

    def _spend(self, spent: Spent, before: tuple[float, float, float]) -> None:
        after = self._clocks()
        spent.rows += BATCH
        spent.seconds += after[0] - before[0]
        spent.server_seconds += after[1] - before[1]
        spent.own_seconds += after[2] - before[2]


async def measure(database_url: str, *, rows_a_day: int, batches: int, seed: int) -> None:
    """Fill the database, fold, and print."""
    await migrate.upgrade(database_url)
    async with open_pool(database_url, size_max=1) as pool:
        bench = Bench(pool, seed=seed)
        await bench.fill(rows_a_day)
        print(f"{DAYS} days of {rows_a_day:,} rows, batches of {BATCH:,}")
        show("looked up", *await bench.compare(EventTables(pool), batches))
        dedup = DedupFilter(chunk_ids=100_000)
        filtered = EventTables(pool, dedup=dedup)
        read = await bench.read_ids(filtered, dedup)
        show(f"with a dedup filter, after {read} batches", *await bench.compare(filtered, batches))


def show(how: str, folded: Spent, inserted: Spent) -> None:
    """Print one comparison."""
    print(f"\n{how}\n  folded          {folded}\n  plain insert    {inserted}")
    print(
        f"  a plain insert is {inserted.rows / inserted.seconds * folded.seconds / folded.rows:.2f} times as fast"
    )


async def run(folder: Path, *, rows_a_day: int, batches: int, seed: int) -> None:
    """Start a server, measure and stop it."""
    server = EmbeddedPostgres(
        folder / "postgres", listening=Listening(port=find_port()), password=secrets.token_hex()
    )
    await server.prepare()
    program = server.program
    process = await asyncio.create_subprocess_exec(*build_command(program), env=program.environment, cwd="/")
    try:
        await server.wait_until_ready()
        await measure(server.url, rows_a_day=rows_a_day, batches=batches, seed=seed)
    finally:
        process.send_signal(program.stop_signal)
        await process.wait()


def main() -> None:
    """Measure in a folder that is thrown away."""
    arguments = argparse.ArgumentParser(description="Measure folding into the event tables.")
    arguments.add_argument("--rows-a-day", type=int, default=100_000)
    arguments.add_argument("--batches", type=int, default=30)
    arguments.add_argument("--seed", type=int, default=1)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="adloom-event-tables-") as folder:
        # As root the database runs as another user, who has to get in.
        Path(folder).chmod(0o755)
        asyncio.run(run(Path(folder), rows_a_day=chosen.rows_a_day, batches=chosen.batches, seed=chosen.seed))


if __name__ == "__main__":
    main()
