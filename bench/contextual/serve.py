"""`adloom bench contextual`: the cost of requests for contextual slots, as ratios to a no-op of the same server."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from statistics import median
from typing import Annotated, Final
from urllib.parse import quote

import msgspec
import typer

from adloom.runtime.ports import free_port
from bench.contextual.catalog import SLOTS, ContextualSize, name_page, name_slot
from bench.contextual.delivery_process import NO_OP_PATH
from bench.figures import BenchTable, GoalResult, show
from bench.load import NO_OP, BenchPlan, BenchSubject, Sample, Target, take_samples
from bench.processes import LoadError, ShowStatus, keep_off_last_cpu, stop, wait_until_answers
from bench.servers import filter_environment

PAGES_ASKED_MAX: Final = 2_000  # Different pages of a round, all over the sites.
ONE: Final = "one slot"
BATCH: Final = f"batch of {SLOTS}"
FEW: Final = ContextualSize(pages=100, campaigns=100, candidates=3)
LONG: Final = ContextualSize(pages=100, campaigns=100, candidates=20)
MANY_PAGES: Final = ContextualSize(pages=100_000, campaigns=100, candidates=3)
MANY_CAMPAIGNS: Final = ContextualSize(pages=100, campaigns=10_000, candidates=3)
TO_NO_OP_MAX: Final = {3: 2.5, 20: 4.0}
BATCH_MAX: Final = 2.5
GROWTH_MAX: Final = 1.3


class SizeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What requests cost with a catalog, in CPU of the server."""

    size: ContextualSize
    micros: float
    to_no_op: float
    batch_to_one: float
    resident_bytes: int


def main(
    *,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Length of a round.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of each target.")] = 5,
    connections: Annotated[int, typer.Option(min=1, max=1_000, help="Open connections.")] = 32,
) -> None:
    """Measure one slot and a batch of five, with few and many candidates, pages and campaigns."""
    plan = BenchPlan(seconds=seconds, rounds=rounds, connections=connections, workers=1)
    show(lambda say: measure_serving(plan, say), width=110)


def measure_serving(plan: BenchPlan, say: ShowStatus) -> BenchTable:
    """Measure all sizes, each on a server of its own."""
    found = {size: measure_size(size, plan, say) for size in (FEW, LONG, MANY_PAGES, MANY_CAMPAIGNS)}
    goals = [
        _judge(
            f"a slot with {size.candidates} candidates needs at most {most:g} times the CPU of the no-op",
            found[size].to_no_op,
            most,
        )
        for size in (FEW, LONG)
        for most in (TO_NO_OP_MAX[size.candidates],)
    ]
    goals.append(
        _judge(
            f"a batch of {SLOTS} needs at most {BATCH_MAX:g} times one", found[FEW].batch_to_one, BATCH_MAX
        )
    )
    for size, what in ((MANY_PAGES, "100,000 pages"), (MANY_CAMPAIGNS, "10,000 campaigns")):
        growth = found[size].to_no_op / found[FEW].to_no_op
        goals.append(
            _judge(f"{what} instead of 100 need at most {GROWTH_MAX:g} times that", growth, GROWTH_MAX)
        )
    return BenchTable(
        title=f"requests for slots, medians of {plan.rounds} rounds of {plan.seconds:g} s",
        headings=["pages, campaigns, candidates", "CPU µs", "to no-op", "batch to one", "MiB"],
        rows=[
            [
                f"{size.pages:,}, {size.campaigns:,}, {size.candidates}",
                f"{each.micros:.1f}",
                f"{each.to_no_op:.2f}",
                f"{each.batch_to_one:.2f}",
                f"{each.resident_bytes / 2**20:.0f}",
            ]
            for size, each in found.items()
        ],
        goals=goals,
    )


def measure_size(size: ContextualSize, plan: BenchPlan, say: ShowStatus) -> SizeFigures:
    port = free_port()
    numbers = (port, size.pages, size.campaigns, size.candidates)
    command = [sys.executable, "-m", "bench.contextual.delivery_process", *map(str, numbers)]
    process = subprocess.Popen(command, env=filter_environment(os.environ))  # noqa: S603 - ourselves
    keep_off_last_cpu(process.pid)
    try:
        wait_until_answers(process, port, NO_OP_PATH)
        targets = _build_targets(port, size)
        _check(port, targets[1].paths[0])
        subjects = [BenchSubject(target=target, pids=[process.pid]) for target in targets]
        samples = take_samples(subjects, plan, say)
    finally:
        stop(process)
    no_op, one, batch = ([each for each in samples if each.target == name] for name in (NO_OP, ONE, BATCH))
    return SizeFigures(
        size=size,
        micros=median(each.cpu_micros for each in one),
        to_no_op=_find_ratio(one, no_op),
        batch_to_one=_find_ratio(batch, one),
        resident_bytes=max(each.resident_bytes for each in one),
    )


def _find_ratio(some: Sequence[Sample], others: Sequence[Sample]) -> float:
    """Compare neighbouring rounds, since the speed of a machine varies."""
    return median(one.cpu_micros / (two.cpu_micros or 1) for one, two in zip(some, others, strict=True))


def _build_targets(port: int, size: ContextualSize) -> list[Target]:
    step = max(1, size.pages // PAGES_ASKED_MAX)
    pages = [(number % size.sites, name_page(number, size.sites)) for number in range(0, size.pages, step)]
    paths = tuple(
        f"/v1/serve?slot={name_slot(site, 0)}&url={quote(f'https://www.{url}?utm_source=mail', safe='')}"
        for site, url in pages
    )
    bodies = tuple(
        msgspec.json.encode(
            {"url": f"https://www.{url}", "slots": [name_slot(site, slot) for slot in range(SLOTS)]}
        ).decode()
        for site, url in pages
    )
    return [
        Target(name=NO_OP, port=port, path=NO_OP_PATH),
        Target(name=ONE, port=port, path=paths[0], paths=paths),
        Target(name=BATCH, port=port, path="/v1/serve/batch", body='"@kind@"', kinds=bodies),
    ]


def _check(port: int, path: str) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        if b"bannerId" not in answer.read():
            raise LoadError(f"{path}: no ad was served.")


def _judge(claim: str, found: float, most: float) -> GoalResult:
    return GoalResult(claim=claim, found=f"{found:.2f}", is_met=found <= most)
