"""`adloom bench contextual`: the cost of requests for contextual slots, beside references in the same run.

These are a no-op of the same server, nginx with a file of the answer's size, Python's floor, and the no-op of another
checkout, if one is named: a no-op that gets cheaper makes everything else look dearer.
"""

import contextlib
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Final
from urllib.parse import quote

import msgspec
import typer

from bench.contextual.catalog import SLOTS, ContextualSize, name_page, name_slot
from bench.figures import BenchTable, GoalResult, group_samples, judge, show
from bench.load import NO_OP, BenchPlan, BenchSubject, Sample, Target, take_samples
from bench.processes import LoadError, ShowStatus, find_python, keep_off_last_cpu
from bench.servers import NO_OP_PATH, find_nginx, run_delivery, run_floor, run_nginx

DELIVERY: Final = "bench.contextual.delivery_process"
PAGES_ASKED_MAX: Final = 2_000  # Different pages of a round, all over the sites.
ONE: Final = "one slot"
BATCH: Final = f"batch of {SLOTS}"
BASE: Final = "no-op of the other checkout"
FEW: Final = ContextualSize(pages=100, campaigns=100, candidates=3)
LONG: Final = ContextualSize(pages=100, campaigns=100, candidates=20)
MANY_PAGES: Final = ContextualSize(pages=100_000, campaigns=100, candidates=3)
MANY_CAMPAIGNS: Final = ContextualSize(pages=100, campaigns=10_000, candidates=3)
TO_NO_OP_MAX: Final = {3: 2.5, 20: 4.0}
BATCH_MAX: Final = 2.5
GROWTH_MAX: Final = 1.3


class SizeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What requests cost with a catalog, in CPU of the server; `to` has multiples of the references."""

    size: ContextualSize
    micros: float
    user_micros: float
    to: dict[str, float]
    batch_to_one: float
    resident_bytes: int


def main(
    *,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Length of a round.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of each target.")] = 5,
    connections: Annotated[int, typer.Option(min=1, max=1_000, help="Open connections.")] = 32,
    base: Annotated[
        Path | None, typer.Option(help="Another checkout with its own .venv, whose no-op is measured too.")
    ] = None,
) -> None:
    """Measure one slot and a batch of five, with few and many candidates, pages and campaigns."""
    plan = BenchPlan(seconds=seconds, rounds=rounds, connections=connections, workers=1)
    show(lambda say: measure_serving(plan, say, base), width=110)


def measure_serving(plan: BenchPlan, say: ShowStatus, base: Path | None = None) -> BenchTable:
    """Measure all sizes, each on a server of its own; references beside few and many candidates."""
    found = {size: measure_size(size, plan, say, base) for size in (FEW, LONG)}
    found |= {
        size: measure_size(size, plan, say, has_references=False) for size in (MANY_PAGES, MANY_CAMPAIGNS)
    }
    goals = [
        judge(
            f"a slot with {size.candidates} candidates needs at most {most:g} times the CPU of the {name}",
            found[size].to[name],
            at_most=most,
        )
        for name in (NO_OP, BASE)
        for size in (FEW, LONG)
        for most in (TO_NO_OP_MAX[size.candidates],)
        if name in found[size].to
    ]
    batch_to_one = found[FEW].batch_to_one
    goals.append(
        judge(f"a batch of {SLOTS} needs at most {BATCH_MAX:g} times one", batch_to_one, at_most=BATCH_MAX)
    )
    for size, what in ((MANY_PAGES, "100,000 pages"), (MANY_CAMPAIGNS, "10,000 campaigns")):
        growth = found[size].to[NO_OP] / found[FEW].to[NO_OP]
        claim = f"{what} instead of 100 need at most {GROWTH_MAX:g} times that"
        goals.append(judge(claim, growth, at_most=GROWTH_MAX))
    return tabulate_sizes(list(found.values()), plan, goals)


def tabulate_sizes(found: Sequence[SizeFigures], plan: BenchPlan, goals: Sequence[GoalResult]) -> BenchTable:
    """Tabulate medians, with a column for each reference that was measured."""
    names = list(dict.fromkeys(name for each in found for name in each.to))
    return BenchTable(
        title=f"requests for slots, medians of {plan.rounds} rounds of {plan.seconds:g} s",
        headings=[
            "pages, campaigns, candidates",
            "CPU µs",
            "user",
            *(f"to {name}" for name in names),
            "batch to one",
            "MiB",
        ],
        rows=[
            [
                f"{each.size.pages:,}, {each.size.campaigns:,}, {each.size.candidates}",
                f"{each.micros:.1f}",
                f"{each.user_micros:.1f}",
                *(f"{each.to[name]:.2f}" if name in each.to else "" for name in names),
                f"{each.batch_to_one:.2f}",
                f"{each.resident_bytes / 2**20:.0f}",
            ]
            for each in found
        ],
        goals=list(goals),
    )


def measure_size(
    size: ContextualSize,
    plan: BenchPlan,
    say: ShowStatus,
    base: Path | None = None,
    *,
    has_references: bool = True,
) -> SizeFigures:
    what = f"{size.pages:,} pages, {size.campaigns:,} campaigns, {size.candidates} candidates"
    say(f"{what}: starting")
    with contextlib.ExitStack() as stack:
        pid, port = stack.enter_context(run_delivery(DELIVERY, *msgspec.structs.astuple(size)))
        targets = _build_targets(port, size)
        answer_bytes = _check(port, targets[1].paths[0])
        subjects = [BenchSubject(target=target, pids=[pid]) for target in targets]
        if has_references:
            subjects += _run_references(stack, size, answer_bytes, base)
        samples = take_samples(subjects, plan, lambda done: say(f"{what}: {done}"))
    by_name = group_samples(samples)
    one, batch = by_name.pop(ONE), by_name.pop(BATCH)
    return SizeFigures(
        size=size,
        micros=median(each.cpu_micros for each in one),
        user_micros=median(each.user_micros for each in one),
        to={name: _find_ratio(one, others) for name, others in by_name.items()},
        batch_to_one=_find_ratio(batch, one),
        resident_bytes=max(each.resident_bytes for each in one),
    )


def _run_references(
    stack: contextlib.ExitStack, size: ContextualSize, answer_bytes: int, base: Path | None
) -> list[BenchSubject]:
    """Run what is compared with, on the cores of the server."""
    found = [stack.enter_context(run_floor(size=answer_bytes))]
    nginx = find_nginx()
    if nginx is not None:
        found.insert(0, stack.enter_context(run_nginx(nginx, size=answer_bytes)))
    if base is not None:
        words = msgspec.structs.astuple(size)
        other = run_delivery(DELIVERY, *words, python=find_python(base), checkout=base.absolute())
        pid, port = stack.enter_context(other)
        found.append(BenchSubject(target=Target(name=BASE, port=port, path=NO_OP_PATH), pids=[pid]))
    for one in found:
        for pid in one.pids:
            keep_off_last_cpu(pid)
    return found


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


def _check(port: int, path: str) -> int:
    """Return the length of an answer, which must have an ad."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
        body: bytes = answer.read()
    if b"bannerId" not in body:
        raise LoadError(f"{path}: no ad was served.")
    return len(body)
