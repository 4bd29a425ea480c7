"""The process that simulates for a question: reads it from standard input, and writes its answer.

python -m adloom.forecast.what_if.process
"""

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable

import msgspec

from adloom.budgets.bids.nets import find_fleet_weights
from adloom.forecast.bid_strategies import describe_weights, list_strategies
from adloom.forecast.market import SimulatedMarket
from adloom.forecast.market_run import simulate_runs
from adloom.forecast.result import MarketOutcome, RunPlan
from adloom.forecast.what_if.question import WhatIfQuestion, answer

NICENESS = 10  # Requests of visitors and people come first.


def main() -> None:
    """Answer one question."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    question = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=WhatIfQuestion)
    weights = find_fleet_weights(os.environ)
    gc.freeze()

    def simulate(
        market: SimulatedMarket,
        changed: SimulatedMarket | None,
        plan: RunPlan,
        is_late: Callable[[int], bool],
    ) -> MarketOutcome:
        return simulate_runs(market, changed, plan, weights=weights, is_late=is_late)

    result = answer(question, simulate, time.monotonic)
    said = describe_weights(weights, list_strategies(question.market, question.changed))
    if said is not None:
        result = msgspec.structs.replace(result, notes=(*result.notes, said))
    sys.stdout.buffer.write(msgspec.msgpack.encode(result))


if __name__ == "__main__":
    main()
