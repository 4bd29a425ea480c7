"""`adloom bench auctions`: the cost of auctions over HTTP, as ratios to a no-op."""

import asyncio
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from adloom.core.clock import SystemClock
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.ports import find_port
from adloom.serving.auction.request import describe_context
from bench.catalog import build_auction_requests
from bench.figures import (
    PROGRESS,
    CpuGoal,
    TargetFigures,
    build_report,
    compute_figures,
    compute_share,
    judge,
    render_goal,
    render_report,
)
from bench.load import KIND, NO_OP, SERIAL, USER, BenchPlan, BenchSubject, Sample, Target, take_samples
from bench.processes import pin_to_last_cpu
from bench.servers import NO_OP_PATH, PASSWORD, open_folder, run_delivery, run_program

CAMPAIGNS: Final = 100_000
FEW_CAMPAIGNS: Final = 1_000
KINDS: Final = 100  # Of visitors.
BY_TYPE: Final = "auction, 25 placements"
BY_SLUG: Final = "auction, 1 placement"
ANY_VISITOR: Final = "auction, any visitor"
CPU_MAX: Final = 4.0
GROWTH_MAX: Final = 2.0
THROUGHPUT_MIN: Final = 0.3
# Enough connections to keep the process busy while half of them wait for Valkey: with 128 it leaves up to a
# tenth of its core idle.
PLAN: Final = BenchPlan(seconds=2.0, rounds=7, connections=256, workers=1)


def main(*, campaigns: Annotated[int, typer.Option(min=1, help="Of the larger market.")] = CAMPAIGNS) -> None:
    """Measure auctions over HTTP, with and without frequency caps, as ratios to a no-op."""
    asyncio.run(_measure_with_valkey(Console(width=110), campaigns))


async def _measure_with_valkey(console: Console, campaigns: int) -> None:
    with open_folder() as folder:
        valkey = EmbeddedValkey(folder / "valkey", listening=Listening(port=find_port()), password=PASSWORD)
        await valkey.prepare()
        async with run_program(valkey.program, folder / "valkey.log") as pid:
            pin_to_last_cpu(pid)
            await valkey.wait_until_ready()
            _measure(console, valkey.url, campaigns)


def _measure(console: Console, redis_url: str, campaigns: int) -> None:
    """Measure without frequency caps, which needs no look-ups, and with them; then a small market."""
    plain = compute_figures(_take_samples(redis_url, campaigns, "no-frequency"))
    goals = [CpuGoal(target=each, of=NO_OP, at_most=CPU_MAX) for each in (BY_TYPE, BY_SLUG)]
    _show(console, f"{campaigns:,} campaigns without frequency caps", plain, goals)
    samples = _take_samples(redis_url, campaigns)
    capped = compute_figures(samples)
    _show(console, f"{campaigns:,} campaigns, half of them with frequency caps", capped, [])
    for target in (BY_TYPE, BY_SLUG):
        claim = f"{target} has at least {THROUGHPUT_MIN:.0%} of the no-op's throughput"
        share = compute_share(samples, target, NO_OP)
        console.print(render_goal(judge(claim, share, at_least=THROUGHPUT_MIN, form="{:.1%}")))
    few = compute_figures(_take_samples(redis_url, FEW_CAMPAIGNS))
    _show(console, f"{FEW_CAMPAIGNS:,} campaigns, half of them with frequency caps", few, [])
    for target in (BY_TYPE, BY_SLUG):
        growth = _find_ratio(capped, target) / _find_ratio(few, target)
        claim = f"{target} needs at most {GROWTH_MAX:g} times as much in the larger market"
        console.print(render_goal(judge(claim, growth, at_most=GROWTH_MAX)))


def _take_samples(redis_url: str, campaigns: int, *without: str) -> list[Sample]:
    what = f"{campaigns:,} campaigns {'without' if without else 'with'} frequency caps"
    PROGRESS.say(f"{what}: starting")
    with run_delivery("bench.auction.delivery_process", redis_url, campaigns, *without) as (pid, port):
        subjects = [BenchSubject(target=target, pids=[pid]) for target in _build_targets(port)]
        return take_samples(subjects, PLAN, lambda done: PROGRESS.say(f"{what}: {done}"))


def _show(console: Console, title: str, figures: list[TargetFigures], goals: list[CpuGoal]) -> None:
    report = build_report(PLAN, figures, goals, now=SystemClock().now())
    console.print(f"\n{title}", render_report(report), sep="\n")


def _find_ratio(figures: list[TargetFigures], target: str) -> float:
    return next(each.cpu_to_no_op for each in figures if each.target == target)


def _build_targets(port: int) -> list[Target]:
    """Build requests by type and by placement for 100 kinds of visitors, and by type for a new kind each time."""
    path = "/api/v1/ads/serve"
    kinds = tuple(
        msgspec.json.encode(describe_context(context)).decode()
        for context, _ in build_auction_requests(KINDS)
    )
    kind = KIND.strip('"')
    bodies = {
        BY_TYPE: {"userId": USER, "placementType": "feed", "userContext": kind},
        BY_SLUG: {"userId": USER, "placement": "slot-0", "userContext": kind},
        ANY_VISITOR: {"userId": USER, "placementType": "feed", "userContext": {"segment": f"s-{SERIAL}"}},
    }
    return [
        Target(name=NO_OP, port=port, path=NO_OP_PATH),
        *(
            Target(name=name, port=port, path=path, body=msgspec.json.encode(body).decode(), kinds=kinds)
            for name, body in bodies.items()
        ),
    ]
