"""Law 1 through crashes, outages, lost answers and repetitions; law 6 for the simulation itself.

A run that breaks a law prints its seed: `rough(SEED)` gives the same run again.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

import msgspec
import pytest

from adloom.entrypoints import simulate
from adloom.ledger.event import Event
from adloom.ledger.projection import CursorMovedError, Folded
from adloom.simulation.faults import NO_FAULTS, ROUGH
from adloom.simulation.servers import LedgerServer, TablesServer
from adloom.simulation.world import Outcome, Plan, simulated

SEEDS = range(int(os.environ.get("ADLOOM_SIMULATION_SEEDS", "12")))


def rough(seed: int) -> Plan:
    return Plan(seed=seed, seconds=120, views_per_second=2, faults=ROUGH)


def checked(plan: Plan) -> Outcome:
    outcome = simulated(plan)
    assert outcome.violations == (), f"seed {plan.seed}: {outcome.violations[:5]}"
    return outcome


@pytest.mark.parametrize("seed", SEEDS)
def test_every_accepted_event_is_counted_once_through_crashes_and_lost_answers(seed: int) -> None:
    outcome = checked(rough(seed))

    assert outcome.accepted > 300
    assert outcome.faults["delivery killed"]
    assert outcome.faults["worker killed"]
    assert outcome.faults["append half done"]
    assert outcome.faults["commit unanswered"]


def test_on_a_good_day_everything_that_is_sent_is_accepted_and_counted() -> None:
    outcome = checked(Plan(seed=1, seconds=600, views_per_second=1, faults=NO_FAULTS))

    assert outcome.impressions + outcome.clicks == outcome.sent > 1500
    assert outcome.unserved == 0
    assert outcome.faults == {}


def test_the_same_seed_gives_the_same_run() -> None:
    first, second, other = simulated(rough(7)), simulated(rough(7)), simulated(rough(8))

    assert first == second
    assert first.digest != other.digest


def test_the_same_seed_gives_the_same_run_in_another_process() -> None:
    script = (
        "import logging, structlog; from tests.simulation.test_ledger import rough, simulated;"
        "structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL));"
        "print(simulated(rough(7)).digest)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": "."}
    printed = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)

    assert printed.stdout.decode().strip() == simulated(rough(7)).digest


# --- The checker knows when a law is broken: each of these houses has one fault too many.


class ForgetfulLedger(LedgerServer):
    """Confirms one entry in fifty without keeping it."""

    _offered = 0

    def take(self, data: bytes) -> None:
        self._offered += 1
        if self._offered % 50:
            super().take(data)


class TablesWithoutKey(TablesServer):
    """Count a repeated event again."""

    def fold(self, events: Sequence[Event], *, after: str, cursor: str) -> Folded:
        folded = super().fold(events, after=after, cursor=cursor)
        for event in events[: folded.repeated]:
            self.totals[event.occurred_at.date(), "impression"] += 1
        return folded


class TablesThatMoveOnAlone(TablesServer):
    """Move the cursor of a batch that they then refuse."""

    _commits = 0

    def fold(self, events: Sequence[Event], *, after: str, cursor: str) -> Folded:
        self._commits += 1
        if self._commits % 10 == 0 and self.cursor == after:
            self.cursor = cursor
            raise CursorMovedError
        return super().fold(events, after=after, cursor=cursor)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"ledger": ForgetfulLedger}, "was accepted and is not counted"),
        ({"tables": TablesWithoutKey}, "are counted as"),
        ({"tables": TablesThatMoveOnAlone}, "was accepted and is not counted"),
    ],
)
def test_a_house_that_breaks_the_law_is_found_out(change: dict[str, type], complaint: str) -> None:
    outcome = simulated(msgspec.structs.replace(rough(3), **change))

    assert any(complaint in violation for violation in outcome.violations)


def test_the_command_reports_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    simulate.run(seed=5, days=1)

    printed = capsys.readouterr().out
    assert "law 1" in printed
    assert "holds" in printed
