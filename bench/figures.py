"""Turns samples into figures: medians over the rounds, ratios, goals met or not, and the tables that show them."""

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from math import inf
from statistics import median
from typing import Final

import msgspec
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from adloom import VERSION
from adloom.app.progress import WorkProgress
from bench.load import NO_OP, BenchPlan, Sample
from bench.processes import ShowStatus

SERVE: Final = "serve"
EVENT: Final = "event"
MEBIBYTE: Final = 1 << 20
PROGRESS: Final = WorkProgress("adloom bench")  # Of the bench that this process runs.


class TargetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One target over all rounds."""

    target: str
    requests_per_second: float
    p50_micros: float
    p99_micros: float
    cpu_micros: float
    cpu_to_no_op: float
    resident_bytes: int
    user_micros: float = 0.0  # Of `cpu_micros`: the rest is the kernel's.


class CpuGoal(msgspec.Struct, frozen=True, kw_only=True):
    """The most server CPU a target may use, as a multiple of another's."""

    target: str
    of: str
    at_most: float


class CpuVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a goal is met."""

    goal: CpuGoal
    ratio: float
    is_met: bool


class GoalResult(msgspec.Struct, frozen=True, kw_only=True):
    """A goal, the measured value, and whether it is met."""

    claim: str
    found: str
    is_met: bool


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run, with what is needed to compare it with another."""

    version: str
    python: str
    cpus: int
    measured_at: datetime
    plan: BenchPlan
    figures: Sequence[TargetFigures]
    verdicts: Sequence[CpuVerdict]
    behind: Sequence[GoalResult] = ()  # What other servers than delivery spend on an event.


class BenchTable(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a bench as text: the first column names what was measured."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    goals: Sequence[GoalResult] = ()


def compute_figures(samples: Sequence[Sample]) -> list[TargetFigures]:
    """Summarize the rounds of each target, in order of first appearance."""
    rounds = group_samples(samples)
    no_op_micros = median(sample.cpu_micros for sample in rounds[NO_OP])
    return [_summarize(name, of_target, no_op_micros) for name, of_target in rounds.items()]


def compute_share(samples: Sequence[Sample], target: str, of: str) -> float:
    """Return a target's throughput as a share of another's: the median over rounds, since machine speed varies."""
    rounds = group_samples(samples)
    return median(
        part.requests_per_second / whole.requests_per_second
        for part, whole in zip(rounds[target], rounds[of], strict=True)
    )


def judge_goals(figures: Sequence[TargetFigures], goals: Sequence[CpuGoal]) -> list[CpuVerdict]:
    """Judge the goals if both of their targets were measured."""
    micros = {each.target: each.cpu_micros for each in figures}
    return [
        CpuVerdict(goal=goal, ratio=ratio, is_met=ratio <= goal.at_most)
        for goal in goals
        if goal.target in micros and goal.of in micros
        for ratio in [_divide(micros[goal.target], micros[goal.of])]
    ]


def build_report(
    plan: BenchPlan, figures: Sequence[TargetFigures], goals: Sequence[CpuGoal], *, now: datetime
) -> BenchReport:
    return BenchReport(
        version=VERSION,
        python=platform.python_version(),
        cpus=os.cpu_count() or 1,
        measured_at=now,
        plan=plan,
        figures=figures,
        verdicts=judge_goals(figures, goals),
    )


def render_report(report: BenchReport) -> RenderableType:
    """Render a table within 80 columns, and a line per goal; CPU is the server's, per request."""
    plan = report.plan
    return render(
        BenchTable(
            title=f"medians of {plan.rounds} × {plan.seconds:g} s by wrk, "  # noqa: RUF001 - times
            f"{plan.connections} connections, {plan.workers} process{'es' if plan.workers > 1 else ''}",
            headings=["target", "requests/s", "p50 ms", "p99 ms", "CPU µs", "to no-op", "MiB"],
            rows=[
                [
                    each.target,
                    f"{each.requests_per_second:,.0f}",
                    f"{each.p50_micros / 1_000:.2f}",
                    f"{each.p99_micros / 1_000:.2f}",
                    f"{each.cpu_micros:.1f}",
                    f"{each.cpu_to_no_op:.2f}",
                    f"{each.resident_bytes / MEBIBYTE:.0f}",
                ]
                for each in report.figures
            ],
            goals=describe_verdicts(report.verdicts),
        )
    )


def describe_verdicts(verdicts: Sequence[CpuVerdict]) -> list[GoalResult]:
    return [
        GoalResult(
            claim=f"{one.goal.target} needs at most {one.goal.at_most:g} times the CPU of {one.goal.of}",
            found=f"{one.ratio:.2f}",
            is_met=one.is_met,
        )
        for one in verdicts
    ]


def judge(
    claim: str, value: float, *, at_most: float = inf, at_least: float = -inf, form: str = "{:.2f}"
) -> GoalResult:
    return GoalResult(claim=claim, found=form.format(value), is_met=at_least <= value <= at_most)


def find_p99(values: Sequence[float]) -> float:
    return sorted(values)[len(values) * 99 // 100]


def group_samples(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Group samples by target, in order of first appearance."""
    rounds: dict[str, list[Sample]] = {}
    for sample in samples:
        rounds.setdefault(sample.target, []).append(sample)
    return rounds


def render(bench: BenchTable) -> RenderableType:
    """Render a table, and a line per goal."""
    table = Table(title=bench.title, title_justify="left", title_style="dim")
    first, *others = bench.headings
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right")
    for row in bench.rows:
        table.add_row(*row)
    return Group(table, *map(render_goal, bench.goals))


def show(measure: Callable[[ShowStatus], BenchTable], *, width: int | None = None) -> None:
    """Run a bench, show its progress, and print its table."""
    table = measure(PROGRESS.say)
    Console(width=width).print(render(table))


def render_goal(goal: GoalResult) -> Text:
    mark, style = ("met", "green") if goal.is_met else ("NOT MET", "bold red")
    return Text.assemble(f"goal: {goal.claim}: ", (f"{goal.found}, {mark}", style))


def _summarize(name: str, rounds: Sequence[Sample], no_op_micros: float) -> TargetFigures:
    cpu_micros = median(sample.cpu_micros for sample in rounds)
    return TargetFigures(
        target=name,
        requests_per_second=median(sample.requests_per_second for sample in rounds),
        p50_micros=median(sample.load.p50_micros for sample in rounds),
        p99_micros=median(sample.load.p99_micros for sample in rounds),
        cpu_micros=cpu_micros,
        cpu_to_no_op=_divide(cpu_micros, no_op_micros),
        resident_bytes=max(sample.resident_bytes for sample in rounds),
        user_micros=median(sample.user_micros for sample in rounds),
    )


def _divide(part: float, whole: float) -> float:
    # Rounds of milliseconds can be shorter than a tick of the CPU clock.
    return part / whole if whole else float("inf")
