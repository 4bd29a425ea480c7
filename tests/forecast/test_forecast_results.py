"""Traffic, intervals, pairs of runs, tables and pages of simulated markets."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adloom.cli.simulate.commands import app
from adloom.forecast.changes import apply_changes, parse_change
from adloom.forecast.market import TrafficCell
from adloom.forecast.market_run import simulate_runs
from adloom.forecast.report import build_page
from adloom.forecast.result import MarketResult, RunPlan, estimate
from adloom.forecast.traffic import WeeklyTraffic, draw_poisson, learn_shape
from adloom.runtime.random import seed_chance
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.test_own_weights import low_weights
from tests.forecast.markets import a_campaign, a_market, a_placement

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
FILE = """
[[placements]]
slug = "feed"
requests_a_day = 300
floor = 1.0
[[campaigns]]
name = "Shoes <b>"
bid = 2
"""


@pytest.mark.parametrize("mean", [0.0, 0.3, 5.0, 400.0])
def test_a_poisson_number_has_its_mean(mean: float) -> None:
    chance = seed_chance("poisson")

    drawn = [draw_poisson(mean, chance) for _ in range(2_000)]

    assert sum(drawn) / len(drawn) == pytest.approx(mean, rel=0.06)


def test_requests_come_in_the_shape_of_the_week() -> None:
    hours = [0.0] * 168
    hours[9], hours[24 * 5 + 9] = 1_000.0, 200.0
    traffic, chance = WeeklyTraffic([TrafficCell(slug=b"feed", hours=hours)]), seed_chance("week")

    counts = [len(traffic.draw_hour(MONDAY + timedelta(hours=hour), chance)) for hour in (8, 9, 5 * 24 + 9)]

    assert counts[0] == 0
    assert counts[1:] == pytest.approx([1_000, 200], rel=0.25)
    shape = learn_shape([TrafficCell(slug=b"feed", hours=hours)])
    assert shape is not None
    assert shape.weekday[9] > shape.weekend[9] > shape.weekday[8]


def test_an_interval_is_that_of_student_and_one_run_has_none() -> None:
    of_three = estimate([9.0, 10.0, 11.0])

    assert of_three.mean == 10
    assert of_three.low == pytest.approx(10 - 2.920 / 3**0.5)
    assert of_three.high == pytest.approx(10 + 2.920 / 3**0.5)
    assert of_three.is_clear
    assert estimate([9.0]).low is None
    assert estimate([0.0, 4.0], is_count=True).low == 0


def test_a_higher_bid_shows_in_pairs_of_runs() -> None:
    market = a_market(a_campaign(bid=1.0), a_campaign("Rival", bid=1.2), placements=(a_placement(floor=0.5),))
    changed = apply_changes(market, [parse_change("campaign Shoes: bid x2", market)])
    plan = RunPlan(runs=3)

    outcome = simulate_runs(market, changed, plan)
    result = MarketResult(
        market=market, changed_keys=frozenset({1}), sentences=("x",), plan=plan, outcome=outcome
    )
    compared = result.compare([market.campaigns[0]])

    assert compared.before.impressions.mean == 0
    assert compared.difference is not None
    assert compared.difference.impressions.is_clear
    assert compared.difference.impressions.mean > 300
    # The same visitors came: what one wins the other loses.
    assert [a.requests for a in outcome.before] == [b.requests for b in outcome.after or ()]


def test_the_page_needs_nothing_from_outside() -> None:
    market = a_market(a_campaign("<script>", daily_budget=0.2, pacing=PacingStrategy.ACCELERATED))
    plan = RunPlan(runs=2)
    page = build_page(
        MarketResult(
            market=market,
            changed_keys=frozenset(),
            sentences=(),
            plan=plan,
            outcome=simulate_runs(market, None, plan),
        )
    )

    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<svg") == page.count("<polygon") == 4  # Each with its interval.
    assert not re.search(r"(?:src|href|url)\s*[=(]|https?://", page)


def test_the_command_prints_a_table_and_writes_a_page(tmp_path: Path) -> None:
    file, page = tmp_path / "market.toml", tmp_path / "out.html"
    file.write_text(FILE)
    arguments = [str(file), "--runs", "2", "--what-if", "campaign Shoes <b>: bid +20 %", "--html", str(page)]

    results = [CliRunner().invoke(app, arguments) for _ in range(2)]

    assert results[0].exit_code == 0, results[0].output
    for word in ("Shoes <b>", "before", "after", "change", "seed 1"):
        assert word in results[0].output
    # The same but for the time that it took.
    assert results[0].stdout.split(" requests in")[0] in results[1].stdout
    assert page.read_text().startswith("<!doctype html>")


def test_fleet_bids_by_the_weights_of_the_installation_and_the_result_says_which(tmp_path: Path) -> None:
    file, own, damaged = (tmp_path / name for name in ("market.toml", "own.weights", "damaged.weights"))
    # Fewer requests would be too few for the net.
    fleet = f'{FILE}bid_strategy = "fleet"\nclick_rate = 0.3\ndaily_budget = 2\ntarget_cpa = 0.02\n'
    file.write_text(fleet.replace("300", "5_000"))
    own.write_bytes(low_weights(trained_on="2026-05-04"))
    damaged.write_bytes(low_weights()[:-4])
    arguments = [str(file), "--runs", "1"]

    said = [
        CliRunner().invoke(app, arguments, env={"ADLOOM_FLEET_WEIGHTS": path}).output
        for path in (None, str(damaged), str(own))
    ]

    assert "fleet decides with the weights of the package." in said[0]
    assert f"the weights of the package, since yours cannot be used: {damaged}: weights: not those" in said[1]
    assert "fleet decides with your own weights, of 2026-05-04 (sha256 " in said[2]
    # What bids low is under the floor.
    rows = [next(line for line in one.splitlines() if "Shoes" in line) for one in said]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]


def test_a_command_without_a_market_says_what_to_give() -> None:
    result = CliRunner().invoke(app, [])

    assert result.exit_code != 0
    assert "--live" in result.output
