"""Traces by OpenTelemetry, sent over OTLP/HTTP when an endpoint is set.

Without an endpoint nothing of OpenTelemetry is imported, and a span is one shared object that does nothing:

    with configure_tracing(settings.telemetry):
        ...
        with open_request_span("GET", headers.get("traceparent")) as request:
            ...
            request.answer(200, "/admin/campaigns/{id}")

Spans of requests have the names and attributes of OpenTelemetry's semantic conventions for HTTP servers. An address
may name a person, so `url.path` has the names of its parameters instead of their values.
"""

import os
import platform
import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Final

from adloom import VERSION
from adloom.runtime.settings import Telemetry

if TYPE_CHECKING:  # At run time the SDK is imported only where it is used: it takes longer than all else.
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

CLOSE_SECONDS_MAX = 0.9  # A collector that does not answer must not hold up the stop of a process.
EXPORT_SECONDS_MAX = 5.0

SERVER_ERROR: Final = 500
METHODS: Final = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}
)

Attribute = str | bool | int | float


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
    provider = _make_provider(telemetry.otlp_endpoint, telemetry.process)
    _current.tracer = provider.get_tracer("adloom", VERSION)
    return Tracing(provider)


def is_tracing() -> bool:
    return _current.tracer is not None


def open_request_span(
    method: str, traceparent: str | None = None, *, scheme: str = "http", version: str = "1.1"
) -> "RequestSpan | NoSpan":
    """Trace a request as part of the caller's trace, if its `traceparent` header names one."""
    tracer = _current.tracer
    if tracer is None:
        return NO_SPAN
    return RequestSpan(tracer, method, traceparent, scheme=scheme, version=version)


class RequestSpan(AbstractContextManager["RequestSpan"]):
    """A request that is being answered; a span within its block is its child."""

    def __init__(
        self, tracer: "Tracer", method: str, traceparent: str | None, *, scheme: str, version: str
    ) -> None:
        from opentelemetry.trace import SpanKind  # noqa: PLC0415 - lazy

        self._method = method if method in METHODS else "HTTP"
        attributes: dict[str, Attribute] = {
            "http.request.method": method if method in METHODS else "_OTHER",
            "url.scheme": scheme,
            "network.protocol.version": version,
        }
        context = None if traceparent is None else _find_context(traceparent)
        self._span: Span = tracer.start_span(
            self._method, context, kind=SpanKind.SERVER, attributes=attributes
        )
        self._scope: AbstractContextManager[Span] | None = None

    def __enter__(self) -> "RequestSpan":
        from opentelemetry.trace import use_span  # noqa: PLC0415 - lazy

        self._scope = use_span(self._span)
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._scope is not None
        try:
            self._scope.__exit__(kind, error, trace)
        finally:
            self.end()

    def set_attribute(self, key: str, value: Attribute, /) -> None:
        self._span.set_attribute(key, value)

    def answer(self, status: int, route: str | None) -> None:
        """Note the status, and the route by its template; None if no route was found."""
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - lazy

        if route is not None:
            self._span.update_name(f"{self._method} {route}")
            self._span.set_attribute("http.route", route)
        self._span.set_attribute("url.path", route or "/*")
        self._span.set_attribute("http.response.status_code", status)
        if status >= SERVER_ERROR:
            self._span.set_attribute("error.type", str(status))
            self._span.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        self._span.end()


class NoSpan(AbstractContextManager["NoSpan"]):
    """What a span is when tracing is off: the same object every time."""

    def __exit__(self, *_error: object) -> None: ...

    def set_attribute(self, key: str, value: Attribute, /) -> None: ...

    def answer(self, status: int, route: str | None) -> None: ...

    def end(self) -> None: ...


class _Current:
    """The tracer of this process. OpenTelemetry's own global can be set only once, ours be closed too."""

    tracer: "Tracer | None" = None


NO_SPAN: Final = NoSpan()
_current: Final = _Current()


def _make_provider(endpoint: str, process: str) -> "TracerProvider":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - lazy
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - lazy
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - lazy
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - lazy

    facts = {
        "service.name": "adloom",
        "service.version": VERSION,
        "service.instance.id": f"{process}.{platform.node()}.{os.getpid()}",
        "adloom.process": process,
    }
    provider = TracerProvider(resource=Resource.create(facts), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=EXPORT_SECONDS_MAX)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _find_context(traceparent: str) -> "Context":
    from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415 - lazy

    return tracecontext.TraceContextTextMapPropagator().extract({"traceparent": traceparent})
