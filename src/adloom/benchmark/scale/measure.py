"""What one size of catalog costs in this process: to compile, to hold, to decide over, to answer from."""

import gc
import time
from collections.abc import Callable
from typing import Final

import msgspec

from adloom.benchmark.accounting import usage_of
from adloom.benchmark.load import BROWSER_HEADERS
from adloom.benchmark.scale.catalog import Size, a_catalog, some_contexts
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.delivery.api import ServeRoutes
from adloom.delivery.compile import Shared, compiled, compiling, grouped
from adloom.delivery.decide import decide
from adloom.delivery.index import Index
from adloom.delivery.rows import Snapshot
from adloom.delivery.shelves import Shelves
from adloom.ledger.token import TokenKeys
from adloom.runtime.http.hot import HotRequest, first_values

REQUESTS: Final = 200
TURNS: Final = 100  # The best of them counts: everything else is somebody else's noise.
SECRET: Final = "a secret of the bench, long enough to be one"  # noqa: S105 - as it says


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured; micros are of CPU, per request."""

    size: Size
    compile_seconds: float
    longest_step_millis: float
    resident_mebibytes: float
    filled_share: float
    decide_micros: float
    hit_micros: float
    miss_micros: float


def cost_of(size: Size, pid: int) -> Cost:
    """Measure one size; a process measures one only, since memory is not given back."""
    snapshot = a_catalog(size)
    compile_seconds, longest_step_millis = _compile_cost(snapshot)
    index = compiled(snapshot)
    del snapshot
    gc.collect()
    resident = usage_of([pid]).resident_bytes / (1 << 20)
    shelves, now = Shelves(), SystemClock().now()
    placements = list(index.by_key.values())
    asked = [
        (shelves.of(placements[number % len(placements)], now), context)
        for number, context in enumerate(some_contexts(REQUESTS))
    ]
    decisions = [decide(shelf.placement, context, shelf.available) for shelf, context in asked]
    return Cost(
        size=size,
        compile_seconds=compile_seconds,
        longest_step_millis=longest_step_millis,
        resident_mebibytes=resident,
        filled_share=sum(map(bool, decisions)) / REQUESTS,
        decide_micros=_best(
            lambda: [decide(shelf.placement, context, shelf.available) for shelf, context in asked]
        ),
        hit_micros=_answer_cost(index, keep_seconds=60),
        miss_micros=_answer_cost(index, keep_seconds=0),
    )


def _compile_cost(snapshot: Snapshot) -> tuple[float, float]:
    shared, total, longest = Shared(), 0.0, 0.0
    for rows in grouped(snapshot.placements, snapshot.assignments):
        steps = compiling(rows, shared)
        is_done = False
        while not is_done:
            started_at = time.thread_time()
            is_done = next(steps, True) is True
            seconds = time.thread_time() - started_at
            total, longest = total + seconds, max(longest, seconds)
    return total, longest * 1e3


def _answer_cost(index: Index, *, keep_seconds: int) -> float:
    routes = ServeRoutes(
        lambda: index,
        TokenKeys(SECRET).signer,
        SystemClock(),
        SystemIds(),
        public_url="https://ads.example",
        shelves=Shelves(keep_seconds=keep_seconds),
    )
    slugs = list(index.by_slug)
    requests = [
        _request(slugs[number % len(slugs)], context.country or "")
        for number, context in enumerate(some_contexts(REQUESTS))
    ]
    return _best(lambda: [routes.serve(request) for request in requests])


def _request(slug: bytes, country: str) -> HotRequest:
    headers = [(name.lower().encode(), value.encode()) for name, value in BROWSER_HEADERS.items()]
    headers.append((b"x-country-code", country.encode()))
    request = HotRequest(b"GET", b"/banners/serve/" + slug, headers=headers)
    request.first_values = first_values(headers)  # The protocol has made it by then.
    return request


def _best(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(TURNS):
        started_at = time.thread_time()
        work()
        best = min(best, time.thread_time() - started_at)
    return best / REQUESTS * 1e6
