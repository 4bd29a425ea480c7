"""The cost of charging impressions, and of leasing campaigns, in a real worker with all its tasks.

The reference of charges is the same number of impressions at no cost, which are counted and published all the same.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Final, cast

import msgspec

from adloom.budgets.confirms.offers import AHEAD_SECONDS_MAX
from adloom.budgets.confirms.projection import CHARGES
from adloom.core.clock import SystemClock
from adloom.core.ids import CampaignId, RequestId, SystemIds
from adloom.core.money import Micros
from adloom.events.log.event import Impression, encode_event
from adloom.events.log.stream import STREAM, ValkeyEventLog
from bench.budgets.lease_client import BenchLeaseClient
from bench.fill import BudgetCampaign, add_campaigns
from bench.processes import CpuMeter, LoadError, ShowStatus, find_descendants, measure_usage
from bench.servers import Servers, run_servers, run_worker, wait_until_quiet

COST: Final = Micros(1_000)
CPM_MICROS: Final = COST * 1_000
SESSION: Final = 1
PAID_EVERY: Final = 2
LEASED_PAID_EVERY: Final = 10
OFFERS_LEASED: Final = 2
APPENDED_AT_ONCE: Final = 2_000
POLL_SECONDS: Final = 0.05
WARM_SECONDS: Final = AHEAD_SECONDS_MAX + 2.0
DONE_SECONDS_MAX: Final = 180.0
CURSOR: Final = "SELECT entry_id FROM projection_cursors WHERE projection = $1"
# Impressions that were counted, charges in the money ledger, and their sum.
TOTALS: Final = """
    SELECT (SELECT coalesce(sum(impressions), 0)::bigint FROM events.event_counts), count(*),
           coalesce(sum(amount_micros), 0)::bigint
      FROM money_entries WHERE kind = 'charge'
"""
SIZES: Final = (
    "SELECT pg_database_size(current_database()), pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"
)


class EventCost(msgspec.Struct, frozen=True, kw_only=True):
    """What an event costs on average."""

    worker_micros: float
    database_micros: float
    log_bytes: float  # More in Valkey's memory.
    row_bytes: float  # More in PostgreSQL's files.
    wal_bytes: float


async def measure_charges(*, events: int, campaigns: int, say: ShowStatus) -> tuple[EventCost, EventCost]:
    """Return the cost of impressions that are counted, and of those that are also charged."""
    async with run_servers(banners=campaigns) as servers:
        shown = await add_campaigns(servers.pool, campaigns, cpm_micros=CPM_MICROS, paid_every=PAID_EVERY)
        async with run_worker(servers) as pid, BenchLeaseClient(servers.valkey, SESSION).run() as client:
            bench = _ChargeBench(servers, pid, client, shown, say)
            await bench.warm_up(min(events, APPENDED_AT_ONCE))
            costs = await bench.count(events), await bench.charge(events)
            await bench.check()
    return costs


class _ChargeBench:
    """A running worker, and a delivery process with leases from it."""

    def __init__(
        self,
        servers: Servers,
        pid: int,
        client: BenchLeaseClient,
        shown: Sequence[BudgetCampaign],
        say: ShowStatus,
    ) -> None:
        self._servers = servers
        self._pid = pid
        self._client = client
        self._shown = shown
        self._addresses = {one.id: one.address for one in shown}
        self._say = say
        self._ids = SystemIds()
        self._log = ValkeyEventLog(servers.valkey)
        self._counted = 0
        self._charged = 0

    async def warm_up(self, events: int) -> None:
        """Run every path once, then wait until the worker knows later offers to be new without a look-up."""
        await self.charge(events)
        await asyncio.sleep(WARM_SECONDS)

    async def count(self, events: int) -> EventCost:
        """Process impressions that cost nothing."""
        self._say(f"{events:,} impressions that cost nothing")
        self._counted += events
        made = [self._build_impression(number, {}, 0) for number in range(events)]
        return await self._process_events(made)

    async def charge(self, events: int) -> EventCost:
        """Process impressions that are paid from leases."""
        self._say(f"{events:,} impressions that are charged")
        each = -(-events // len(self._shown))
        leases = await self._client.report_usage(self._addresses, want=Micros(each * COST), cost=COST)
        second = int(SystemClock().now().timestamp())
        given = {one.id: (second, each * COST) for one in self._shown}
        await self._client.report_usage(self._addresses, want=COST, cost=COST, given=given)
        self._charged += events
        self._counted += events
        made = [self._build_impression(number, leases, second) for number in range(events)]
        return await self._process_events(made)

    async def check(self) -> None:
        """Check that everything was counted and charged once."""
        totals = await self._servers.pool.fetchrow(TOTALS)
        assert totals is not None
        found, charges, micros = totals
        if (found, charges, micros) != (self._counted, self._charged, self._charged * COST):
            raise LoadError(
                f"Of {self._counted} impressions {found} are counted, and of {self._charged} charges {charges} kept."
            )

    async def _process_events(self, events: Sequence[Impression]) -> EventCost:
        entries = [encode_event(event) for event in events]
        await wait_until_quiet(self._pid)
        sizes_before = await self._measure_sizes()
        of_worker, of_database = CpuMeter([self._pid]), CpuMeter(find_descendants(os.getpid(), "postgres"))
        for first in range(0, len(entries), APPENDED_AT_ONCE):
            await self._log.append(entries[first : first + APPENDED_AT_ONCE])
        await self._wait_until_done(ends_at=asyncio.get_running_loop().time() + DONE_SECONDS_MAX)
        await wait_until_quiet(self._pid)
        sizes = zip(await self._measure_sizes(), sizes_before, strict=True)
        log_bytes, row_bytes, wal_bytes = ((after - before) / len(entries) for after, before in sizes)
        return EventCost(
            worker_micros=of_worker.read_seconds() / len(entries) * 1e6,
            database_micros=of_database.read_seconds() / len(entries) * 1e6,
            log_bytes=log_bytes,
            row_bytes=row_bytes,
            wal_bytes=wal_bytes,
        )

    async def _measure_sizes(self) -> tuple[int, int, int]:
        sizes = await self._servers.pool.fetchrow(SIZES)
        assert sizes is not None
        used = await self._servers.valkey.memory_usage(STREAM, samples=0)
        return used or 0, *sizes

    async def _wait_until_done(self, *, ends_at: float) -> None:
        """Wait until the charges projection is at the end of the log; it runs after counting."""
        rows = cast("list[tuple[bytes, object]]", await self._servers.valkey.xrevrange(STREAM, count=1))
        last = rows[0][0].decode()
        while await self._servers.pool.fetchval(CURSOR, CHARGES) != last:
            if asyncio.get_running_loop().time() > ends_at:
                raise LoadError(f"Not everything was charged within {DONE_SECONDS_MAX:.0f} s.")
            await asyncio.sleep(POLL_SECONDS)

    def _build_impression(self, number: int, leases: dict[CampaignId, int], second: int) -> Impression:
        one, now = self._shown[number % len(self._shown)], SystemClock().now()
        return Impression(
            correlation_id=str(self._ids.make()),
            banner_id=one.banner_id,
            placement_id=one.placement_id,
            campaign_id=one.id,
            occurred_at=now,
            received_at=now,
            request_id=RequestId(self._ids.make()),
            slot=0,
            offered_at=second,
            lease=leases.get(one.id, 0),
            charge=COST if leases else Micros(0),
            session_id="6f1c0f5e9d7b4a3f",
            device_type="desktop",
            country_code="DE",
            page_url="https://news.example/politics/2026/11/an-article-of-the-day",
        )


class LeaseCost(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a worker before and after it leased all campaigns, and the CPU that took."""

    bytes_before: int
    bytes_after: int
    cpu_seconds: float


async def measure_leasing(*, campaigns: int, say: ShowStatus) -> LeaseCost:
    """Lease all campaigns, and use nothing of the leases."""
    async with run_servers(banners=campaigns) as servers:
        shown = await add_campaigns(
            servers.pool, campaigns, cpm_micros=CPM_MICROS, paid_every=LEASED_PAID_EVERY
        )
        addresses = {one.id: one.address for one in shown}
        async with run_worker(servers) as pid, BenchLeaseClient(servers.valkey, SESSION).run() as client:
            await wait_until_quiet(pid)
            bytes_before = measure_usage([pid]).resident_bytes
            say(f"a delivery process takes {campaigns:,} leases")
            cpu_before = measure_usage([pid]).cpu_seconds
            await client.report_usage(addresses, want=Micros(OFFERS_LEASED * COST), cost=COST)
            cpu_seconds = measure_usage([pid]).cpu_seconds - cpu_before
            await wait_until_quiet(pid)
            return LeaseCost(
                bytes_before=bytes_before,
                bytes_after=measure_usage([pid]).resident_bytes,
                cpu_seconds=cpu_seconds,
            )
