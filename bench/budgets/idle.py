"""The cost of unused budgets: many campaigns with leases in an idle worker."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from adloom.core.money import Micros
from bench.budgets.campaigns_store import add_campaigns
from bench.budgets.leaseholder import BenchLeaseClient
from bench.budgets.outcome import BudgetOutcome, GoalResult, ShowStatus
from bench.budgets.servers import run_servers, run_worker, wait_until_quiet
from bench.processes import measure_usage

COST: Final = Micros(1_000)
OFFERS_LEASED: Final = 2
PAID_EVERY: Final = 10
BEFORE_SECONDS_MAX: Final = 10.0
QUIET_SECONDS_MAX: Final = 30.0
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


async def measure_idle(
    *, campaigns: int, sessions: int, idle_seconds: float, say: ShowStatus
) -> BudgetOutcome:
    """Lease all campaigns to delivery processes, and measure the idle worker."""
    say("starting servers and a worker")
    async with run_servers() as servers, contextlib.AsyncExitStack() as stack:
        shown = await add_campaigns(servers.pool, campaigns, cpm_micros=COST * 1_000, paid_every=PAID_EVERY)
        addresses = {one.id: one.address for one in shown}
        pid = await stack.enter_async_context(run_worker(servers))
        holders = [
            await stack.enter_async_context(BenchLeaseClient(servers.valkey, number).run())
            for number in range(1, sessions + 1)
        ]
        say("nothing to do, without campaigns")
        states = [await _measure_at_rest("none", pid, min(idle_seconds, BEFORE_SECONDS_MAX))]
        for number, holder in enumerate(holders, start=1):
            say(f"process {number} takes {campaigns:,} leases")
            began_at, cpu_before = time.perf_counter(), measure_usage([pid]).cpu_seconds
            await holder.report_usage(addresses, want=Micros(OFFERS_LEASED * COST), cost=COST)
            seconds, cpu_seconds = (
                time.perf_counter() - began_at,
                measure_usage([pid]).cpu_seconds - cpu_before,
            )
            is_last = number == sessions
            say(f"nothing to do, with {campaigns:,} campaigns")
            state = await _measure_at_rest(f"{campaigns:,} × {number}", pid, idle_seconds if is_last else 0.0)  # noqa: RUF001 - times
            states.append(msgspec.structs.replace(state, seconds=seconds, cpu_seconds=cpu_seconds))
    return compare_idle(states, idle_seconds)


def compare_idle(states: Sequence[IdleState], idle_seconds: float) -> BudgetOutcome:
    """Compare the worker with many campaigns with the same worker before."""
    first, last = states[0], states[-1]
    more = last.idle_share - first.idle_share
    megabytes = last.resident_bytes / MEGABYTE
    return BudgetOutcome(
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
        judged=[
            GoalResult(
                claim=f"under {RESIDENT_MEGABYTES_MAX:,} MB in the worker",
                found=f"{megabytes:.0f} MB",
                is_met=megabytes < RESIDENT_MEGABYTES_MAX,
            ),
            GoalResult(
                claim=f"idle campaigns take no CPU (under {MORE_SHARE_MAX:.0%} of a core more than none)",
                found=f"{more:+.2%}",
                is_met=more < MORE_SHARE_MAX,
            ),
        ],
    )


async def _measure_at_rest(name: str, pid: int, idle_seconds: float) -> IdleState:
    """Wait until the worker is idle, and measure it for a while."""
    await wait_until_quiet(pid, seconds_max=QUIET_SECONDS_MAX)
    before, began_at = measure_usage([pid]).cpu_seconds, time.perf_counter()
    await asyncio.sleep(idle_seconds)
    after, seconds = measure_usage([pid]), time.perf_counter() - began_at
    return IdleState(
        name=name,
        resident_bytes=after.resident_bytes,
        idle_share=(after.cpu_seconds - before) / seconds if idle_seconds else 0.0,
    )
