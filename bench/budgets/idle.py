"""`adloom bench idle-budgets`: the cost of unused budgets, of many campaigns with leases in an idle worker."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
import typer

from adloom.core.money import Micros
from bench.budgets.lease_client import BenchLeaseClient
from bench.figures import BenchTable, judge, show
from bench.fill import add_campaigns
from bench.processes import ShowStatus, measure_usage
from bench.servers import run_servers, run_worker, wait_until_quiet

COST: Final = Micros(1_000)
OFFERS_LEASED: Final = 2
PAID_EVERY: Final = 10
BEFORE_SECONDS_MAX: Final = 10.0
MEGABYTE: Final = 1_000_000
RESIDENT_MEGABYTES_MAX: Final = 1_000
# A worker without campaigns uses some CPU too; up to so much more counts as none.
MORE_SHARE_MAX: Final = 0.01


class IdleState(msgspec.Struct, frozen=True, kw_only=True):
    """An idle worker, and what it took to get there."""

    name: str
    resident_bytes: int
    idle_share: float
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def main(
    *,
    campaigns: Annotated[int, typer.Option(min=1, max=1_000_000, help="Campaigns with leases.")] = 100_000,
    sessions: Annotated[int, typer.Option(min=1, max=64, help="Delivery processes.")] = 1,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="How long the worker idles.")] = 20.0,
) -> None:
    """Lease all campaigns to delivery processes, and measure the idle worker."""
    show(
        lambda say: asyncio.run(
            measure_idle(campaigns=campaigns, sessions=sessions, idle_seconds=seconds, say=say)
        )
    )


async def measure_idle(*, campaigns: int, sessions: int, idle_seconds: float, say: ShowStatus) -> BenchTable:
    states = await measure_states(campaigns=campaigns, sessions=sessions, idle_seconds=idle_seconds, say=say)
    return compare_idle(states, idle_seconds)


async def measure_states(
    *, campaigns: int, sessions: int, idle_seconds: float, say: ShowStatus
) -> list[IdleState]:
    async with run_servers(banners=campaigns) as servers, contextlib.AsyncExitStack() as stack:
        shown = await add_campaigns(servers.pool, campaigns, cpm_micros=COST * 1_000, paid_every=PAID_EVERY)
        addresses = {one.id: one.address for one in shown}
        pid = await stack.enter_async_context(run_worker(servers))
        clients = [
            await stack.enter_async_context(BenchLeaseClient(servers.valkey, number).run())
            for number in range(1, sessions + 1)
        ]
        say("nothing to do, without campaigns")
        states = [await _measure_at_rest("none", pid, min(idle_seconds, BEFORE_SECONDS_MAX))]
        for number, client in enumerate(clients, start=1):
            say(f"process {number} takes {campaigns:,} leases")
            began_at, cpu_before = time.perf_counter(), measure_usage([pid]).cpu_seconds
            await client.report_usage(addresses, want=Micros(OFFERS_LEASED * COST), cost=COST)
            seconds = time.perf_counter() - began_at
            cpu_seconds = measure_usage([pid]).cpu_seconds - cpu_before
            say(f"nothing to do, with {campaigns:,} campaigns")
            name = f"{campaigns:,} × {number}"  # noqa: RUF001 - times
            state = await _measure_at_rest(name, pid, idle_seconds if number == sessions else 0.0)
            states.append(msgspec.structs.replace(state, seconds=seconds, cpu_seconds=cpu_seconds))
    return states


def compare_idle(states: Sequence[IdleState], idle_seconds: float) -> BenchTable:
    """Compare the worker with many campaigns with the same worker before."""
    first, last = states[0], states[-1]
    return BenchTable(
        title=f"idle: the worker over {idle_seconds:g} s without anything to do",
        headings=["leases", "leased in s", "CPU s for it", "MB", "to none", "idle CPU"],
        rows=[
            [
                state.name,
                "" if state is first else f"{state.seconds:.1f}",
                "" if state is first else f"{state.cpu_seconds:.1f}",
                f"{state.resident_bytes / MEGABYTE:.0f}",
                f"{state.resident_bytes / first.resident_bytes:.2f}",
                f"{state.idle_share:.2%}" if state in (first, last) else "",
            ]
            for state in states
        ],
        goals=[
            judge(
                f"under {RESIDENT_MEGABYTES_MAX:,} MB in the worker",
                last.resident_bytes / MEGABYTE,
                at_most=RESIDENT_MEGABYTES_MAX,
                form="{:.0f} MB",
            ),
            judge(
                f"idle campaigns take no CPU (under {MORE_SHARE_MAX:.0%} of a core more than none)",
                last.idle_share - first.idle_share,
                at_most=MORE_SHARE_MAX,
                form="{:+.2%}",
            ),
        ],
    )


async def _measure_at_rest(name: str, pid: int, idle_seconds: float) -> IdleState:
    """Wait until the worker is idle, and measure it for a while."""
    await wait_until_quiet(pid)
    before, began_at = measure_usage([pid]).cpu_seconds, time.perf_counter()
    await asyncio.sleep(idle_seconds)
    after, seconds = measure_usage([pid]), time.perf_counter() - began_at
    return IdleState(
        name=name,
        resident_bytes=after.resident_bytes,
        idle_share=(after.cpu_seconds - before) / seconds if idle_seconds else 0.0,
    )
