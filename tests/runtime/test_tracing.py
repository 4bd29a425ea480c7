import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from adloom.runtime.settings import Secret, Telemetry
from adloom.runtime.telemetry.tracing import (
    EXPORT_SECONDS_MAX,
    NO_SPAN,
    configure_tracing,
    is_tracing,
    request_span,
    sample_calls,
    span,
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
    with configure_tracing(a_telemetry(receiver.endpoint)), span("work", rows=3) as work:
        work.set_attribute("outcome", "done")

    (arrived,) = receiver.spans()
    assert arrived.name == "work"
    assert {pair.key: pair.value.int_value or pair.value.string_value for pair in arrived.attributes} == {
        "rows": 3,
        "outcome": "done",
    }
    resource = receiver.requests[0].resource_spans[0].resource
    assert ("service.name", "adloom-control") in {
        (pair.key, pair.value.string_value) for pair in resource.attributes
    }


def test_a_span_within_another_is_its_child(receiver: Receiver) -> None:
    with configure_tracing(a_telemetry(receiver.endpoint)), span("outer"), span("inner"):
        pass

    inner, outer = receiver.spans()
    assert inner.parent_span_id == outer.span_id
    assert inner.trace_id == outer.trace_id


def test_a_span_continues_the_trace_of_the_caller(receiver: Receiver) -> None:
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    with configure_tracing(a_telemetry(receiver.endpoint)), request_span("work", header):
        pass

    (arrived,) = receiver.spans()
    assert arrived.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert arrived.parent_span_id.hex() == "b7ad6b7169203331"


def test_a_broken_traceparent_starts_a_new_trace(receiver: Receiver) -> None:
    with configure_tracing(a_telemetry(receiver.endpoint)), request_span("work", "00-nonsense"):
        pass

    (arrived,) = receiver.spans()
    assert arrived.parent_span_id == b""


def test_an_exception_marks_the_span_and_is_raised(receiver: Receiver) -> None:
    with (
        configure_tracing(a_telemetry(receiver.endpoint)),
        pytest.raises(ValueError, match="wrong"),
        span("work"),
    ):
        raise ValueError("wrong")

    (arrived,) = receiver.spans()
    assert arrived.status.code == arrived.status.STATUS_CODE_ERROR


def test_one_call_in_n_is_sampled(receiver: Receiver) -> None:
    with configure_tracing(a_telemetry(receiver.endpoint)):
        written = sample_calls(str, "write", one_in=10)

        answers = [written(number) for number in range(25)]

    assert answers == [str(number) for number in range(25)]
    assert [arrived.name for arrived in receiver.spans()] == ["write", "write"]


def test_all_spans_are_one_null_object_without_an_endpoint() -> None:
    with configure_tracing(a_telemetry(None)), span("work") as work:
        work.set_attribute("rows", 3)

        assert work is NO_SPAN
        assert request_span("work", "00-nonsense") is NO_SPAN
        assert not is_tracing()


def test_sampling_returns_the_function_itself_without_an_endpoint() -> None:
    def handler() -> None: ...

    assert sample_calls(handler, "work", one_in=100) is handler


def test_tracing_is_off_after_it_is_closed(receiver: Receiver) -> None:
    with configure_tracing(a_telemetry(receiver.endpoint)):
        assert is_tracing()

    assert not is_tracing()
    assert span("work") is NO_SPAN


def test_a_silent_collector_does_not_delay_the_exit() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tracing = configure_tracing(a_telemetry(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        with span("work"):
            pass

        tracing.close()

        [closing] = [thread for thread in threading.enumerate() if thread.name == "tracing-close"]
        assert closing.is_alive(), "the spans are still being sent"
    # Its retries use the global random generator, which Hypothesis watches in other tests.
    closing.join(2 * EXPORT_SECONDS_MAX)
    assert not closing.is_alive()


def test_opentelemetry_is_not_imported_without_an_endpoint() -> None:
    program = """
import sys
from adloom.runtime.settings import Secret, Telemetry
from adloom.runtime.telemetry.tracing import configure_tracing, span
off = Telemetry(process="p", log_level="info", log_format="json", metrics_port=None, otlp_endpoint=None)
with configure_tracing(off), span("work"):
    print([name for name in sys.modules if name.startswith("opentelemetry")])
"""

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
