from adloom.runtime.ports import free_port
from bench.client import load_by_client, loaded
from bench.load import SERIAL, Effort, Target
from tests.bench.small_server import SmallServer


def an_effort(*, seconds: float = 0.3, connections: int = 4) -> Effort:
    return Effort(connections=connections, seconds=seconds, serial_prefix="p-")


def a_target(port: int, *, body: str | None = None) -> Target:
    return Target(name="t", port=port, path="/x", body=body)


async def test_the_client_asks_until_the_time_is_over() -> None:
    with SmallServer() as server:
        load = await loaded(a_target(server.port), an_effort())

    assert load.requests == len(server.heads) > 10
    assert load.errors == 0
    assert 0.3 <= load.seconds < 2
    assert 0 < load.p50_micros <= load.p99_micros


async def test_the_client_sends_what_a_browser_would() -> None:
    with SmallServer() as server:
        await loaded(a_target(server.port), an_effort(seconds=0.05))

    assert server.heads[0].startswith(b"GET /x HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nUser-Agent: Mozilla/" in server.heads[0]


async def test_no_two_bodies_are_the_same() -> None:
    with SmallServer() as server:
        await loaded(a_target(server.port, body=f'{{"id": "{SERIAL}"}}'), an_effort())

    assert server.bodies[0] == b'{"id": "p-1"}'
    assert server.heads[0].startswith(b"POST ")
    assert len(set(server.bodies)) == len(server.bodies)


async def test_refusals_are_errors() -> None:
    with SmallServer(status=404) as server:
        load = await loaded(a_target(server.port), an_effort())

    assert load.errors == load.requests > 0


async def test_the_client_goes_on_when_the_server_closes_a_connection() -> None:
    with SmallServer(requests_per_connection=3) as server:
        load = await loaded(a_target(server.port), an_effort(connections=1))

    assert load.requests > 3
    assert load.errors > 0


async def test_a_server_that_is_not_there_gives_no_requests() -> None:
    load = await loaded(a_target(free_port()), an_effort(seconds=0.05))

    assert load.requests == 0
    assert load.errors > 0


def test_the_client_runs_as_a_process_of_its_own() -> None:
    with SmallServer() as server:
        load = load_by_client(a_target(server.port), an_effort())

    assert load.requests == len(server.heads) > 10
