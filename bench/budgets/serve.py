"""The cost of serving with budgets: the same catalog on the same server with and without, in rotation."""

import threading
import urllib.request
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

import msgspec

from bench.budgets.outcome import BudgetOutcome, GoalResult, ShowStatus
from bench.figures import Sample
from bench.load import Effort, Load, LoadError, Target, run_wrk
from bench.product import BANNER, Product, run_product, send_request
from bench.rounds import BenchPlan, BenchSubject, take_samples

MORE_CPU_MAX: Final = 0.2
LOOK_SECONDS: Final = 0.05
SEEN_MIN: Final = 0.95  # With fewer answers that contain banners, something else is measured.
START_SECONDS_MAX: Final = 20.0
# An impression costs a thousandth of a unit; no bench spends this budget.
PRICED: Final = {"bidAmount": 1, "budgetDailyPaisa": 1_000_000_000_000, "pacingStrategy": "Accelerated"}


class PlacementPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two placements, one with budgets and one without."""

    campaigns: int
    slots: int

    @property
    def names(self) -> tuple[str, str]:
        """The slugs of the placement without budgets, and of the one with them."""
        return f"free-{self.campaigns}", f"budget-{self.campaigns}"


def measure_serving(plan: BenchPlan, pairs: Sequence[PlacementPair], say: ShowStatus) -> BudgetOutcome:
    """Start a product, import catalogs, and measure all placements in rotation."""
    say("starting the product")
    with run_product(workers=plan.workers) as product:
        for pair in pairs:
            for name, terms in zip(pair.names, ({}, PRICED), strict=True):
                product.admin.post("/admin/import", build_document(name, pair, terms))
        names = [name for pair in pairs for name in pair.names]
        for name in names:
            _wait_until_filled(product, name)
        watched = WatchedLoad(product.port)
        subjects = [
            BenchSubject(
                target=Target(name=name, port=product.port, path=_build_path(name)),
                pids=product.delivery_pids,
            )
            for name in names
        ]
        samples = take_samples(subjects, plan, say, load_by=watched)
    return compare_serving(pairs, samples, watched.compute_filled_shares(), plan)


def build_document(name: str, pair: PlacementPair, terms: dict[str, Any]) -> dict[str, Any]:
    """Build an import document with a placement and its campaigns."""
    keys = [f"{name}-{number}" for number in range(pair.campaigns)]
    placement = {"slug": name, "label": name, "layoutType": "full_slider", "maxBanners": pair.slots}
    return {
        "placements": [placement],
        "banners": [{"key": f"b-{key}", **BANNER} for key in keys],
        "campaigns": [{"key": f"c-{key}", "name": key, "status": "active", **terms} for key in keys],
        "links": [{"campaignId": f"c-{key}", "placementId": name} for key in keys],
        "assignments": [
            {"campaignId": f"c-{key}", "placementId": name, "bannerId": f"b-{key}"} for key in keys
        ],
    }


def compare_serving(
    pairs: Sequence[PlacementPair], samples: Sequence[Sample], filled: dict[str, float], plan: BenchPlan
) -> BudgetOutcome:
    """Compare each round with budgets with the neighbouring round without."""
    rows: list[list[str]] = []
    judged: list[GoalResult] = []
    for pair in pairs:
        free, paid = ([each for each in samples if each.target == name] for name in pair.names)
        ratio = median(
            _compute_micros(two) / (_compute_micros(one) or 1) for one, two in zip(free, paid, strict=True)
        )
        for rounds, to_free in ((free, 1.0), (paid, ratio)):
            name = rounds[0].target
            if filled[name] < SEEN_MIN:
                raise LoadError(f"{name}: only {filled[name]:.0%} of the answers had banners in them.")
            rows.append(_build_row(rounds, to_free, filled[name], pair))
        judged.append(
            GoalResult(
                claim=f"{pair.campaigns} with budgets: at most {MORE_CPU_MAX:.0%} more server CPU a request",
                found=f"{ratio - 1:+.1%}",
                is_met=ratio <= 1 + MORE_CPU_MAX,
            )
        )
    return BudgetOutcome(
        title=f"serve: medians of {plan.rounds} × {plan.seconds:g} s, {plan.connections} connections",  # noqa: RUF001 - times
        headings=["placement", "slots", "requests/s", "p99 ms", "filled", "CPU µs", "to free"],
        rows=rows,
        judged=judged,
    )


class WatchedLoad:
    """Runs wrk, and meanwhile samples whether the answers contain banners."""

    def __init__(self, port: int) -> None:
        self._port = port
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
            if (is_filled := _is_filled(self._port, target.path)) is not None:
                looks.append(is_filled)


def _build_row(rounds: Sequence[Sample], to_free: float, filled: float, pair: PlacementPair) -> list[str]:
    return [
        rounds[0].target,
        str(pair.slots),
        f"{median(each.load.requests / each.load.seconds for each in rounds):,.0f}",
        f"{median(each.load.p99_micros for each in rounds) / 1_000:.2f}",
        f"{filled:.0%}",
        f"{median(map(_compute_micros, rounds)):.1f}",
        f"{to_free:.2f}",
    ]


def _compute_micros(sample: Sample) -> float:
    return sample.cpu_seconds / sample.load.requests * 1e6


def _build_path(name: str) -> str:
    return f"/banners/serve/{name}"


def _wait_until_filled(product: Product, name: str) -> None:
    for _ in range(int(START_SECONDS_MAX / LOOK_SECONDS)):
        if _is_filled(product.port, _build_path(name)):
            return
        threading.Event().wait(LOOK_SECONDS)
    raise LoadError(f"{name}: no banner was served within {START_SECONDS_MAX:.0f} s.")


def _is_filled(port: int, path: str) -> bool | None:
    """Return whether an answer has banners; None without an answer: not in the index yet, or busy."""
    try:
        return bool(send_request(urllib.request.Request(f"http://127.0.0.1:{port}{path}"))["banners"])
    except (LoadError, OSError):
        return None
