"""Law 2 through crashes, lost and repeated messages, two owners at once, wrong clocks, midnight and clock changes.

A run that breaks a law prints its seed: `adloom simulate budgets --seed SEED` gives the same run again.
"""

import os
import subprocess
import sys
from datetime import datetime, timedelta

import msgspec
import pytest

from adloom.schedule.budget_day import find_budget_day
from simulation import __main__ as command
from simulation.base_world import Outcome
from simulation.budgets.world import BudgetPlan, simulate
from simulation.faults import NO_FAULTS, ROUGH_BUDGETS, FaultRates
from simulation.swarm import MIDNIGHTS, draw_budget_plan, run_budgets

SEEDS = range(int(os.environ.get("ADLOOM_SIMULATION_SEEDS", "10")) // 2)


def rough(seed: int, faults: FaultRates = ROUGH_BUDGETS, evening: int = 0) -> BudgetPlan:
    zone, midnight = MIDNIGHTS[evening]
    return BudgetPlan(
        seed=seed,
        seconds=40,
        views_per_second=5,
        faults=faults,
        starts_at=midnight - timedelta(seconds=20),
        zone=zone,
        campaigns=5,
    )


def checked(plan: BudgetPlan) -> Outcome:
    outcome = simulate(plan)
    assert outcome.violations == (), f"seed {plan.seed}: {outcome.violations}"
    return outcome


@pytest.mark.parametrize("seed", SEEDS)
def test_no_budget_is_overspent_and_what_can_be_spent_is_whatever_goes_wrong(seed: int) -> None:
    checked(draw_budget_plan(seed))


def test_what_is_auctioned_off_is_of_the_highest_who_can_pay_at_a_price_that_it_can() -> None:
    outcomes = [
        checked(msgspec.structs.replace(rough(seed), auctioned=1.0, has_payer=False)) for seed in range(3)
    ]

    assert sum(outcome.figures["of them auctioned"] for outcome in outcomes) > 50


def test_whatever_strategies_say_no_budget_is_overspent_and_the_highest_multiplied_bid_wins() -> None:
    outcomes = [
        checked(msgspec.structs.replace(rough(seed), auctioned=0.5, has_payer=False, learning=0.7))
        for seed in range(3)
    ]

    assert sum(outcome.figures["multiplied bids"] for outcome in outcomes) > 3
    assert sum(outcome.figures["of them auctioned"] for outcome in outcomes) > 20


def test_caps_are_exact_over_all_processes_and_what_they_allow_is_offered() -> None:
    """Processes die with offers of the cap in hand, and offers that nobody sees come back when their holds are over."""
    faults = msgspec.structs.replace(ROUGH_BUDGETS, clock_seconds_between=float("inf"), unseen=0.3)
    plans = [msgspec.structs.replace(rough(seed, faults), capped=1.0, hold_seconds=4) for seed in (4, 8, 20)]

    outcomes = [checked(plan) for plan in plans]

    assert sum(outcome.figures["offers of impression caps"] for outcome in outcomes) > 50
    assert sum(outcome.figures["clicks over their cap"] for outcome in outcomes) > 10


ROUGHEST_BUDGETS = msgspec.structs.replace(ROUGH_BUDGETS, died=0.01, late=0.03, answer_lost=0.03)


def test_a_click_that_is_confirmed_again_during_a_late_commit_blocks_nobody() -> None:
    checked(rough(3, ROUGHEST_BUDGETS))


def test_everything_that_can_go_wrong_with_budgets_does_in_rough_runs() -> None:
    happened = {fault for seed in (0, 1, 2, 4) for fault in checked(rough(seed, ROUGHEST_BUDGETS)).faults}

    assert happened >= {
        "budget actors owned twice",
        "clock jumped",
        "commit late",
        "commit unanswered",
        "database away",
        "delivery killed",
        "died after commit",
        "died before commit",
        "died between news",
        "fenced out",
        "mail delayed",
        "mail lost",
        "mail repeated",
        "offer never seen",
        "offer seen late",
        "report repeated",
        "valkey away",
        "worker killed",
    }


def test_on_a_good_evening_every_offer_is_charged() -> None:
    outcome = checked(rough(1, NO_FAULTS))

    assert (
        outcome.figures["offers made"]
        == outcome.figures["offers seen or clicked"]
        == outcome.figures["charges"] + outcome.figures["clicks over budget"]
        > 100
    )
    assert outcome.figures["charges"] > 100
    assert outcome.figures["seen without a hold and not charged"] == 0


@pytest.mark.parametrize("evening", range(len(MIDNIGHTS)), ids=[f"{zone} {at}" for zone, at in MIDNIGHTS])
def test_what_is_offered_on_a_day_is_charged_on_that_day_however_long_it_is(evening: int) -> None:
    """The laws look at the day of every charge where all clocks are right; both days have some here."""
    faults = FaultRates(mail_lost=0.1, mail_repeated=0.1, mail_delayed=0.05, died=0.002)

    assert checked(rough(3, faults, evening)).figures["charges"] > 50


def test_clocks_that_jump_by_a_day_overspend_nothing() -> None:
    faults = FaultRates(clock_seconds_between=5, clock_hours_max=26, died=0.002, mail_lost=0.05)

    outcome = checked(rough(5, faults))

    assert outcome.faults["clock jumped"] > 10
    assert outcome.figures["charges"] > 30


def test_the_same_seed_gives_the_same_evening_also_in_another_process() -> None:
    script = (
        "from simulation.swarm import run_budgets;"
        "from simulation.swarm import silence_logs; silence_logs();"
        "print(run_budgets(3).digest)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    printed = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)

    first, second = run_budgets(3), run_budgets(3)

    assert first == second
    assert printed.stdout.decode().strip() == first.digest
    assert first.digest != run_budgets(1).digest


def test_the_command_reports_on_budgets_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    command.run(command.What.BUDGETS, seed=1)

    printed = capsys.readouterr().out
    assert "laws 2 and 4" in printed
    assert "holds" in printed


def test_starts_are_in_the_zones_whose_clocks_change() -> None:
    lengths = {_day_hours(zone, at) for zone, at in MIDNIGHTS}

    assert lengths >= {23, 24, 25}


def _day_hours(zone: str, midnight: datetime) -> float:
    day = find_budget_day(midnight, zone)
    return (day.ends_at - day.starts_at).total_seconds() / 3600
