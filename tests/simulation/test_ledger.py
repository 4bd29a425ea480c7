"""Law 1 through crashes, outages, lost answers and repetitions; law 6 for the simulation itself.

A run that breaks a law prints its seed: `adloom simulate --runs 1 --seed SEED` gives the same run again.
"""

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime

import pytest

from simulation import __main__ as command
from simulation.base_world import Outcome
from simulation.faults import NO_FAULTS, ROUGH, FaultRates
from simulation.swarm import draw_plan, run_event_log, run_seeds
from simulation.world import EventLogPlan, simulate

SEEDS = range(int(os.environ.get("ADLOOM_SIMULATION_SEEDS", "10")))
SEEDS_A_TEST = 5


def rough(seed: int, seconds: float = 120) -> EventLogPlan:
    return EventLogPlan(seed=seed, seconds=seconds, views_per_second=2, faults=ROUGH)


def checked(plan: EventLogPlan) -> Outcome:
    outcome = simulate(plan)
    assert outcome.violations == (), f"seed {plan.seed}: {outcome.violations}"
    return outcome


@pytest.mark.parametrize("first", SEEDS[::SEEDS_A_TEST])
def test_every_accepted_event_is_counted_once_whatever_goes_wrong(first: int) -> None:
    for seed in SEEDS[first : first + SEEDS_A_TEST]:
        checked(draw_plan(seed))


def test_everything_that_can_go_wrong_does_in_a_rough_run() -> None:
    outcome = checked(rough(7))

    assert outcome.figures["events accepted"] > 300
    assert outcome.figures["writes to the spool"] > 50
    assert outcome.figures["of them not valid"] > 10
    assert outcome.figures["of them groups of events"] > 30
    assert outcome.figures["of them refused by their id at first"] > 3
    assert outcome.figures["log entries trimmed"] > 100
    assert outcome.figures["dead letters"] == outcome.faults["entry spoiled"]
    assert Counter(outcome.faults) >= Counter(
        {
            "append half done": 5,
            "append late": 1,
            "append unanswered": 1,
            "clock jumped": 1,
            "commit late": 1,
            "commit unanswered": 5,
            "delivery killed": 5,
            "disk failed to write": 1,
            "event log away": 1,
            "report repeated": 20,
            "tables away": 1,
            "topic unanswered": 5,
            "worker killed": 5,
        }
    )


def test_on_a_good_day_everything_that_is_sent_is_accepted_and_counted() -> None:
    outcome = checked(EventLogPlan(seed=1, seconds=200, views_per_second=1, faults=NO_FAULTS))

    assert (
        outcome.figures["impressions counted"] + outcome.figures["clicks counted"]
        == outcome.figures["events sent"]
        > 500
    )
    assert (
        outcome.figures["page views without an answer"]
        == outcome.figures["requests answered 503"]
        == outcome.figures["writes to the spool"]
        == 0
    )
    assert outcome.faults == {}


def test_an_outage_of_minutes_is_bridged_by_the_spool_and_refused_without_one() -> None:
    faults = FaultRates(outage_seconds_between=30, outage_seconds_mean=120)
    with_spool = checked(EventLogPlan(seed=4, seconds=300, views_per_second=1, faults=faults))
    without = checked(EventLogPlan(seed=4, seconds=300, views_per_second=1, faults=faults, spool_bytes_max=0))

    assert with_spool.faults["event log away for over a minute"] >= 1
    assert with_spool.figures["requests answered 503"] == 0
    assert with_spool.figures["events accepted"] > without.figures["events accepted"]
    assert without.figures["requests answered 503"] > 100


def test_a_spool_that_is_full_refuses_and_keeps_what_it_has() -> None:
    faults = FaultRates(outage_seconds_between=30, outage_seconds_mean=120)

    outcome = checked(
        EventLogPlan(seed=4, seconds=300, views_per_second=1, faults=faults, spool_bytes_max=4_000)
    )

    assert outcome.figures["writes to the spool"] > 10
    assert outcome.figures["requests answered 503"] > 100


@pytest.mark.parametrize(
    "starts_at",
    [
        datetime(2026, 11, 15, 23, 58, tzinfo=UTC),  # Midnight of UTC
        datetime(2026, 12, 31, 23, 58, tzinfo=UTC),  # Of a year
        datetime(2026, 10, 24, 21, 58, tzinfo=UTC),  # Of Berlin, in summer
        datetime(2026, 10, 25, 0, 58, tzinfo=UTC),  # An hour comes twice in Berlin
        datetime(2027, 3, 28, 0, 58, tzinfo=UTC),  # An hour is left out there
        datetime(2026, 11, 1, 5, 58, tzinfo=UTC),  # An hour comes twice in New York
    ],
)
def test_an_event_counts_on_its_own_day_of_utc_in_whatever_zone_it_is_told(starts_at: datetime) -> None:
    """The laws check the day of every event whose visitor reported the time, in any zone."""
    outcome = checked(
        EventLogPlan(seed=6, seconds=240, views_per_second=1, faults=NO_FAULTS, starts_at=starts_at)
    )

    assert (
        outcome.figures["impressions counted"] + outcome.figures["clicks counted"]
        == outcome.figures["events sent"]
        > 500
    )


def test_clocks_that_jump_by_a_day_lose_nothing_and_count_nothing_twice() -> None:
    faults = FaultRates(clock_seconds_between=10, clock_hours_max=24, repeated=0.3, response_lost=0.1)

    outcome = checked(EventLogPlan(seed=3, seconds=300, views_per_second=1, faults=faults))

    assert outcome.faults["clock jumped"] > 50
    assert outcome.faults["report repeated"] > 100


def test_the_same_seed_gives_the_same_run_also_in_another_process() -> None:
    script = (
        "from tests.simulation.test_ledger import rough, simulate;"
        "from simulation.swarm import silence_logs; silence_logs();"
        "print(simulate(rough(7, seconds=40)).digest)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": "."}
    printed = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
    first, second = simulate(rough(7, seconds=40)), simulate(rough(7, seconds=40))

    assert first == second
    assert printed.stdout.decode().strip() == first.digest


def test_many_runs_over_several_processes_are_those_of_one() -> None:
    alone = [simulate(draw_plan(seed)) for seed in range(2)]

    assert list(run_seeds(run_event_log, range(2), processes=2)) == alone
    assert len({outcome.digest for outcome in alone}) == 2


def test_the_command_reports_and_ends_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "VIEWS_PER_DAY", 100)
    command.run(seed=5, days=1)

    printed = capsys.readouterr().out
    assert "law 1" in printed
    assert "holds" in printed
