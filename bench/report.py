"""The figures as a table and as a file."""

import os
import platform
from collections.abc import Sequence
from datetime import datetime

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from adloom import VERSION
from bench.figures import CpuVerdict, TargetFigures
from bench.rounds import BenchPlan

MEBIBYTE = 1 << 20


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run, with what is needed to compare it with another."""

    version: str
    python: str
    cpus: int
    measured_at: datetime
    plan: BenchPlan
    figures: Sequence[TargetFigures]
    verdicts: Sequence[CpuVerdict]


def build_report(
    plan: BenchPlan, figures: Sequence[TargetFigures], verdicts: Sequence[CpuVerdict], *, now: datetime
) -> BenchReport:
    return BenchReport(
        version=VERSION,
        python=platform.python_version(),
        cpus=os.cpu_count() or 1,
        measured_at=now,
        plan=plan,
        figures=figures,
        verdicts=verdicts,
    )


def render_report(report: BenchReport) -> RenderableType:
    """Render a table within 80 columns, and a line per goal; CPU is the server's, per request."""
    plan = report.plan
    title = (
        f"medians of {plan.rounds} × {plan.seconds:g} s by wrk, "  # noqa: RUF001 - times
        f"{plan.connections} connections, {plan.workers} process{'es' if plan.workers > 1 else ''}"
    )
    table = Table(title=title, title_justify="left", title_style="dim")
    table.add_column("target", no_wrap=True)
    for heading in ("requests/s", "p50 ms", "p99 ms", "CPU µs", "to no-op", "MiB"):
        table.add_column(heading, justify="right")
    for each in report.figures:
        table.add_row(each.target, *_format_cells(each))
    return Group(table, *map(_render_verdict, report.verdicts))


def _format_cells(figures: TargetFigures) -> list[str]:
    return [
        f"{figures.requests_per_second:,.0f}",
        f"{figures.p50_micros / 1_000:.2f}",
        f"{figures.p99_micros / 1_000:.2f}",
        f"{figures.cpu_micros:.1f}",
        f"{figures.cpu_to_no_op:.2f}",
        f"{figures.resident_bytes / MEBIBYTE:.0f}",
    ]


def _render_verdict(verdict: CpuVerdict) -> Text:
    goal = verdict.goal
    mark, style = ("met", "green") if verdict.is_met else ("NOT MET", "bold red")
    claim = f"goal: {goal.target} needs at most {goal.at_most:g} times the CPU of {goal.of}: "
    return Text.assemble(claim, (f"{verdict.ratio:.2f}, {mark}", style))
