"""Traces by OpenTelemetry, sent over OTLP/HTTP when an endpoint is set.

Without an endpoint nothing of OpenTelemetry is imported, and a span is one shared object that does nothing:

    with configure_tracing(settings.telemetry):
        ...
        with request_span("GET /admin/campaigns/{id}", headers.get("traceparent")) as current:
            current.set_attribute("http.response.status_code", 200)
            with span("campaigns.list", page=1):
                ...

The delivery plane asks for no span per request. It wraps its handler once, after `configure_tracing`, and
gets the handler itself back when tracing is off, so that a request pays nothing at all:

    serve = sampled(serve, "banners.serve", one_in=1_000)
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, ParamSpec, Protocol, TypeVar

from adloom import VERSION
from adloom.runtime.settings import Telemetry

if TYPE_CHECKING:  # At run time the SDK is imported only where it is used: it takes longer than all else.
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

P = ParamSpec("P")
R = TypeVar("R")

CLOSE_SECONDS_MAX = 2.0  # A collector that does not answer must not hold up the stop of a process.
EXPORT_SECONDS_MAX = 5.0

Attribute = str | bool | int | float


class TraceSpan(Protocol):
    """One piece of work that is being traced."""

    def set_attribute(self, key: str, value: Attribute, /) -> None: ...


class Tracing(AbstractContextManager["Tracing"]):
    """Tracing of this process: on from `configure_tracing` until it is closed."""

    def __init__(self, provider: "TracerProvider | None") -> None:
        self._provider = provider

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Send what is left, for a short while at most, and turn tracing off."""
        provider, self._provider = self._provider, None
        if provider is None:
            return
        _current.tracer = None
        closing = threading.Thread(target=provider.shutdown, name="tracing-close", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS_MAX)


def configure_tracing(telemetry: Telemetry) -> Tracing:
    """Turn tracing on if an endpoint is set; close the result to send what is left."""
    if telemetry.otlp_endpoint is None:
        return Tracing(None)
    provider = _provider(telemetry.otlp_endpoint, telemetry.process)
    _current.tracer = provider.get_tracer("adloom", VERSION)
    return Tracing(provider)


def is_tracing() -> bool:
    return _current.tracer is not None


def span(name: str, /, **attributes: Attribute) -> AbstractContextManager[TraceSpan]:
    tracer = _current.tracer
    if tracer is None:
        return NO_SPAN
    return tracer.start_as_current_span(name, attributes=attributes)


def request_span(
    name: str, traceparent: str | None, /, **attributes: Attribute
) -> AbstractContextManager[TraceSpan]:
    """Trace a request as part of the caller's trace, if its `traceparent` header names one."""
    tracer = _current.tracer
    if tracer is None:
        return NO_SPAN
    context = None if traceparent is None else _context_of(traceparent)
    return tracer.start_as_current_span(name, context, attributes=attributes)


def sample_calls(function: Callable[P, R], name: str, *, one_in: int) -> Callable[P, R]:
    """Trace one call in so many; without tracing, return the function itself."""
    assert one_in >= 1, "one in one is all of them"
    if not is_tracing():
        return function
    calls_until_span = one_in

    def call_counted(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal calls_until_span
        calls_until_span -= 1
        if calls_until_span:
            return function(*args, **kwargs)
        calls_until_span = one_in
        with span(name, **{"adloom.sampled_one_in": one_in}):
            return function(*args, **kwargs)

    return call_counted


class _NoSpan(AbstractContextManager["_NoSpan"]):
    """What a span is when tracing is off: the same object every time."""

    def __exit__(self, *_error: object) -> None: ...

    def set_attribute(self, key: str, value: Attribute, /) -> None: ...


class _Current:
    """The tracer of this process. OpenTelemetry's own global can be set only once, ours be closed too."""

    tracer: "Tracer | None" = None


NO_SPAN: Final = _NoSpan()
_current: Final = _Current()


def _provider(endpoint: str, process: str) -> "TracerProvider":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - lazy
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - lazy
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - lazy
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - lazy

    facts = {"service.namespace": "adloom", "service.name": f"adloom-{process}", "service.version": VERSION}
    provider = TracerProvider(resource=Resource.create(facts), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=EXPORT_SECONDS_MAX)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _context_of(traceparent: str) -> "Context":
    from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415 - lazy

    return tracecontext.TraceContextTextMapPropagator().extract({"traceparent": traceparent})
