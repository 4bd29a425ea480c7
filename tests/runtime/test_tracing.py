import asyncio
import http.server
import os
import platform
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from adloom.runtime.http.fast.fast_routes import DeferredAnswer, FastAnswer, FastRequest, FastRoute
from adloom.runtime.http.fast.sampled_routes import trace_route
from adloom.runtime.settings import Secret, Telemetry
from adloom.runtime.telemetry.tracing import (
    EXPORT_SECONDS_MAX,
    NO_SPAN,
    configure_tracing,
    is_tracing,
    open_request_span,
)


def a_telemetry(endpoint: str | None) -> Telemetry:
    return Telemetry(
        process="control",
        log_level="info",
        log_format="json",
        metrics_port=None,
        otlp_endpoint=None if endpoint is None else Secret(endpoint),
    )


class Receiver(http.server.ThreadingHTTPServer):
    """An OTLP/HTTP collector on loopback that keeps what it receives."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ReceivingHandler)
        self.requests: list[ExportTraceServiceRequest] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class ReceivingHandler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Receiver)
        self.server.requests.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the original
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_span_arrives_at_the_collector(receiver: Receiver) -> None:
    with configure_tracing(a_telemetry(receiver.endpoint)), open_request_span("GET") as request:
        request.set_attribute("rows", 3)

    (arrived,) = receiver.spans()
    assert attributes_of(arrived)["rows"] == 3
    resource = receiver.requests[0].resource_spans[0].resource
    facts = {pair.key: pair.value.string_value for pair in resource.attributes}
    assert facts["service.name"] == "adloom"
    assert facts["service.instance.id"] == f"control.{platform.node()}.{os.getpid()}"


def test_a_span_within_another_is_its_child(receiver: Receiver) -> None:
    with (
        configure_tracing(a_telemetry(receiver.endpoint)),
        open_request_span("GET"),
        open_request_span("POST"),
    ):
        pass

    inner, outer = receiver.spans()
    assert inner.parent_span_id == outer.span_id
    assert inner.trace_id == outer.trace_id


def test_a_span_continues_the_trace_of_the_caller(receiver: Receiver) -> None:
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    with configure_tracing(a_telemetry(receiver.endpoint)), open_request_span("GET", header):
        pass

    (arrived,) = receiver.spans()
    assert arrived.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert arrived.parent_span_id.hex() == "b7ad6b7169203331"


def test_a_broken_traceparent_starts_a_new_trace(receiver: Receiver) -> None:
    with configure_tracing(a_telemetry(receiver.endpoint)), open_request_span("GET", "00-nonsense"):
        pass

    (arrived,) = receiver.spans()
    assert arrived.parent_span_id == b""


def attributes_of(span: Span) -> dict[str, str | int]:
    return {pair.key: pair.value.int_value or pair.value.string_value for pair in span.attributes}


def test_a_request_has_the_name_and_attributes_of_the_conventions(receiver: Receiver) -> None:
    with (
        configure_tracing(a_telemetry(receiver.endpoint)),
        open_request_span("GET", scheme="https") as request,
    ):
        request.answer(200, "/admin/campaigns/{id}")

    (arrived,) = receiver.spans()
    assert arrived.kind == Span.SPAN_KIND_SERVER
    assert arrived.name == "GET /admin/campaigns/{id}"
    assert arrived.status.code == arrived.status.STATUS_CODE_UNSET
    assert attributes_of(arrived) == {
        "http.request.method": "GET",
        "http.route": "/admin/campaigns/{id}",
        "http.response.status_code": 200,
        "url.path": "/admin/campaigns/{id}",
        "url.scheme": "https",
        "network.protocol.version": "1.1",
    }


def test_a_request_without_a_route_is_named_by_its_method_alone(receiver: Receiver) -> None:
    with configure_tracing(a_telemetry(receiver.endpoint)), open_request_span("BREW") as request:
        request.answer(404, None)

    (arrived,) = receiver.spans()
    assert arrived.name == "HTTP"
    assert attributes_of(arrived)["http.request.method"] == "_OTHER"
    assert "http.route" not in attributes_of(arrived)


def test_only_a_failure_of_ours_is_an_error(receiver: Receiver) -> None:
    with configure_tracing(a_telemetry(receiver.endpoint)):
        for status in (400, 503):
            with open_request_span("GET") as request:
                request.answer(status, "/health")

    refused, failed = receiver.spans()
    assert refused.status.code == refused.status.STATUS_CODE_UNSET
    assert failed.status.code == failed.status.STATUS_CODE_ERROR
    assert attributes_of(failed)["error.type"] == "503"


async def test_one_request_in_n_of_a_route_is_traced(receiver: Receiver) -> None:
    late: asyncio.Future[FastAnswer] = asyncio.get_running_loop().create_future()
    deferred = DeferredAnswer()
    answers = iter(
        [FastAnswer(b"HTTP/1.1 200 OK\r\n"), late, deferred, FastAnswer(b"HTTP/1.1 404 Not Found\r\n")]
    )
    route = FastRoute(b"GET", b"/serve/", is_prefix=True, handler=lambda _: next(answers))
    with configure_tracing(a_telemetry(receiver.endpoint)):
        traced = trace_route(route, "/serve/{slug}", one_in=1)

        given = [traced.handler(FastRequest(b"GET", b"/serve/home")) for _ in range(4)]
        late.set_result(FastAnswer(b"HTTP/1.1 503 Service Unavailable\r\n"))
        deferred.resolve(FastAnswer(b"HTTP/1.1 204 No Content\r\n"))
        await asyncio.sleep(0)

    assert given[1] is late
    spans = receiver.spans()
    assert {span.name for span in spans} == {"GET /serve/{slug}"}
    assert {attributes_of(span)["http.response.status_code"] for span in spans} == {200, 503, 204, 404}


def test_one_in_many_is_traced_and_a_failing_handler_still_fails(receiver: Receiver) -> None:
    def fail(_request: FastRequest) -> FastAnswer:
        raise ValueError("wrong")

    route = FastRoute(b"GET", b"/serve/", is_prefix=True, handler=fail)
    with configure_tracing(a_telemetry(receiver.endpoint)):
        traced = trace_route(route, "/serve/{slug}", one_in=10)
        for _ in range(25):
            with pytest.raises(ValueError, match="wrong"):
                traced.handler(FastRequest(b"GET", b"/serve/home"))

    assert len(receiver.spans()) == 2


def test_a_route_is_returned_itself_without_an_endpoint() -> None:
    route = FastRoute(b"GET", b"/", is_prefix=False, handler=lambda _: FastAnswer(b""))

    assert trace_route(route, "/", one_in=100) is route


def test_an_exception_marks_the_span_and_is_raised(receiver: Receiver) -> None:
    with (
        configure_tracing(a_telemetry(receiver.endpoint)),
        pytest.raises(ValueError, match="wrong"),
        open_request_span("GET"),
    ):
        raise ValueError("wrong")

    (arrived,) = receiver.spans()
    assert arrived.status.code == arrived.status.STATUS_CODE_ERROR


def test_all_spans_are_one_null_object_without_an_endpoint() -> None:
    with configure_tracing(a_telemetry(None)), open_request_span("GET", "00-nonsense") as request:
        request.set_attribute("rows", 3)

        assert request is NO_SPAN
        assert not is_tracing()


def test_tracing_is_off_after_it_is_closed(receiver: Receiver) -> None:
    with configure_tracing(a_telemetry(receiver.endpoint)):
        assert is_tracing()

    assert not is_tracing()
    assert open_request_span("GET") is NO_SPAN


def test_a_silent_collector_does_not_delay_the_exit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tracing = configure_tracing(a_telemetry(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        with open_request_span("GET"):
            pass

        began = time.monotonic()
        tracing.close()

        assert time.monotonic() - began < EXPORT_SECONDS_MAX
        [closing] = [thread for thread in threading.enumerate() if thread.name == "tracing-close"]
        assert closing.is_alive(), "the spans are still being sent"
    # Its retries use the global random generator, which Hypothesis watches in other tests.
    closing.join(2 * EXPORT_SECONDS_MAX)
    assert not closing.is_alive()


def test_opentelemetry_is_not_imported_without_an_endpoint() -> None:
    program = """
import sys
from adloom.runtime.settings import Secret, Telemetry
from adloom.runtime.telemetry.tracing import configure_tracing, open_request_span
off = Telemetry(process="p", log_level="info", log_format="json", metrics_port=None, otlp_endpoint=None)
with configure_tracing(off), open_request_span("GET"):
    print([name for name in sys.modules if name.startswith("opentelemetry")])
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
