"""Many short runs, each with faults of its own: a seed decides what goes wrong, how badly, and when in the year.

A run in which everything goes wrong at once hides what only a few faults together cause. So most runs
have little or none of each kind of fault, and a few have a lot.
"""

import logging
import multiprocessing
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - for its type
from typing import Final

import msgspec
import structlog

from simulation.base_world import Outcome
from simulation.budgets.world import BudgetPlan
from simulation.budgets.world import simulate as simulate_budgets
from simulation.faults import ROUGH, ROUGH_BUDGETS, FaultRates
from simulation.loop import make_random
from simulation.world import SPOOL_BYTES_MAX, EventLogPlan, simulate

NEVER: Final = float("inf")
# A little before midnight of UTC, and before clocks in Europe are set back and ahead.
MOMENTS: Final = (
    datetime(2026, 11, 15, 23, 59, tzinfo=UTC),
    datetime(2026, 12, 31, 23, 59, 30, tzinfo=UTC),
    datetime(2026, 10, 25, 0, 59, tzinfo=UTC),
    datetime(2027, 3, 28, 0, 59, tzinfo=UTC),
)
# Midnights at which clocks change, and ordinary ones.
MIDNIGHTS: Final = (
    ("UTC", datetime(2026, 11, 16, 0, 0, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 28, 23, 0, tzinfo=UTC)),  # 23 hours follow.
    ("Europe/Berlin", datetime(2026, 3, 29, 22, 0, tzinfo=UTC)),  # 23 hours are over.
    ("America/New_York", datetime(2026, 11, 1, 4, 0, tzinfo=UTC)),  # 25 hours follow.
    ("America/New_York", datetime(2026, 11, 2, 5, 0, tzinfo=UTC)),  # 25 hours are over.
    ("Africa/Cairo", datetime(2026, 4, 23, 22, 0, tzinfo=UTC)),  # There is no midnight.
    ("Asia/Kathmandu", datetime(2026, 11, 15, 18, 15, tzinfo=UTC)),
    ("America/St_Johns", datetime(2006, 10, 29, 2, 30, tzinfo=UTC)),  # At 00:01 it is 23:01 again.
    ("Pacific/Apia", datetime(2011, 12, 30, 10, 0, tzinfo=UTC)),  # The zone skips a day.
)
SPOOLS_BYTES: Final = (SPOOL_BYTES_MAX, SPOOL_BYTES_MAX, 4_000, 0)  # Ample, soon full, and none.
RUNS_A_TASK: Final = 4
# Seconds and hours, chosen as they are; all other rates are shares of the rough ones.
TIMES: Final = {
    "life_seconds_mean": [NEVER, 60.0, 20.0, 5.0],
    "outage_seconds_between": [NEVER, 120.0, 60.0, 20.0],
    "outage_seconds_mean": [2.0, 10.0, 90.0],
    "clock_seconds_between": [NEVER, NEVER, 60.0, 10.0],
    "clock_hours_max": [0.1, 6.0, 24.0],
}
BUDGET_TIMES: Final = {
    "life_seconds_mean": [NEVER, 60.0, 20.0, 5.0],
    "outage_seconds_between": [NEVER, 60.0, 20.0],
    "outage_seconds_mean": [0.5, 2.0, 12.0],
    "clock_seconds_between": [NEVER, NEVER, 20.0, 5.0],
    "clock_hours_max": [0.001, 0.02, 1.0, 26.0],
    "change_seconds_between": [NEVER, 10.0, 3.0, 1.0],
    "index_seconds_max": [0.0, 0.5, 5.0],
}


def draw_plan(seed: int) -> EventLogPlan:
    chance = make_random(seed, "plan")
    return EventLogPlan(
        seed=seed,
        seconds=100.0,
        views_per_second=1.0,
        faults=_draw_faults(chance, ROUGH, TIMES),
        starts_at=chance.choice(MOMENTS),
        delivery_processes=chance.randint(1, 3),
        workers=chance.randint(1, 3),
        spool_bytes_max=chance.choice(SPOOLS_BYTES),
    )


def draw_budget_plan(seed: int) -> BudgetPlan:
    chance = make_random(seed, "plan")
    zone, midnight = chance.choice(MIDNIGHTS)
    return BudgetPlan(
        seed=seed,
        seconds=40.0,
        views_per_second=chance.choice([2.0, 8.0]),
        faults=_draw_faults(chance, ROUGH_BUDGETS, BUDGET_TIMES),
        # Most runs pass midnight, some early and some late.
        starts_at=midnight - timedelta(seconds=chance.choice([1, 10, 20, 30, 7_200])),
        zone=zone,
        campaigns=chance.choice([1, 1, 2, 3, 5, 10]),
        has_payer=chance.random() < 0.8,  # noqa: PLR2004 - mostly
        hold_seconds=chance.choice([3, 10, 30]),
        delivery_processes=chance.randint(1, 4),
        workers=chance.randint(1, 2),
        auctioned=chance.choice([0.0, 0.5, 1.0]),
        capped=chance.choice([0.0, 0.5, 1.0]),
        learning=chance.choice([0.0, 0.5]),
    )


def run_event_log(seed: int) -> Outcome:
    return simulate(draw_plan(seed))


def run_budgets(seed: int) -> Outcome:
    return simulate_budgets(draw_budget_plan(seed))


def run_seeds(
    run: Callable[[int], Outcome], seeds: Iterable[int], *, processes: int | None = None
) -> Generator[Outcome]:
    """Run every seed, over all cores; yield the outcomes in the order of the seeds."""
    # A fresh process, not a copy of this one: nothing of one run is left for the next.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(processes or os.cpu_count(), mp_context=context, initializer=silence_logs)
    try:
        yield from executor.map(run, seeds, chunksize=RUNS_A_TASK)
    finally:
        executor.shutdown(cancel_futures=True)


def silence_logs() -> None:
    """Log nothing about injected faults: here they are counted instead."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def _draw_faults(chance: Random, rough: FaultRates, times: Mapping[str, Sequence[float]]) -> FaultRates:
    rates = {
        name: chance.choice(times[name]) if name in times else rate * chance.choice([0.0, 0.1, 1.0, 3.0])
        for name, rate in msgspec.structs.asdict(rough).items()
        if name in times or 0 < rate < 1
    }
    return FaultRates(**rates)
