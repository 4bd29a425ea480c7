"""Traces one request in so many of a fast route."""

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from adloom.runtime.http.fast.fast_routes import (
    DeferredAnswer,
    FastAnswer,
    FastRequest,
    FastResult,
    FastRoute,
)
from adloom.runtime.telemetry.tracing import is_tracing, request_span

TRACED_ONE_IN: Final = 1_000
_STATUS = slice(9, 12)  # Of a head: after `HTTP/1.1 `.


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
    span = request_span(request.method.decode("latin-1"), version=request.version)
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
