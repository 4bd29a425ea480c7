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

from adloom.forecast.market import SimulatedMarket
from adloom.forecast.result import MarketOutcome, RunPlan
from adloom.forecast.seeded_runs import simulate_runs
from adloom.forecast.what_if.question import WhatIfQuestion, answer

NICENESS = 10  # Requests of visitors and people come first.


def main() -> None:
    """Answer one question."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    question = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=WhatIfQuestion)
    gc.freeze()
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer(question, _simulate, time.monotonic)))


def _simulate(
    market: SimulatedMarket, changed: SimulatedMarket | None, plan: RunPlan, is_late: Callable[[int], bool]
) -> MarketOutcome:
    return simulate_runs(market, changed, plan, is_late=is_late)


if __name__ == "__main__":
    main()
