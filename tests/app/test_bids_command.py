"""`adloom bids` answers one line for each, names what is wrong with a bad one, and is deterministic."""

import json
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adloom.bidding.training.market_days import generate_tables
from adloom.cli.main import app


def a_line(campaign: str = "a", window: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "campaign": campaign,
        "window": window,
        "windows": 96,
        "budget": 3000,
        "remaining": 3000 - 25 * window,
        "target": 90,
        "cost": 25 * window,
        "value": 0.3 * window,
        "windowCost": 25 if window else 0,
        "windowValue": 0.3 if window else 0,
        "opportunities": 5000 if window else 0,
        "wins": 300 if window else 0,
        "trafficShare": 1 / 96,
        "trafficLeft": 1 - window / 96,
        "lastMultiplier": 1.0 if window else None,
        **fields,
    }


def ask(lines: list[Any], *options: str, strategy: str = "fleet") -> list[dict[str, Any]]:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    found = CliRunner().invoke(app, ["bids", "--strategy", strategy, *options], input=text)
    assert found.exit_code == 0, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


@pytest.mark.parametrize("strategy", ["fleet", "dqn", "pacer", "fixed"])
def test_every_strategy_answers_every_line(strategy: str) -> None:
    found = ask([a_line(window=number) for number in range(5)], strategy=strategy)

    assert [set(one) for one in found] == [{"campaign", "multiplier", "reason"}] * 5
    assert {one["reason"] for one in found} <= {strategy, "guard"}


def test_the_same_input_gives_the_same_output_and_campaigns_do_not_mix() -> None:
    alone = ask([a_line("a", number) for number in range(6)])
    mixed = ask([a_line(name, number) for number in range(6) for name in ("a", "b")])

    assert ask([a_line("a", number) for number in range(6)]) == alone
    assert [one for one in mixed if one["campaign"] == "a"] == alone


def test_guard_and_tolerance_are_options() -> None:
    # It spends a tenth of its pace, at half its target: any strategy wants to bid more.
    day = [
        a_line(window=number, cost=2 * number, remaining=3000 - 2 * number, windowCost=2, value=0.04 * number)
        for number in range(10)
    ]
    guarded, free = ask(day), ask(day, "--guard", "off")
    lenient = ask(day, "--tolerance", "0.2")

    assert "guard" in {one["reason"] for one in guarded}
    assert "guard" not in {one["reason"] for one in free}
    assert max(one["multiplier"] for one in lenient) > max(one["multiplier"] for one in guarded)


def test_without_a_target_fleet_falls_back_and_says_so() -> None:
    assert ask([a_line(target=None)])[0]["reason"] == "fallback: no target"


@pytest.mark.parametrize(
    ("line", "campaign", "field"),
    [
        (a_line(budget="much"), "a", "budget"),
        (a_line(budget=0), "a", "budget"),
        (a_line(wins=-1), "a", "wins"),
        (a_line(trafficLeft=7), "a", "trafficLeft"),
        (a_line(window=96), "a", "window"),
        (a_line(lastMultiplier=0), "a", "lastMultiplier"),
        ({key: value for key, value in a_line().items() if key != "cost"}, "a", "cost"),
        (a_line(campaign=""), "", "campaign"),
        (json.dumps(a_line()).replace("3000", "1e999", 1), None, "budget"),
        ("nonsense", None, None),
        ("[]", None, None),
        ("", None, None),
    ],
    ids=[
        "text",
        "zero",
        "negative",
        "share",
        "late",
        "last",
        "missing",
        "name",
        "infinite",
        "json",
        "list",
        "empty",
    ],
)
def test_a_bad_line_gets_an_error_that_names_the_field_and_the_next_is_answered(
    line: Any, campaign: str | None, field: str | None
) -> None:
    bad, good = ask([line, a_line("b")])

    assert bad["error"]["field"] == field
    assert bad["error"]["message"]
    assert bad["campaign"] == campaign
    assert good["campaign"] == "b"
    assert good["multiplier"] > 0


def test_rounded_shares_and_a_rest_below_nothing_are_taken() -> None:
    found = ask([a_line(trafficLeft=1.0000000002, remaining=-1e-9)])

    assert found[0]["multiplier"] > 0


def test_learning_writes_weights_with_a_card_and_a_report(tmp_path: Any) -> None:
    np.savez(tmp_path / "tables.npz", allow_pickle=False, **generate_tables(days=2, seats=4, seed=3, train=1))
    options = ["--data", str(tmp_path), "--steps", "1", "--out", str(tmp_path / "out")]

    found = CliRunner().invoke(app, ["learn", "fleet", *options])

    assert found.exit_code == 0, found.output
    weights = (tmp_path / "out/fleet.weights").read_bytes()
    card = json.loads(weights.split(b"\n")[1])
    assert (card["trainDays"], card["heldOutDays"], card["seed"], card["steps"]) == ([0], [1], 0, 1)
    assert {"with guard", "without guard"} <= set(card["scores"])
    assert "<polyline" in (tmp_path / "out/fleet.html").read_text()


def test_learning_without_days_says_what_is_missing(tmp_path: Any) -> None:
    found = CliRunner().invoke(app, ["learn", "fleet", "--data", str(tmp_path)])

    assert "tables.npz is not there" in str(found.exception)
