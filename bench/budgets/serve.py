"""`adloom bench budgets`: serving with budgets and without, the same catalog on the same server, in rotation."""

import threading
from collections.abc import Sequence
from statistics import median
from typing import Annotated, Final

import msgspec
import typer

from bench.figures import BenchTable, GoalResult, show
from bench.load import BenchPlan, BenchSubject, Effort, Load, Sample, Target, run_wrk, take_samples
from bench.processes import LoadError, ShowStatus
from bench.product import PRICED, Product, run_product

MANY_SLOTS: Final = 3
MORE_CPU_MAX: Final = 0.2
LOOK_SECONDS: Final = 0.05
SEEN_MIN: Final = 0.95  # With fewer answers that contain banners, something else is measured.


class PlacementPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two placements, one with budgets and one without."""

    campaigns: int
    slots: int

    @property
    def names(self) -> tuple[str, str]:
        """The slugs of the placement without budgets, and of the one with them."""
        return f"free-{self.campaigns}", f"budget-{self.campaigns}"


def main(
    *,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Length of a round.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of each placement.")] = 10,
    connections: Annotated[int, typer.Option(min=1, max=1_000, help="Open connections.")] = 32,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Delivery processes.")] = 1,
    many: Annotated[int, typer.Option(min=2, max=10_000, help="Campaigns of the larger placement.")] = 300,
) -> None:
    """Measure what budgets cost requests: one campaign, and many, each with budgets and without."""
    plan = BenchPlan(seconds=seconds, rounds=rounds, connections=connections, workers=workers)
    pairs = [PlacementPair(campaigns=1, slots=1), PlacementPair(campaigns=many, slots=MANY_SLOTS)]
    show(lambda say: measure_serving(plan, pairs, say))


def measure_serving(plan: BenchPlan, pairs: Sequence[PlacementPair], say: ShowStatus) -> BenchTable:
    """Start a product, import catalogs, and measure all placements in rotation."""
    with run_product(workers=plan.workers) as product:
        for pair in pairs:
            for name, terms in zip(pair.names, ({}, PRICED), strict=True):
                product.import_catalog(name, campaigns=pair.campaigns, slots=pair.slots, terms=terms)
        targets = [
            Target(name=name, port=product.port, path=f"/banners/serve/{name}")
            for pair in pairs
            for name in pair.names
        ]
        watched = WatchedLoad(product)
        subjects = [BenchSubject(target=target, pids=product.delivery_pids) for target in targets]
        samples = take_samples(subjects, plan, say, load_by=watched)
    return compare_serving(pairs, samples, watched.compute_filled_shares(), plan)


def compare_serving(
    pairs: Sequence[PlacementPair], samples: Sequence[Sample], filled: dict[str, float], plan: BenchPlan
) -> BenchTable:
    """Compare each round with budgets with the neighbouring round without."""
    rows: list[list[str]] = []
    goals: list[GoalResult] = []
    for pair in pairs:
        free, paid = ([each for each in samples if each.target == name] for name in pair.names)
        ratio = median(two.cpu_micros / (one.cpu_micros or 1) for one, two in zip(free, paid, strict=True))
        for rounds, to_free in ((free, 1.0), (paid, ratio)):
            name = rounds[0].target
            if filled[name] < SEEN_MIN:
                raise LoadError(f"{name}: only {filled[name]:.0%} of the answers had banners in them.")
            rows.append(_build_row(rounds, to_free, filled[name], pair))
        goals.append(
            GoalResult(
                claim=f"{pair.campaigns} with budgets: at most {MORE_CPU_MAX:.0%} more server CPU a request",
                found=f"{ratio - 1:+.1%}",
                is_met=ratio <= 1 + MORE_CPU_MAX,
            )
        )
    return BenchTable(
        title=f"serve: medians of {plan.rounds} × {plan.seconds:g} s, {plan.connections} connections",  # noqa: RUF001 - times
        headings=["placement", "slots", "requests/s", "p99 ms", "filled", "CPU µs", "to free"],
        rows=rows,
        goals=goals,
    )


class WatchedLoad:
    """Runs wrk, and meanwhile samples whether the answers contain banners."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._looks: dict[str, list[list[bool]]] = {}  # By target, a list per load.

    def __call__(self, target: Target, effort: Effort) -> Load:
        stop = threading.Event()
        looking = threading.Thread(target=self._look, args=(target, stop))
        looking.start()
        try:
            return run_wrk(target, effort)
        finally:
            stop.set()
            looking.join()

    def compute_filled_shares(self) -> dict[str, float]:
        """Return the share of answers with banners by target, without the warm-up: leases follow demand."""
        shares: dict[str, float] = {}
        for name, loads in self._looks.items():
            looks = [is_filled for load in loads[1:] for is_filled in load]
            shares[name] = sum(looks) / len(looks) if looks else 1.0
        return shares

    def _look(self, target: Target, stop: threading.Event) -> None:
        looks: list[bool] = []
        self._looks.setdefault(target.name, []).append(looks)
        while not stop.wait(LOOK_SECONDS):
            try:
                looks.append(bool(self._product.serve(target.path)["banners"]))
            except (LoadError, OSError):
                continue  # Busy.


def _build_row(rounds: Sequence[Sample], to_free: float, filled: float, pair: PlacementPair) -> list[str]:
    return [
        rounds[0].target,
        str(pair.slots),
        f"{median(each.load.requests / each.load.seconds for each in rounds):,.0f}",
        f"{median(each.load.p99_micros for each in rounds) / 1_000:.2f}",
        f"{filled:.0%}",
        f"{median(each.cpu_micros for each in rounds):.1f}",
        f"{to_free:.2f}",
    ]
