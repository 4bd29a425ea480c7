"""Measures and traces fast routes: one call in so many, so that it costs next to nothing."""

import asyncio
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastHandler,
    FastRequest,
    FastResult,
    FastRoute,
)
from adloom.runtime.telemetry.tracing import is_tracing, open_request_span

ONE_IN: Final = 16
SAMPLES_MAX: Final = 1_024
# Upper bounds of a histogram, in seconds: an answer from memory takes 20 µs, one that waits for Valkey a millisecond.
SECONDS_BOUNDS: Final = (
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0,
)  # fmt: skip
TRACED_ONE_IN: Final = 1_000
_STATUS = slice(9, 12)  # Of a head: after `HTTP/1.1 `.


class ServeTimes:
    """The measured calls: all of them in a histogram, and the last ones for quantiles on demand."""

    def __init__(self, *, one_in: int = ONE_IN) -> None:
        assert one_in >= 1, "one in one is all of them"
        self._one_in = one_in
        self._samples: deque[float] = deque(maxlen=SAMPLES_MAX)
        self.within = [0] * (len(SECONDS_BOUNDS) + 1)  # The last for what took longer than all bounds.
        self.seconds_sum = 0.0

    @property
    def samples(self) -> int:
        return len(self._samples)

    def compute_quantile(self, share: float) -> float | None:
        """Return a quantile in seconds; None if nothing was measured yet."""
        ordered = sorted(self._samples.copy())
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None

    def note(self, seconds: float) -> None:
        self._samples.append(seconds)
        self.within[bisect_left(SECONDS_BOUNDS, seconds)] += 1
        self.seconds_sum += seconds

    def measure(self, route: FastRoute) -> FastRoute:
        return msgspec.structs.replace(route, handler=self._measure_handler(route.handler))

    def _measure_handler(self, handler: FastHandler) -> FastHandler:
        calls_until_sample = 1
        note = self.note
        now = time.perf_counter

        def handle_sampled(request: FastRequest) -> FastResult:
            nonlocal calls_until_sample
            calls_until_sample -= 1
            if calls_until_sample:
                return handler(request)
            calls_until_sample = self._one_in
            began = now()
            answer = handler(request)
            if isinstance(answer, asyncio.Future):
                answer.add_done_callback(lambda _: note(now() - began))
            elif isinstance(answer, DeferredAnswer):
                answer.add_callback(lambda _, __: note(now() - began))
            else:
                note(now() - began)
            return answer

        return handle_sampled


def trace_routes(routes: Iterable[FastRoute]) -> list[FastRoute]:
    """Trace routes by their templates: what is below a prefix is a slug."""
    return [
        trace_route(
            route, f"{route.path.decode()}{'{slug}' if route.is_prefix else ''}", one_in=TRACED_ONE_IN
        )
        for route in routes
    ]


def trace_route(route: FastRoute, template: str, *, one_in: int) -> FastRoute:
    """Return a route that traces one request in so many; the route itself without tracing, so that it costs nothing."""
    assert one_in >= 1, "one in one is all of them"
    if not is_tracing():
        return route
    handler, calls_until_span = route.handler, one_in

    def handle_sampled(request: FastRequest) -> FastResult:
        nonlocal calls_until_span
        calls_until_span -= 1
        if calls_until_span:
            return handler(request)
        calls_until_span = one_in
        return _trace_call(route, template, request, one_in)

    return msgspec.structs.replace(route, handler=handle_sampled)


def _trace_call(route: FastRoute, template: str, request: FastRequest, one_in: int) -> FastResult:
    """Answer in a span, which ends when the answer is there."""
    span = open_request_span(request.method.decode("latin-1"), version=request.version)
    span.set_attribute("adloom.sampled_one_in", one_in)

    def finish(answer: FastAnswer | None) -> None:
        span.answer(500 if answer is None else int(answer.head[_STATUS]), template)
        span.end()

    try:
        answer = route.handler(request)
    except Exception:
        # What it means to the client is decided by whoever calls the route.
        span.end()
        raise
    if isinstance(answer, asyncio.Future):
        answer.add_done_callback(lambda done: finish(_get_result(done)))
    elif isinstance(answer, DeferredAnswer):
        answer.add_callback(lambda _, late: finish(late))
    else:
        finish(answer)
    return answer


def _get_result(done: "asyncio.Future[FastAnswer]") -> FastAnswer | None:
    return None if done.cancelled() or done.exception() is not None else done.result()
