"""Runs a market several times, without and with changes, from seeds: a pair has the same visitors."""

from collections.abc import Callable, Iterator

from adloom.budgets.bids.nets import SHIPPED, FleetWeights
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.market_run import MarketRun, RunChances
from adloom.forecast.result import MarketOutcome, MarketTally, RunPlan
from adloom.runtime.random import seed_chance


def make_chances(seed: int, run: int) -> RunChances:
    """Return the chances of a run: the same for the same seed, on every machine."""
    return RunChances(seed_chance(f"{seed}/{run}/traffic"), seed_chance(f"{seed}/{run}/pace"))


def simulate_runs(  # noqa: PLR0913 - what a simulation is made of
    market: SimulatedMarket,
    changed: SimulatedMarket | None,
    plan: RunPlan,
    *,
    weights: FleetWeights = SHIPPED,
    on_hour: Callable[[], None] = lambda: None,
    is_late: Callable[[int], bool] = lambda _: False,
) -> MarketOutcome:
    """Simulate pairs of runs; after the first two, no other begins once `is_late` of the number that is done."""
    index = market.compile_index()
    changed_index = None if changed is None else changed.compile_index()
    outcome = MarketOutcome([], None if changed is None else [])
    for run in range(plan.runs):
        if is_late(run):
            break
        outcome.before.append(
            _simulate(
                MarketRun(market, index, make_chances(plan.seed, run), hours=plan.hours, weights=weights),
                on_hour,
            )
        )
        if changed is not None and changed_index is not None and outcome.after is not None:
            chances = make_chances(plan.seed, run)
            outcome.after.append(
                _simulate(
                    MarketRun(changed, changed_index, chances, hours=plan.hours, weights=weights), on_hour
                )
            )
    return outcome


def _simulate(run: MarketRun, on_hour: Callable[[], None]) -> MarketTally:
    hours: Iterator[int] = run.iter_hours()
    for _ in hours:
        on_hour()
    return run.tally
