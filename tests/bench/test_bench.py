import io
import shutil
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name

import msgspec
import pytest
from rich.console import Console

from bench import __main__ as bench
from bench.figures import (
    EVENT,
    SERVE,
    BenchReport,
    TargetFigures,
    build_report,
    compute_figures,
    render_report,
)
from bench.load import NO_OP, BenchPlan
from tests.bench.test_figures import a_sample

PLAN = BenchPlan(seconds=0.3, rounds=1, connections=2, workers=1)


def shown(figures: list[TargetFigures]) -> str:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(render_report(build_report(PLAN, figures, now=now)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_says_which_goals_are_met() -> None:
    met = compute_figures([a_sample(NO_OP, cpu_micros=10), a_sample(SERVE, cpu_micros=15)])
    missed = compute_figures([a_sample(NO_OP, cpu_micros=10), a_sample(SERVE, cpu_micros=25)])

    assert "at most 2 times the CPU of no-op: 1.50, met" in shown(met)
    assert "at most 2 times the CPU of no-op: 2.50, NOT MET" in shown(missed)


@pytest.mark.parametrize("name", bench.BENCHES)
def test_every_bench_is_a_command_that_says_what_it_measures(name: str) -> None:
    function = resolve_name(bench.BENCHES[name])

    assert callable(function)
    assert function.__doc__


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_the_bench_measures_the_real_product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench.measure_routes(PLAN, tmp_path / "results.json")

    report = msgspec.json.decode((tmp_path / "results.json").read_bytes(), type=BenchReport)
    assert [figures.target for figures in report.figures][:3] == [NO_OP, SERVE, EVENT]
    assert all(figures.requests_per_second > 10 for figures in report.figures)
    assert all(figures.resident_bytes > 1_000_000 for figures in report.figures)
    assert "goal: serve" in capsys.readouterr().out
