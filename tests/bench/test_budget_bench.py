import io

import pytest
from rich.console import Console

from bench.budgets import charges, idle
from bench.figures import BenchTable, render


def shown(outcome: BenchTable) -> str:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(render(outcome))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def say_nothing(_said: str) -> None:
    pass


def work(name: str, *, seconds: float, worker_seconds: float) -> charges.ChargeRound:
    return charges.ChargeRound(
        name=name, events=10_000, seconds=seconds, worker_seconds=worker_seconds, database_seconds=0.1
    )


def test_charges_are_judged_by_their_rate_and_compared_with_counting() -> None:
    works = [
        work(charges.COUNTED, seconds=0.5, worker_seconds=0.4),
        work(charges.CHARGED, seconds=0.8, worker_seconds=0.6),
    ]

    text = shown(charges.compare_charges(works, 100))

    assert "at least 10,000 charges a second, all in the money ledger: 12,500, met" in text
    assert "1.50" in text


def test_idle_campaigns_are_compared_with_none() -> None:
    states = [
        idle.IdleState(name="none", resident_bytes=50_000_000, idle_share=0.01),
        idle.IdleState(name="many", resident_bytes=1_200_000_000, idle_share=0.03, seconds=9.0),
    ]

    text = shown(idle.compare_idle(states, 20.0))

    assert "under 1,000 MB in the worker: 1200 MB, NOT MET" in text
    assert "+2.00%, NOT MET" in text


@pytest.mark.process
async def test_charging_is_measured_on_a_real_worker() -> None:
    outcome = await charges.measure_charges(events=200, campaigns=6, rounds=1, say=say_nothing)

    assert [row[0] for row in outcome.rows] == [charges.COUNTED, charges.CHARGED]


@pytest.mark.process
async def test_idle_campaigns_are_measured_in_a_real_worker() -> None:
    outcome = await idle.measure_idle(campaigns=50, sessions=2, idle_seconds=0.3, say=say_nothing)

    assert len(outcome.rows) == 3
    assert outcome.goals[0].is_met
