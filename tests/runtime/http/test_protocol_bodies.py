"""Bodies: by length, in chunks, and by `Expect: 100-continue`."""

import json

import pytest

from tests.support.http_wire import ClosedError, Wire

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def in_chunks(body: bytes, size: int) -> bytes:
    chunks = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x;ext=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nT: x\r\n\r\n"


@pytest.mark.parametrize("path", [b"/echo", b"/later/x", b"/given/x", b"/app/x", b"/gathered/x"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_chunked_body_arrives_whole(wire: Wire, path: bytes, size: int) -> None:
    body = b"0123456789" * 50
    head = b"POST " + path + b" HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"

    wire.send(head + in_chunks(body, size) + b"GET /echo/next HTTP/1.1\r\n\r\n")

    assert wire.answer().body.endswith(b"POST " + path + b"? " + body)
    assert wire.answer().body == b"GET /echo/next? "


def test_a_body_larger_than_a_packet_arrives_whole(wire: Wire) -> None:
    body = bytes(range(256)) * 3_900

    wire.send(b"POST /wide HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body))
    wire.send(body + b"GET /echo/next HTTP/1.1\r\n\r\n")

    assert wire.answer().body == b"POST /wide? " + body
    assert wire.answer().body == b"GET /echo/next? "


def test_a_body_of_get_is_read_and_belongs_to_it(wire: Wire) -> None:
    wire.send(b"GET /echo/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /GET /echo/2 HTTP/1.1\r\n\r\n")

    assert wire.answer().body == b"GET /echo/? GET /"
    assert wire.answer().body == b"GET /echo/2? "


@pytest.mark.parametrize("path", [b"/echo", b"/app/x"])
@pytest.mark.parametrize("expectation", [b"100-continue", b"100-Continue"])
def test_a_client_that_waits_for_100_continue_gets_it_first(
    wire: Wire, path: bytes, expectation: bytes
) -> None:
    wire.send(b"POST " + path + b" HTTP/1.1\r\nExpect: " + expectation + b"\r\nContent-Length: 2\r\n\r\n")

    assert wire.answer().status == 100
    assert wire.send(b"hi").answer().body.endswith(b"POST " + path + b"? hi")


def test_100_continue_waits_for_the_answers_before_it(wire: Wire) -> None:
    wire.send(b"GET /later/1 HTTP/1.1\r\n\r\n")
    wire.send(b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")

    assert wire.answer().body == b"GET /later/1? "
    assert wire.answer().status == 100
    assert wire.send(b"hi").answer().body == b"POST /echo? hi"


def test_100_continue_works_when_the_body_is_in_the_same_packet(wire: Wire) -> None:
    expecting = b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"

    wire.send(b"GET /later/1 HTTP/1.1\r\n\r\n" + expecting)

    assert wire.answer().body == b"GET /later/1? "
    assert wire.answer().status == 100
    assert wire.send(b"hi").answer().body == b"POST /echo? hi"


@pytest.mark.parametrize(
    ("request_head", "status", "code"),
    [
        (b"POST /echo HTTP/1.1\r\nContent-Length: 1001", 413, "BODY_TOO_LARGE"),
        (b"POST /app/ HTTP/1.1\r\nContent-Length: 1048577", 413, "BODY_TOO_LARGE"),
        (b"PUT /wide HTTP/1.1\r\nContent-Length: 2", 405, "METHOD_NOT_ALLOWED"),
    ],
)
def test_100_continue_is_never_sent_for_a_refused_request(
    wire: Wire, request_head: bytes, status: int, code: str
) -> None:
    answer = wire.send(request_head + b"\r\nExpect: 100-continue\r\n\r\n").answer()

    assert answer.status == status
    assert json.loads(answer.body)["errorCode"] == code
    assert answer.headers["connection"] == "close"
    assert wire.rest() == b""


def test_another_expectation_fails(wire: Wire) -> None:
    answer = wire.send(b"GET /echo/ HTTP/1.1\r\nExpect: 200-ok\r\n\r\n").answer()

    assert answer.status == 417
    with pytest.raises(ClosedError):
        wire.answer()


def test_http_1_0_never_gets_100_continue(wire: Wire) -> None:
    wire.send(b"POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi")

    assert wire.answer().body == b"POST /echo? hi"
