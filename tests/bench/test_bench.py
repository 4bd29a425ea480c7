import io
import shutil
from datetime import UTC, datetime
from pathlib import Path
from pkgutil import resolve_name

import msgspec
import pytest
from rich.console import Console

from bench import __main__ as bench
from bench.figures import EVENT, SERVE, BenchReport, build_report, compute_figures
from bench.load import FLOOR, NGINX, NO_OP, BenchPlan
from bench.routes.behind import BEHIND, BEHIND_PAID
from bench.routes.measure import (
    AUCTION,
    EVENT_BEHIND,
    GOALS,
    MANY,
    PAID_BEHIND,
    SERVE_BEHIND,
    find_last_file,
    measure_routes,
    read_report,
    render_routes,
)
from tests.bench.test_figures import a_sample
from tests.support.for_each import for_each

PLAN = BenchPlan(seconds=0.3, rounds=1, connections=2, workers=1, behind_seconds_min=0)


def a_report(**cpu_micros: float) -> BenchReport:
    names = {"nginx": NGINX, "floor": FLOOR, "serve": SERVE, "event": EVENT}
    samples = [a_sample(NO_OP)] + [
        a_sample(names[name], cpu_micros=each) for name, each in cpu_micros.items()
    ]
    return build_report(PLAN, compute_figures(samples), GOALS, now=datetime(2026, 11, 15, tzinfo=UTC))


def shown(report: BenchReport, last: BenchReport | None = None) -> str:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(render_routes(report, last))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_says_which_goals_are_met() -> None:
    assert "serve needs at most 2.5 times the CPU of nginx static: 1.50, met" in shown(
        a_report(nginx=10, serve=15)
    )
    assert "times the CPU of nginx static: 2.60, NOT MET" in shown(a_report(nginx=10, serve=26))


def test_the_table_says_what_got_slower_as_a_ratio() -> None:
    last = a_report(nginx=10, serve=20, event=30)

    slower = shown(a_report(nginx=20, serve=50, event=60), last)

    assert "slower than in the last run: serve, 2.50 times nginx static (it was 2.00)" in slower
    assert "last run: event" not in slower
    assert "slower" not in shown(a_report(nginx=10, serve=20))


def test_without_nginx_the_floor_is_the_measure() -> None:
    slower = shown(a_report(floor=10, serve=50), a_report(floor=10, serve=20, nginx=5))

    assert "slower than in the last run: serve, 5.00 times Python's floor (it was 2.00)" in slower


def test_the_last_run_is_kept_where_state_is_kept(tmp_path: Path) -> None:
    assert find_last_file({"HOME": "/home/a"}) == Path("/home/a/.local/state/adloom/bench.json")
    assert find_last_file({"XDG_STATE_HOME": "/s", "HOME": "/home/a"}) == Path("/s/adloom/bench.json")
    broken = tmp_path / "bench.json"
    broken.write_text("{}")
    assert read_report(broken) is None
    assert read_report(tmp_path / "none.json") is None


@for_each("name", bench.BENCHES)
def test_every_bench_is_a_command_that_says_what_it_measures(name: str) -> None:
    function = resolve_name(bench.BENCHES[name])

    assert callable(function)
    assert function.__doc__


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_the_bench_measures_the_real_product(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure_routes(PLAN, tmp_path / "results.json", tmp_path / "last.json")

    report = msgspec.json.decode((tmp_path / "results.json").read_bytes(), type=BenchReport)
    targets = [figures.target for figures in report.figures]
    assert targets[:9] == [NO_OP, SERVE, SERVE_BEHIND, PAID_BEHIND, MANY, AUCTION, EVENT, EVENT_BEHIND, FLOOR]
    assert targets[-2:] == [BEHIND, BEHIND_PAID]
    assert all("worker" in one.found and "PostgreSQL" in one.found for one in report.behind)
    assert read_report(tmp_path / "last.json") == report
    assert all(figures.requests_per_second > 0 for figures in report.figures)
    assert all(figures.resident_bytes > 1_000_000 for figures in report.figures)
    assert f"goal: {BEHIND} at most 40 µs at 5,000 a second" in capsys.readouterr().out.replace("\n", " ")
