"""`adloom bench` itself: the hot routes beside nginx and Python's floor in one run, and beside the last run."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console, Group, RenderableType
from rich.text import Text

from adloom.core.clock import SystemClock
from bench.figures import (
    EVENT,
    PROGRESS,
    SERVE,
    BenchReport,
    BenchTable,
    CpuGoal,
    TargetFigures,
    build_report,
    compute_figures,
    describe_verdicts,
    render,
)
from bench.load import (
    ADDRESSES,
    FLOOR,
    NGINX,
    NO_OP,
    USER,
    BenchPlan,
    BenchSubject,
    Sample,
    Target,
    find_wrk,
    take_samples,
)
from bench.processes import ShowStatus, keep_apart, list_descendants
from bench.product import PAID_PATH, PAID_SLUG, PRICED, Product, run_product
from bench.routes.behind import CAMPAIGNS, CostBehind, measure_behind
from bench.servers import find_nginx, run_floor, run_nginx

MANY: Final = "serve 3 of 50 paid"
AUCTION: Final = "auction"
# With clients of public addresses, which are counted.
SERVE_BEHIND: Final = "serve, proxy"
PAID_BEHIND: Final = "serve paid, proxy"
EVENT_BEHIND: Final = "event, proxy"
MANY_CAMPAIGNS: Final = 50
MANY_SLOTS: Final = 3
SLOWER_MIN: Final = 1.1  # Less is noise.

GOALS: Final = (
    CpuGoal(target=SERVE, of=NGINX, at_most=2.5),
    CpuGoal(target=MANY, of=NGINX, at_most=3.2),
    CpuGoal(target=AUCTION, of=NGINX, at_most=3.0),
    CpuGoal(target=EVENT, of=NGINX, at_most=2.5),
    CpuGoal(target=SERVE_BEHIND, of=NGINX, at_most=2.5),
    CpuGoal(target=PAID_BEHIND, of=NGINX, at_most=2.5),
)


def measure_routes(plan: BenchPlan, json_file: Path | None = None, last_file: Path | None = None) -> None:
    """Measure, print the table, and keep the figures for the next run."""
    console = Console()
    last_file = last_file or find_last_file(os.environ)
    samples, behind = _take_samples(plan, PROGRESS.say)
    figures = compute_figures([*samples, *(one.sample for one in behind)])
    report = build_report(plan, figures, GOALS, now=SystemClock().now())
    report = msgspec.structs.replace(report, behind=[one.judge() for one in behind])
    console.print(render_routes(report, read_report(last_file)))
    encoded = msgspec.json.format(msgspec.json.encode(report), indent=2)
    for file in {last_file, json_file or last_file}:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded)


def find_last_file(variables: Mapping[str, str]) -> Path:
    """Return where the figures of the last run are kept."""
    state = variables.get("XDG_STATE_HOME") or str(Path(variables.get("HOME") or "~", ".local", "state"))
    return Path(state, "adloom", "bench.json").expanduser()


def read_report(file: Path) -> BenchReport | None:
    """Read the figures of an earlier run; None if there are none that this version understands."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=BenchReport)
    except (OSError, msgspec.MsgspecError):
        return None


def render_routes(report: BenchReport, last: BenchReport | None) -> RenderableType:
    """Render a table within 80 columns, a line per goal, and a line per target that got slower."""
    plan = report.plan
    now, before = compute_ratios(report.figures), compute_ratios(last.figures if last else ())
    table = BenchTable(
        title=f"server CPU a request, medians of {plan.rounds} × {plan.seconds:g} s, "  # noqa: RUF001 - times
        f"{plan.connections} connections, {plan.workers} process{'es' if plan.workers > 1 else ''}",
        headings=["target", "req/s", "p99 ms", "CPU µs", "user", "nginx", "floor", "last"],
        rows=[
            [
                each.target,
                f"{each.requests_per_second:,.0f}",
                f"{each.p99_micros / 1_000:.1f}",
                f"{each.cpu_micros:.1f}",
                f"{each.user_micros:.1f}" if each.user_micros else "",
                _show(now[NGINX].get(each.target)),
                _show(now[FLOOR].get(each.target)),
                _show(before[NGINX].get(each.target) or before[FLOOR].get(each.target)),
            ]
            for each in report.figures
        ],
        goals=[*describe_verdicts(report.verdicts), *report.behind],
    )
    slower = [] if last is None else list_slower(report.figures, last.figures)
    return Group(render(table), *(Text(line, style="yellow") for line in slower))


def compute_ratios(figures: Sequence[TargetFigures]) -> dict[str, dict[str, float]]:
    """Return the CPU of each target as a multiple of nginx's and of the floor's, where those were measured."""
    micros = {each.target: each.cpu_micros for each in figures}
    return {
        of: {name: each / micros[of] for name, each in micros.items()} if micros.get(of) else {}
        for of in (NGINX, FLOOR)
    }


def list_slower(figures: Sequence[TargetFigures], before: Sequence[TargetFigures]) -> list[str]:
    """Say which targets cost more than in an earlier run, as ratios: the machine may have been faster then."""
    now, then = compute_ratios(figures), compute_ratios(before)
    of = NGINX if now[NGINX] and then[NGINX] else FLOOR
    return [
        f"slower than in the last run: {name}, {ratio:.2f} times {of} (it was {then[of][name]:.2f})"
        for name, ratio in now[of].items()
        if name in then[of] and ratio >= SLOWER_MIN * then[of][name]
    ]


def _show(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _take_samples(plan: BenchPlan, report: ShowStatus) -> tuple[list[Sample], list[CostBehind]]:
    """Measure a product of our own beside Python's floor, and nginx if it is installed; then what is behind events."""
    find_wrk()
    with contextlib.ExitStack() as stack:
        product = stack.enter_context(run_product(workers=plan.workers))
        size = len(msgspec.json.encode(product.serve(product.serve_path)))
        subjects = [
            BenchSubject(target=target, pids=product.delivery_pids) for target in build_targets(product)
        ]
        subjects.append(stack.enter_context(run_floor(size=size)))
        nginx = find_nginx()
        if nginx is not None:
            subjects.append(stack.enter_context(run_nginx(nginx, size=size)))
        others = set(list_descendants(product.pid)) - set(product.delivery_pids)
        with keep_apart([pid for subject in subjects for pid in subject.pids], others):
            samples = take_samples(subjects, plan, report)
        seconds = max(plan.seconds * plan.rounds, plan.behind_seconds_min)
        return samples, [measure_behind(product, name, seconds, report) for name in CAMPAIGNS]


def build_targets(product: Product) -> list[Target]:
    product.import_catalog(PAID_SLUG, campaigns=1, slots=1, terms=PRICED)
    product.import_catalog("bench-many", campaigns=MANY_CAMPAIGNS, slots=MANY_SLOTS, terms=PRICED)
    product.import_auction("bench-auction", campaigns=MANY_CAMPAIGNS)
    auction = msgspec.json.encode({"userId": USER, "placement": "bench-auction"}).decode()
    port = product.port
    return [
        Target(name=NO_OP, port=port, path="/health/live"),
        Target(name=SERVE, port=port, path=product.serve_path),
        Target(name=SERVE_BEHIND, port=port, path=product.serve_path, addresses=ADDRESSES),
        Target(name=PAID_BEHIND, port=port, path=PAID_PATH, addresses=ADDRESSES),
        Target(name=MANY, port=port, path="/banners/serve/bench-many"),
        Target(name=AUCTION, port=port, path="/api/v1/ads/serve", body=auction),
        Target(name=EVENT, port=port, path="/banners/events/impression", body=product.impression),
        Target(
            name=EVENT_BEHIND,
            port=port,
            path="/banners/events/impression",
            body=product.impression,
            addresses=ADDRESSES,
        ),
    ]
