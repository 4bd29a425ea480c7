"""Many short runs, each with troubles of its own: a seed decides what goes wrong, how badly, and when in the year.

A run in which everything goes wrong at once hides what only a few faults together bring about. So of
every kind of fault most runs have a little, or none, and a few have a lot.
"""

import logging
import multiprocessing
import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from random import Random  # noqa: TID251 - for its type
from typing import Final, TypeVar

import structlog

from simulation.chance import seeded
from simulation.faults import ROUGH, FaultRates
from simulation.world import SPOOL_BYTES_MAX, Outcome, Plan, simulated

SECONDS: Final = 100.0
VIEWS_PER_SECOND: Final = 1.0
NEVER: Final = float("inf")
# A little before midnight of UTC, and before clocks in Europe are set back and ahead.
MOMENTS: Final = (
    datetime(2026, 11, 15, 23, 59, tzinfo=UTC),
    datetime(2026, 12, 31, 23, 59, 30, tzinfo=UTC),
    datetime(2026, 10, 25, 0, 59, tzinfo=UTC),
    datetime(2027, 3, 28, 0, 59, tzinfo=UTC),
)
SPOOLS_BYTES: Final = (SPOOL_BYTES_MAX, SPOOL_BYTES_MAX, 4_000, 0)  # Ample, soon full, and none.
RUNS_A_TASK: Final = 4

OutcomeT = TypeVar("OutcomeT")


def a_short_plan(seed: int) -> Plan:
    """Draw what a run is like."""
    chance = seeded(seed, "plan")
    return Plan(
        seed=seed,
        seconds=SECONDS,
        views_per_second=VIEWS_PER_SECOND,
        faults=_some_faults(chance),
        starts_at=chance.choice(MOMENTS),
        delivery_processes=chance.randint(1, 3),
        workers=chance.randint(1, 3),
        spool_bytes_max=chance.choice(SPOOLS_BYTES),
    )


def outcomes(
    seeds: Iterable[int], plan_of: Callable[[int], Plan] = a_short_plan, *, processes: int | None = None
) -> Generator[Outcome]:
    """Run every seed's plan, over all cores; give what came of them as they end, in the order of the seeds."""
    return each_seed(_Run(plan_of), seeds, processes=processes)


def each_seed(
    run: Callable[[int], OutcomeT], seeds: Iterable[int], *, processes: int | None = None
) -> Generator[OutcomeT]:
    """Run something for every seed, over all cores; give what came of it in the order of the seeds."""
    # A process of its own, not a copy of this one: nothing of one run is left for the next.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context, initializer=quieted)
    try:
        yield from executor.map(run, seeds, chunksize=RUNS_A_TASK)
    finally:
        executor.shutdown(cancel_futures=True)  # Whoever has seen enough does not wait for the rest.


def quieted() -> None:
    """Say nothing of the faults that the simulated house gets over: here they are counted instead."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


class _Run:
    """Runs a seed's plan, in whichever process."""

    def __init__(self, plan_of: Callable[[int], Plan]) -> None:
        self._plan_of = plan_of

    def __call__(self, seed: int) -> Outcome:
        return simulated(self._plan_of(seed))


def _some_faults(chance: Random) -> FaultRates:
    def some(rate: float) -> float:
        return rate * chance.choice([0.0, 0.1, 1.0, 3.0])

    return FaultRates(
        refused=some(ROUGH.refused),
        answer_lost=some(ROUGH.answer_lost),
        hung=some(ROUGH.hung),
        late=some(ROUGH.late),
        request_lost=some(ROUGH.request_lost),
        response_lost=some(ROUGH.response_lost),
        repeated=some(ROUGH.repeated),
        spoiled=some(ROUGH.spoiled),
        disk_failed=some(ROUGH.disk_failed),
        readers_forgotten=some(ROUGH.readers_forgotten),
        life_seconds_mean=chance.choice([NEVER, 60.0, 20.0, 5.0]),
        outage_seconds_between=chance.choice([NEVER, 120.0, 60.0, 20.0]),
        outage_seconds_mean=chance.choice([2.0, 10.0, 90.0]),
        clock_seconds_between=chance.choice([NEVER, NEVER, 60.0, 10.0]),
        clock_hours_max=chance.choice([0.1, 6.0, 24.0]),
    )
