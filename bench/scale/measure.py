"""The costs of one size of catalog in this process: compiling, memory, decisions and answers."""

import gc
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from adloom.budgets.messages import BudgetVerdict, LeaseAnswer
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.core.money import Micros
from adloom.events.ingest.token import TokenKeys
from adloom.runtime.http.fast.fast_routes import FastRequest, index_headers
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.eligibility.decide import decide
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.index.compile import Interner, compile_index, compile_placement, group_rows
from adloom.serving.index.index import Index
from adloom.serving.index.rows import Snapshot
from adloom.serving.leases.local_leases import LocalLeases
from bench.load import BROWSER_HEADERS
from bench.processes import measure_usage
from bench.scale.catalog import CatalogSize, add_budgets, build_catalog, build_contexts

REQUESTS: Final = 200
OFFERS: Final = 1_000_000
LOOK_SECONDS: Final = 100.0
REPEATS: Final = 100  # The best one counts: the rest is noise of other processes.
SECRET: Final = "a secret of the bench, long enough to be one"  # noqa: S105 - as it says


class ScaleCost(msgspec.Struct, frozen=True, kw_only=True):
    """The measured costs; micros are CPU time per request."""

    size: CatalogSize
    compile_seconds: float
    longest_step_millis: float
    resident_mebibytes: float
    filled_share: float
    decide_micros: float
    hit_micros: float
    leased_micros: float  # As `hit_micros`, with a budget and a lease for every campaign.
    miss_micros: float


def measure_cost(size: CatalogSize, pid: int) -> ScaleCost:
    """Measure one size; one per process, since memory is not returned."""
    snapshot = build_catalog(size)
    compile_seconds, longest_step_millis = _measure_compiling(snapshot)
    index = compile_index(snapshot)
    del snapshot
    gc.collect()
    resident = measure_usage([pid]).resident_bytes / (1 << 20)
    states, now = PlacementStates(), SystemClock().now()
    placements = list(index.by_key.values())
    asked = [
        (states.get(placements[number % len(placements)], now), context)
        for number, context in enumerate(build_contexts(REQUESTS))
    ]
    decisions = [decide(state.placement, context, state.available) for state, context in asked]
    return ScaleCost(
        size=size,
        compile_seconds=compile_seconds,
        longest_step_millis=longest_step_millis,
        resident_mebibytes=resident,
        filled_share=sum(map(bool, decisions)) / REQUESTS,
        decide_micros=_measure_best(
            lambda: [decide(state.placement, context, state.available) for state, context in asked]
        ),
        hit_micros=_measure_answers(index, keep_seconds=60),
        leased_micros=_measure_answers(compile_index(add_budgets(build_catalog(size))), keep_seconds=60),
        miss_micros=_measure_answers(index, keep_seconds=0),
    )


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
    states, book = PlacementStates(keep_seconds=keep_seconds), LocalLeases()
    routes = ServeRoutes(
        lambda: index,
        TokenKeys(SECRET).signer,
        SystemClock(),
        SystemIds(),
        public_url="https://ads.example",
        states=states,
        leases=book,
    )
    _lease_all(book, index)
    states.mark_changed(book.take_changes())
    slugs = list(index.by_slug)
    requests = [
        _build_request(slugs[number % len(slugs)], context.country or "")
        for number, context in enumerate(build_contexts(REQUESTS))
    ]
    return _measure_best(lambda: [routes.serve(request) for request in requests])


def _lease_all(book: LocalLeases, index: Index) -> None:
    """Grant every campaign that needs a lease more than the bench can offer."""
    book.update({key: placement.terms for key, placement in index.by_key.items()}, at=0.0)
    second, at = int(SystemClock().now().timestamp()), 0.0
    while said := book.collect_reports(
        second=second, at=(at := at + LOOK_SECONDS), most=len(index.by_key), is_wanted=bool
    ):
        for terms, usage in said:
            answer = LeaseAnswer(
                campaign_id=terms.campaign_id,
                session=usage.session,
                report=usage.report,
                lease=1,
                granted=Micros(terms.cost * OFFERS),
                given=Micros(0),
                ends_at=datetime.max.replace(tzinfo=UTC),
                verdict=BudgetVerdict.GRANTED,
            )
            book.on_answer(answer, second=second, at=at)


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
