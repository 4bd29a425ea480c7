"""`adloom bench index`: how costs grow with the index, from 1,000 to 100,000 campaigns, each in its own process."""

import gc
import os
import time
from collections.abc import Callable
from typing import Final

from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.events.ingest.token import TokenKeys
from adloom.runtime.http.fast.fast_routes import FastRequest, index_headers
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.eligibility.decide import decide
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import Interner, compile_index, compile_placement, group_rows
from adloom.serving.index.index import Index
from adloom.serving.index.rows import Snapshot
from adloom.serving.leases.local_leases import LocalLeases
from bench.catalog import IndexSize, add_budgets, build_catalog, build_contexts, lease_all
from bench.figures import MEBIBYTE, BenchTable, show
from bench.load import BROWSER_HEADERS
from bench.processes import ShowStatus, measure_usage, run_in_fresh_process

SIZES: Final = (
    IndexSize(1_000, 1_000, 30_000),
    IndexSize(10_000, 1_000, 30_000),
    IndexSize(100_000, 1_000, 100_000),
    IndexSize(1_000, 1, 1_000),
    IndexSize(10_000, 1, 10_000),
    IndexSize(100_000, 1, 100_000),
)
SIZE_HEADINGS: Final = ["campaigns", "placements", "assignments"]
COST_HEADINGS: Final = [
    "compile s",
    "step ms",
    "MiB",
    "filled",
    "decide µs",
    "hit µs",
    "leased µs",
    "miss µs",
]
REQUESTS: Final = 200
REPEATS: Final = 100  # The best one counts: the rest is noise of other processes.
SECRET: Final = "a secret of the bench, long enough to be one"  # noqa: S105 - as it says


def main() -> None:
    """Measure compiling, memory, decisions and answers in process, by size of the catalog."""
    show(measure_sizes, width=120)


def measure_sizes(say: ShowStatus) -> BenchTable:
    rows: list[list[str]] = []
    for place, size in enumerate(SIZES, start=1):
        numbers = [f"{number:,}" for number in (size.campaigns, size.placements, size.assignments)]
        said = ", ".join(f"{number} {what}" for number, what in zip(numbers, SIZE_HEADINGS, strict=True))
        say(f"{place} of {len(SIZES)}: {said}")
        rows.append(numbers + run_in_fresh_process(measure_cost, size))
    title = "CPU µs per request, the best of many turns"
    return BenchTable(title=title, headings=[*SIZE_HEADINGS, *COST_HEADINGS], rows=rows)


def measure_cost(size: IndexSize) -> list[str]:
    """Measure one size, in the order of the headings."""
    snapshot = build_catalog(size)
    compile_seconds, longest_step_millis = _measure_compiling(snapshot)
    index = compile_index(snapshot)
    del snapshot
    gc.collect()
    resident = measure_usage([os.getpid()]).resident_bytes
    states, now = PlacementStates(), SystemClock().now()
    placements = list(index.by_key.values())
    asked = [
        (states.get(placements[number % len(placements)], now), context)
        for number, context in enumerate(build_contexts(REQUESTS))
    ]

    def decide_all() -> list[bool]:
        return [bool(decide(state.placement, context, state.available)) for state, context in asked]

    micros = (
        _measure_best(decide_all),
        _measure_answers(index, keep_seconds=60),
        _measure_answers(compile_index(add_budgets(build_catalog(size))), keep_seconds=60),
        _measure_answers(index, keep_seconds=0),
    )
    return [
        f"{compile_seconds:.2f}",
        f"{longest_step_millis:.1f}",
        f"{resident / MEBIBYTE:.0f}",
        f"{sum(decide_all()) / REQUESTS:.0%}",
        *(f"{each:.1f}" for each in micros),
    ]


def _measure_compiling(snapshot: Snapshot) -> tuple[float, float]:
    shared, total, longest = Interner(), 0.0, 0.0
    for rows in group_rows(snapshot.placements, snapshot.assignments):
        steps = compile_placement(rows, shared)
        is_done = False
        while not is_done:
            started_at = time.thread_time()
            is_done = next(steps, True) is True
            seconds = time.thread_time() - started_at
            total, longest = total + seconds, max(longest, seconds)
    return total, longest * 1e3


def _measure_answers(index: Index, *, keep_seconds: int) -> float:
    states, leases = PlacementStates(keep_seconds=keep_seconds), LocalLeases()
    routes = ServeRoutes(
        lambda: index,
        TokenKeys(SECRET).signer,
        SystemClock(),
        SystemIds(),
        public_url="https://ads.example",
        states=states,
        leases=leases,
    )
    lease_all(states, leases, index)
    slugs = list(index.by_slug)
    requests = [
        _build_request(slugs[number % len(slugs)], context.country or "")
        for number, context in enumerate(build_contexts(REQUESTS))
    ]
    return _measure_best(lambda: [routes.serve(request) for request in requests])


def _build_request(slug: bytes, country: str) -> FastRequest:
    headers = [(name.lower().encode(), value.encode()) for name, value in BROWSER_HEADERS.items()]
    headers.append((b"x-country-code", country.encode()))
    request = FastRequest(b"GET", b"/banners/serve/" + slug, headers=headers)
    request.first_values = index_headers(headers)  # Normally the protocol sets it.
    return request


def _measure_best(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        started_at = time.thread_time()
        work()
        best = min(best, time.thread_time() - started_at)
    return best / REQUESTS * 1e6
