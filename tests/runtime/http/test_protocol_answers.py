"""The answer to one request: the right route, the right headers, and errors as problem details."""

import email.utils
import json
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from tests.support.echo_server import RunningServer
from tests.support.for_each import for_each
from tests.support.http_wire import Wire


def test_a_fast_route_answers_with_date_length_and_an_open_origin(wire: Wire) -> None:
    answer = wire.send(b"GET /echo/a?b=c HTTP/1.1\r\nHost: x\r\n\r\n").answer()

    assert answer.status == 200
    assert answer.body == b"GET /echo/a?b=c "
    assert set(answer.headers) == {"access-control-allow-origin", "content-type", "date", "content-length"}
    assert answer.headers["access-control-allow-origin"] == "*"
    age = datetime.now(UTC) - email.utils.parsedate_to_datetime(answer.headers["date"])
    assert age < timedelta(seconds=3)


def test_a_path_without_a_fast_route_is_answered_by_the_app(wire: Wire) -> None:
    answer = wire.send(b"PUT /app/x%20y?q HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi").answer()

    assert answer.body == b"app PUT /app/x%20y?q hi"
    assert "date" in answer.headers
    assert "server" not in answer.headers


def test_a_fast_route_may_pass_its_request_to_the_app(wire: Wire) -> None:
    wire.send(b"GET /handed-on?x HTTP/1.1\r\n\r\n")
    wire.send(b"POST /handed-on HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /echo/ HTTP/1.1\r\n\r\n")

    assert wire.answer().body == b"app GET /handed-on?x "
    assert wire.answer().body == b"app POST /handed-on? abc"
    assert wire.answer().body == b"GET /echo/? "


def test_a_streamed_answer_of_the_app_is_sent_in_chunks(wire: Wire) -> None:
    wire.send(b"GET /app/chunked HTTP/1.1\r\n\r\nGET /echo/ HTTP/1.1\r\n\r\n")

    assert wire.answer().body == b"app GET /app/chunked? "
    assert wire.answer().body == b"GET /echo/? "


def test_the_handler_sees_all_headers_in_order_with_names_in_lower_case(wire: Wire) -> None:
    answer = wire.send(b"GET /headers HTTP/1.1\r\nB: 1\r\nA:\r\nX-Two: p\r\nb:  2 \r\n\r\n").answer()

    assert answer.body == b"b=1|a=|x-two=p|b=2"


def test_trailers_are_not_headers(wire: Wire) -> None:
    head = b"GET /headers HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"

    answer = wire.send(head + b"0\r\nAuthorization: mine\r\n\r\n").answer()

    assert answer.body == b"transfer-encoding=chunked"


@pytest.mark.parametrize(
    "name", [b"X-Content-Length", b"Content-Length-X", b"Xtransfer-Encoding", b"X-Expect"]
)
def test_a_header_is_recognised_only_by_its_full_name(wire: Wire, name: bytes) -> None:
    wire.send(b"GET /echo/1 HTTP/1.1\r\n" + name + b": 5\r\n\r\nGET /echo/2 HTTP/1.1\r\n\r\n")

    assert wire.answer().body == b"GET /echo/1? "
    assert wire.answer().body == b"GET /echo/2? "


@pytest.mark.parametrize(
    "path",
    [
        *(b"/echo/a", b"/empty", b"/later/a", b"/given/a", b"/app/a", b"/missing", b"/big", b"/handed-on"),
        *(b"/gathered/a", b"/gathered/given", b"/gathered/missing", b"/gathered/handed-on"),
    ],
)
def test_head_gets_the_headers_of_get_without_a_body(wire: Wire, path: bytes) -> None:
    get = wire.send(b"GET " + path + b" HTTP/1.1\r\n\r\n").answer()
    wire.send(b"HEAD " + path + b" HTTP/1.1\r\n\r\nGET /echo/next HTTP/1.1\r\n\r\n")

    head = wire.answer(to_head=True)

    assert head.status == get.status
    assert set(head.headers) == set(get.headers)
    assert wire.answer().body == b"GET /echo/next? "


def test_options_on_a_fast_path_is_answered_as_preflight(wire: Wire) -> None:
    answer = wire.send(
        b"OPTIONS /echo/x HTTP/1.1\r\nOrigin: https://a.example\r\n"
        b"Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n\r\n"
    ).answer()

    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS, POST"
    assert "content-type" in answer.headers["access-control-allow-headers"]
    assert answer.headers["access-control-max-age"] == "86400"
    assert "content-length" not in answer.headers


def test_another_method_on_a_fast_path_gets_405_with_the_allowed_methods(wire: Wire) -> None:
    wire.send(b"DELETE /wide HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET /echo/ HTTP/1.1\r\n\r\n")

    answer = wire.answer()

    assert answer.status == 405
    assert answer.headers["allow"] == "OPTIONS, POST"
    assert json.loads(answer.body)["errorCode"] == "METHOD_NOT_ALLOWED"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert wire.answer().body == b"GET /echo/? "


@pytest.mark.parametrize("path", [b"/missing", b"/later-failing?missing", b"/gathered/missing"])
def test_an_error_with_a_code_becomes_its_problem(wire: Wire, path: bytes) -> None:
    wire.send(b"GET " + path + b" HTTP/1.1\r\n\r\nGET /echo/ HTTP/1.1\r\n\r\n")

    answer = wire.answer()

    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert json.loads(answer.body) == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is no such thing.",
        "message": "There is no such thing.",
        "errorCode": "NOT_FOUND",
    }
    assert wire.answer().status == 200


@pytest.mark.parametrize("path", [b"/broken", b"/later-failing", b"/gathered/broken"])
def test_an_internal_error_is_logged_once_and_answered_without_details(wire: Wire, path: bytes) -> None:
    with capture_logs() as logs:
        wire.send(b"GET " + path + b" HTTP/1.1\r\n\r\nGET /echo/ HTTP/1.1\r\n\r\n")
        answer = wire.answer()
        following = wire.answer()

    assert answer.status == 500
    assert b"secret" not in answer.body
    assert json.loads(answer.body)["errorCode"] == "INTERNAL_ERROR"
    assert following.status == 200
    assert [entry["event"] for entry in logs] == ["hot_request_failed"]


def test_a_cancelled_future_is_answered_as_unavailable(wire: Wire) -> None:
    answer = wire.send(b"GET /later-failing?cancelled HTTP/1.1\r\n\r\n").answer()

    assert answer.status == 503
    assert answer.headers["retry-after"] == "1"


def test_connection_close_is_honoured(wire: Wire) -> None:
    wire.send(b"GET /echo/ HTTP/1.1\r\nConnection: close\r\n\r\nGET /echo/unread HTTP/1.1\r\n\r\n")

    assert wire.answer().headers["connection"] == "close"
    assert wire.rest() == b""


def test_connection_close_is_honoured_by_the_app_too(wire: Wire) -> None:
    wire.send(b"GET /app/ HTTP/1.1\r\nConnection: close\r\n\r\nGET /echo/unread HTTP/1.1\r\n\r\n")

    assert wire.answer().headers["connection"] == "close"
    assert wire.rest() == b""


@pytest.mark.parametrize("path", [b"/echo/", b"/later/", b"/given/", b"/app/", b"/missing", b"/gathered/"])
def test_http_1_0_closes_the_connection_by_default(wire: Wire, path: bytes) -> None:
    wire.send(b"GET " + path + b" HTTP/1.0\r\n\r\n")

    assert wire.answer().headers["connection"] == "close"
    assert wire.rest() == b""


def test_http_1_0_keeps_the_connection_open_on_request(wire: Wire) -> None:
    request = b"GET /echo/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"

    assert wire.send(request).answer().headers["connection"] == "keep-alive"
    assert wire.send(request).answer().headers["connection"] == "keep-alive"


def test_http_1_1_keeps_the_connection_open_without_a_header(wire: Wire) -> None:
    answer = wire.send(b"GET /echo/ HTTP/1.1\r\nConnection: keep-alive\r\n\r\n").answer()

    assert "connection" not in answer.headers


@pytest.mark.parametrize(
    ("target", "echoed"),
    [
        (b"http://host.example/echo/a?b", b"GET /echo/a?b "),
        (b"/echo/a?b#c", b"GET /echo/a?b "),
        (b"/echo/?a?b", b"GET /echo/?a?b "),
        (b"//echo/a", b"app GET //echo/a? "),
        (b"http://host.example", b"app GET /? "),
        (b"/echo", b"405"),
    ],
)
def test_a_target_is_split_into_path_and_query(wire: Wire, target: bytes, echoed: bytes) -> None:
    answer = wire.send(b"GET " + target + b" HTTP/1.1\r\n\r\n").answer()

    assert answer.body == echoed or str(answer.status).encode() == echoed


def test_options_of_the_whole_server_is_answered_by_the_app(wire: Wire) -> None:
    assert wire.send(b"OPTIONS * HTTP/1.1\r\n\r\n").answer().body == b"app OPTIONS *? "


@pytest.mark.parametrize("path", [b"/echo/ws", b"/app/ws"])
def test_an_upgrade_is_ignored(wire: Wire, path: bytes) -> None:
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: a\r\n"
    wire.send(b"GET " + path + b" HTTP/1.1\r\n" + upgrade + b"\r\nGET /echo/next HTTP/1.1\r\n\r\n")

    assert wire.answer().body.endswith(b"GET " + path + b"? ")
    assert wire.answer().body == b"GET /echo/next? "


def test_the_body_of_a_request_with_an_ignored_upgrade_is_read(wire: Wire) -> None:
    request = (
        b"POST /echo HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 27\r\n"
        b"HTTP2-Settings: AAEAAEAA\r\nUpgrade: h2c\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n."
    )

    wire.send(request * 3)

    for _ in range(3):
        assert wire.answer().body == b"POST /echo? GET /smuggled HTTP/1.1\r\n\r\n."


def test_proxy_requests_are_rejected(wire: Wire) -> None:
    answer = wire.send(b"CONNECT inside.example:443 HTTP/1.1\r\n\r\n").answer()

    assert answer.status == 501
    assert wire.rest() == b""


@for_each(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nX : y\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: y\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: \x00\r\n\r\n",
        b"GET /\xc3\xa4 HTTP/1.1\r\n\r\n",
        b"GET /?\xc3\xa4 HTTP/1.1\r\n\r\n",
        b"BREW / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na",
        b"POST /echo HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        b"GET / HTTP/1.1\r\nUpgrade: x\r\nConnection: upgrade\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
    ],
)
def test_bytes_that_are_not_a_request_are_rejected_and_the_connection_closed(
    server: RunningServer, request_bytes: bytes
) -> None:
    with server.connect() as wire:
        answer = wire.send(request_bytes).answer()

        assert answer.status == 400
        assert answer.headers["connection"] == "close"
        assert answer.headers["content-type"] == "application/problem+json"
        assert json.loads(answer.body)["errorCode"] == "BAD_REQUEST"
        assert wire.rest() == b""


@for_each("byte", range(256))
def test_any_byte_in_a_target_reaches_a_route_or_is_refused(server: RunningServer, byte: int) -> None:
    for place in (b"/app/", b"/app/?"):
        with server.connect() as wire:
            answer = wire.send(b"GET " + place + bytes([byte]) + b" HTTP/1.1\r\nA: b\r\n\r\n").answer()

            assert answer.status in {200, 400}
