"""What leasing a campaign costs, and the memory of a worker whose campaigns all have leases that nothing uses."""

from typing import Final

import msgspec

from adloom.core.money import Micros
from bench.budgets.lease_client import BenchLeaseClient
from bench.fill import add_campaigns
from bench.processes import ShowStatus, measure_usage
from bench.servers import run_servers, run_worker, wait_until_quiet

COST: Final = Micros(1_000)
OFFERS_LEASED: Final = 2
PAID_EVERY: Final = 10
SESSION: Final = 1


class LeaseCost(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of a worker before and after it leased all campaigns, and the CPU that took."""

    bytes_before: int
    bytes_after: int
    cpu_seconds: float


async def measure_leasing(*, campaigns: int, say: ShowStatus) -> LeaseCost:
    async with run_servers(banners=campaigns) as servers:
        shown = await add_campaigns(servers.pool, campaigns, cpm_micros=COST * 1_000, paid_every=PAID_EVERY)
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
