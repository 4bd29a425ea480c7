"""`adloom bench compare`: this checkout beside another one in one run, behind a proxy with clients of public addresses."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Final

import msgspec
import typer

from bench.figures import EVENT, SERVE, BenchTable, group_samples, judge, show
from bench.load import ADDRESSES, NO_OP, BenchPlan, BenchSubject, Sample, Target, find_wrk, take_samples
from bench.processes import ShowStatus, find_python
from bench.product import PAID_PATH, PAID_SLUG, PRICED, Product, run_product

PAID: Final = "serve, paid"
MORE_MAX: Final = 1.05
OURS: Final = "this"
BASE: Final = "base"


def main(
    base: Annotated[Path, typer.Argument(help="Another checkout, with its own .venv.")],
    *,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Length of a round.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of each target.")] = 9,
    connections: Annotated[int, typer.Option(min=1, max=1_000, help="Open connections.")] = 32,
) -> None:
    """Compare the server CPU of requests with that of another checkout, with the limits of addresses in use."""
    plan = BenchPlan(seconds=seconds, rounds=rounds, connections=connections, workers=1)
    show(lambda report: tabulate_comparison(_take_samples(base, plan, report), plan))


def tabulate_comparison(samples: Sequence[Sample], plan: BenchPlan) -> BenchTable:
    """Tabulate medians, and the median of the ratios of neighbouring rounds: the machine's speed varies."""
    rounds = group_samples(samples)
    names = [target.removeprefix(f"{BASE}: ") for target in rounds if target.startswith(f"{BASE}: ")]
    ratios: dict[str, float] = {}
    rows: list[list[str]] = []
    for name in names:
        base, ours = (rounds[f"{side}: {name}"] for side in (BASE, OURS))
        each = [after.cpu_micros / before.cpu_micros for before, after in zip(base, ours, strict=True)]
        ratios[name] = median(each)
        micros = [f"{median(one.cpu_micros for one in side):.1f}" for side in (base, ours)]
        users = [f"{median(one.user_micros for one in side):.1f}" for side in (base, ours)]
        rows.append([name, *micros, *users, f"{ratios[name]:.2f}", f"{min(each):.2f}–{max(each):.2f}"])  # noqa: RUF001 - a range
    return BenchTable(
        title=f"server CPU µs a request, medians of {plan.rounds} × {plan.seconds:g} s, "  # noqa: RUF001 - times
        f"{plan.connections} connections",
        headings=["target", BASE, OURS, "user", "user", "ratio", "of rounds"],
        rows=rows,
        goals=[
            judge(
                f"{name} needs at most {MORE_MAX:g} times the CPU of the other checkout",
                ratio,
                at_most=MORE_MAX,
            )
            for name, ratio in ratios.items()
        ],
    )


def _take_samples(base: Path, plan: BenchPlan, report: ShowStatus) -> list[Sample]:
    find_wrk()
    python = find_python(base)
    with contextlib.ExitStack() as stack:
        products = {
            BASE: stack.enter_context(run_product(workers=1, python=python)),
            OURS: stack.enter_context(run_product(workers=1)),
        }
        targets = {side: build_targets(product) for side, product in products.items()}
        subjects = [
            BenchSubject(
                target=msgspec.structs.replace(target, name=f"{side}: {target.name}"),
                pids=products[side].delivery_pids,
            )
            for pair in zip(targets[BASE], targets[OURS], strict=True)
            for side, target in zip((BASE, OURS), pair, strict=True)
        ]
        return take_samples(subjects, plan, report)


def build_targets(product: Product) -> list[Target]:
    """Build the requests of clients behind a proxy; with a price, offers hold budget."""
    product.import_catalog(PAID_SLUG, campaigns=1, slots=1, terms=PRICED)
    port, body = product.port, product.impression
    return [
        Target(name=NO_OP, port=port, path="/health/live", addresses=ADDRESSES),
        Target(name=SERVE, port=port, path=product.serve_path, addresses=ADDRESSES),
        Target(name=PAID, port=port, path=PAID_PATH, addresses=ADDRESSES),
        Target(name=EVENT, port=port, path="/banners/events/impression", body=body, addresses=ADDRESSES),
    ]
