import shutil
from pathlib import Path

import pytest

from bench.load import (
    REPORT,
    SERIAL,
    Effort,
    Load,
    Target,
    build_script,
    build_wrk_command,
    parse_report,
    run_wrk,
)
from bench.processes import LoadError
from tests.bench.small_server import SmallServer


def an_effort(*, seconds: float = 3.0) -> Effort:
    return Effort(connections=4, seconds=seconds, serial_prefix="p-")


def a_target(*, body: str | None = None, port: int = 1) -> Target:
    return Target(name="t", port=port, path="/x", body=body)


def test_our_line_is_found_in_what_wrk_writes() -> None:
    output = """Running 1s test @ http://127.0.0.1:1/x
  1 threads and 4 connections
Requests/sec:  12345.67

adloom-bench {"requests":12345,"errors":2,"seconds":1.000123,"p50_micros":81.0,"p99_micros":950.0}
"""

    assert parse_report(output) == Load(
        requests=12345, errors=2, seconds=1.000123, p50_micros=81.0, p99_micros=950.0
    )


def test_what_wrk_says_instead_of_a_report_is_told() -> None:
    with pytest.raises(LoadError, match="unable to connect"):
        parse_report("unable to connect to 127.0.0.1:1 Connection refused\n")


def test_a_get_needs_no_more_than_the_report() -> None:
    assert build_script(a_target(), an_effort()) == REPORT


def test_every_request_has_the_headers_of_a_browser() -> None:
    words = build_wrk_command("wrk", a_target(), an_effort(seconds=2.5), Path("s.lua"))

    assert words[-1] == "http://127.0.0.1:1/x"
    assert words[words.index("-d") + 1] == "3s"
    assert any(word.startswith("User-Agent: Mozilla/") for word in words)


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_wrk_sends_bodies_that_all_differ() -> None:
    with SmallServer() as server:
        target = a_target(port=server.port, body=f'{{"id": "{SERIAL}", "quote": "\\"ä"}}')

        load = run_wrk(target, an_effort(seconds=0.3))

    assert load.requests > 10
    assert load.errors == 0
    assert 0.1 < load.seconds < 30
    assert 0 < load.p50_micros <= load.p99_micros
    assert b'{"id": "p-2", "quote": "\\"\xc3\xa4"}' in server.bodies
    assert len(set(server.bodies)) == len(server.bodies) >= load.requests


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
@pytest.mark.parametrize("body", [None, f'{{"id": "{SERIAL}"}}'])
def test_wrk_names_the_addresses_of_clients_behind_a_proxy(body: str | None) -> None:
    with SmallServer() as server:
        target = Target(name="t", port=server.port, path="/x", body=body, addresses=3)
        run_wrk(target, an_effort(seconds=0.3))

    lines = {line for head in server.heads for line in head.split(b"\r\n") if b"orwarded" in line}
    assert lines == {b"X-Forwarded-For: 51.15.0.%d" % number for number in (1, 2, 3)}
    assert all(head.startswith((b"GET /x HTTP/1.1", b"POST /x HTTP/1.1")) for head in server.heads)


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_wrk_counts_refusals_as_errors() -> None:
    with SmallServer(status=404) as server:
        load = run_wrk(a_target(port=server.port), an_effort(seconds=0.3))

    assert load.errors == load.requests > 0
