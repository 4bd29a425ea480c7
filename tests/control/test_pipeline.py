"""Behaviour of every request to the control plane: ids, headers, logs, limits."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from inspect import iscoroutinefunction, isfunction
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
import structlog.testing
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import Route

from adloom.app.control import ROUTERS
from adloom.core.caller import Role
from adloom.core.errors import UnavailableError
from adloom.runtime.http.answering import find_postgres
from adloom.runtime.http.api.middleware import API_PATHS, BODY_BYTES_MAX
from adloom.runtime.http.api.routes import ASK_AGAIN_SECONDS, WAIT_SECONDS, DatabaseTimeout
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool
from tests.support.builders import banner_body
from tests.support.control import (
    Client,
    ControlPlane,
    control_settings,
    prepared_routes,
    problem,
    running_control,
)
from tests.support.eventually import measure_fastest

JSON = {"content-type": "application/json"}
WRONG = {"email": "nobody@example.com", "password": "wrong"}


def list_dependencies(dependant: Dependant) -> Iterator[Any]:
    yield dependant.call
    for inner in dependant.dependencies:
        yield from list_dependencies(inner)


def test_no_part_of_a_request_waits_for_a_thread() -> None:
    routes = [route for route in prepared_routes() if isinstance(route, APIRoute)]
    functions = {one for route in routes for one in list_dependencies(route.dependant) if isfunction(one)}

    assert len(routes) > 200
    assert {one.__qualname__ for one in functions if not iscoroutinefunction(one)} == set()


@pytest.mark.parametrize("path", ["/health/live", "/nowhere", "/admin/banners"])
async def test_every_answer_has_a_request_id(path: str, control: ControlPlane) -> None:
    async with control.client() as client:
        answer = await client.get(path)

    assert UUID(answer.headers["x-request-id"]).version == 7


async def test_a_valid_request_id_is_kept(control: ControlPlane) -> None:
    async with control.client(**{"X-Request-Id": "shop-4711_a.b"}) as client:
        assert (await client.get("/health/live")).headers["x-request-id"] == "shop-4711_a.b"


@pytest.mark.parametrize(
    "given", ["short", "a" * 65, "with space", "new\tline", "<script>x</script>", "ümlaut-id"]
)
async def test_any_other_request_id_is_replaced(given: str, control: ControlPlane) -> None:
    async with control.client() as client:
        answer = await client.get("/health/live", headers=[(b"x-request-id", given.encode())])

    assert UUID(answer.headers["x-request-id"]).version == 7


@pytest.mark.parametrize("path", ["/health", "/admin/banners", "/openapi.json", "/auth/login", "/v1/explain"])
async def test_the_api_runs_no_script_and_is_not_stored(path: str, control: ControlPlane) -> None:
    async with control.client() as client:
        headers = (await client.get(path)).headers

    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "strict-transport-security" not in headers


def test_every_path_of_the_api_counts_as_one() -> None:
    routes = [one for router in ROUTERS for one in router.routes if isinstance(one, Route)]
    first_parts = {f"/{one.path.split('/')[1]}" for one in routes}

    assert first_parts - {"/", "/docs"} == set(API_PATHS) - {"/openapi.json"}


async def test_the_console_may_set_its_own_content_security_policy(control: ControlPlane) -> None:
    async with control.client() as client:
        headers = (await client.get("/console")).headers

    assert "content-security-policy" not in headers
    assert headers["x-content-type-options"] == "nosniff"


async def test_answers_behind_https_have_strict_transport_security(database_url: str, redis_url: str) -> None:
    settings = control_settings(database_url, redis_url, public_url="https://ads.example.com")

    async with running_control(settings) as control, control.client() as client:
        assert "strict-transport-security" in (await client.get("/health/live")).headers


async def test_a_request_is_one_line_in_the_log_without_personal_data(
    control: ControlPlane, admin: Client
) -> None:
    banner = await admin.make_banner()

    with structlog.testing.capture_logs() as lines:
        await admin.get(f"/admin/banners/{banner['id']}", headers={"x-request-id": "request-1"})
        await admin.get("/admin/banners", params={"search": "ada@example.com"})
        async with control.client() as visitor:
            await visitor.post("/auth/login", json=WRONG)

    assert [(line["method"], line["route"], line["status"], line["role"]) for line in lines] == [
        ("GET", "/admin/banners/{banner_id}", 200, "admin"),
        ("GET", "/admin/banners", 200, "admin"),
        ("POST", "/auth/login", 401, None),
    ]
    assert all(line["event"] == "request_answered" and line["milliseconds"] > 0 for line in lines)
    assert not any(word in str(lines) for word in ("example.com", "wrong", banner["id"]))


async def test_an_internal_error_is_answered_without_details(control: ControlPlane) -> None:
    async def broken() -> None:
        raise RuntimeError("the secret inside")

    control.app.add_api_route("/admin/broken", broken)

    with structlog.testing.capture_logs() as lines:
        async with control.client(**{"X-Request-Id": "request-1"}) as client:
            answer = await client.get("/admin/broken")

    body = problem(answer, 500, "INTERNAL_ERROR")
    assert "request-1" in body["detail"]
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert [line["event"] for line in lines] == ["request_failed", "request_answered"]


async def in_pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(0, size, 65_536):
        yield b" " * min(size, 65_536)


@pytest.mark.parametrize("path", ["/admin/banners", "/auth/login"])
async def test_a_body_over_a_mebibyte_is_refused(path: str, admin: Client) -> None:
    announced = await admin.post(path, content=b" " * (BODY_BYTES_MAX + 1), headers=JSON)
    in_chunks = await admin.post(path, content=in_pieces(BODY_BYTES_MAX + 65_536), headers=JSON)

    problem(announced, 413, "BODY_TOO_LARGE")
    problem(in_chunks, 413, "BODY_TOO_LARGE")


async def test_a_body_of_a_mebibyte_is_read(admin: Client) -> None:
    answer = await admin.post("/admin/banners", content=b" " * BODY_BYTES_MAX, headers=JSON)

    problem(answer, 400, "VALIDATION_FAILED")


async def test_a_body_with_very_many_wrong_fields_gets_a_bounded_answer(admin: Client) -> None:
    answer = await admin.post("/admin/banners", json={f"field{number}": 1 for number in range(10_000)})

    assert len(problem(answer, 400, "VALIDATION_FAILED")["errors"]) == 50


@pytest.fixture
async def limited(database_url: str, redis_url: str) -> AsyncGenerator[ControlPlane]:
    settings = control_settings(
        database_url, redis_url, rate_limit_permits_per_minute=3, trusted_proxies=(ip_network("10.0.0.0/8"),)
    )
    async with running_control(settings) as control:
        yield control


def client_at(control: ControlPlane, address: str, **headers: str) -> Client:
    transport = httpx.ASGITransport(control.app, client=(address, 4711))
    return Client(transport=transport, base_url="http://control.test", headers=headers)


async def test_log_in_attempts_of_an_address_are_limited(limited: ControlPlane) -> None:
    async with client_at(limited, "192.0.2.1") as client:
        for _ in range(3):
            problem(await client.post("/auth/login", json=WRONG), 401, "UNAUTHENTICATED")
        refused = await client.post("/auth/refresh", json={"refreshToken": "x"})

        problem(refused, 429, "RATE_LIMITED")
        limited.clock.advance(timedelta(seconds=int(refused.headers["retry-after"])))
        problem(await client.post("/auth/login", json=WRONG), 401, "UNAUTHENTICATED")
    async with client_at(limited, "192.0.2.2") as other:
        problem(await other.post("/auth/login", json=WRONG), 401, "UNAUTHENTICATED")


async def test_other_routes_are_not_limited(limited: ControlPlane) -> None:
    async with limited.acting_as(Role.ADMIN) as admin:
        statuses = {(await admin.get("/admin/banners")).status_code for _ in range(10)}

    assert statuses == {200}


async def test_a_forged_forwarded_address_is_ignored(limited: ControlPlane) -> None:
    statuses = [
        (await attempt(limited, "192.0.2.1", f"203.0.113.{number}")).status_code for number in range(4)
    ]

    assert statuses == [401, 401, 401, 429]


async def test_behind_a_trusted_proxy_each_client_has_its_own_limit(limited: ControlPlane) -> None:
    statuses = [
        (await attempt(limited, "10.0.0.1", f"203.0.113.{number}")).status_code for number in range(6)
    ]

    assert set(statuses) == {401}


async def attempt(control: ControlPlane, address: str, forwarded_for: str) -> httpx.Response:
    async with client_at(control, address, **{"X-Forwarded-For": forwarded_for}) as client:
        return await client.post("/auth/login", json=WRONG)


async def test_everything_is_unavailable_without_a_database(redis_url: str) -> None:
    settings = control_settings(f"postgresql://nobody@127.0.0.1:{find_port()}/none", redis_url)

    async with running_control(settings) as control, control.acting_as(Role.ADMIN) as admin:
        answers = [
            await admin.get("/admin/banners"),
            await admin.post("/admin/banners", json=banner_body()),
            await admin.post("/auth/login", json=WRONG),
        ]
        with structlog.testing.capture_logs() as lines:
            await admin.get("/admin/banners", headers={"x-request-id": "request-1"})
        health, live = await admin.get("/health/ready"), await admin.get("/health/live")

    for answer in answers:
        problem(answer, 503, "UNAVAILABLE")
        assert answer.headers["retry-after"] == "1"
    why, _ = lines
    assert why["event"] == "request_unavailable"
    assert why["error"].startswith("ConnectionRefusedError("), "an operator reads the cause in the log"
    assert health.status_code == 503
    assert health.json()["checks"]["postgres"] == "unavailable"
    assert live.status_code == 200


async def test_a_monitor_may_ask_for_the_health_by_head(control: ControlPlane) -> None:
    async with control.client() as client:
        for path in ("/health", "/health/live", "/health/ready"):
            assert (await client.head(path)).status_code == 200


async def test_a_database_without_a_connection_to_spare_is_unavailable_and_the_log_says_why(
    pool: Pool, database_url: str, redis_url: str
) -> None:
    role = f"limited_{uuid4().hex}"
    await pool.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret' CONNECTION LIMIT 0")
    parts = urlsplit(database_url)
    place = parts.netloc.rpartition("@")[2]
    settings = control_settings(parts._replace(netloc=f"{role}:secret@{place}").geturl(), redis_url)

    async with running_control(settings) as control, control.acting_as(Role.ADMIN) as admin:
        with structlog.testing.capture_logs() as lines:
            answer = await admin.get("/admin/banners")
    await pool.execute(f"DROP ROLE {role}")

    assert "Try again in a moment" in problem(answer, 503, "UNAVAILABLE")["detail"]
    why, _ = lines
    assert (why["event"], "TooManyConnectionsError" in why["error"]) == ("request_unavailable", True)


async def test_the_catalog_can_be_changed_without_valkey(database_url: str) -> None:
    settings = control_settings(database_url, f"redis://127.0.0.1:{find_port()}")

    async with running_control(settings) as control, control.acting_as(Role.ADMIN) as admin:
        await admin.make_banner()
        await control.app.state.checks.catalog.check()
        health = await admin.get("/health")

    assert health.status_code == 200
    assert health.json()["checks"] == {
        "postgres": "ok",
        "valkey": "unavailable",
        "index": {"status": "ok", "version": 1},
    }


@asynccontextmanager
async def a_frozen_server() -> AsyncGenerator[str]:
    """Listen as a stopped process does: connections are made, and nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


async def test_requests_do_not_wait_for_a_frozen_database(redis_url: str) -> None:
    asked: list[asyncio.Task[httpx.Response]] = []
    async with a_frozen_server() as address:
        settings = control_settings(f"postgresql://nobody@{address}/none", redis_url)
        async with running_control(settings) as control, control.acting_as(Role.ADMIN) as admin:

            async def ask() -> None:
                async with asyncio.TaskGroup() as group:
                    asked[:] = [
                        group.create_task(admin.get("/admin/banners")),
                        group.create_task(admin.post("/admin/banners", json=banner_body())),
                        group.create_task(admin.post("/auth/login", json=WRONG)),
                    ]

            assert await measure_fastest(ask, seconds=2.0, tries=4) < 2.0
            health = await admin.get("/health/ready")
            assert await measure_fastest(lambda: admin.get("/health/ready"), seconds=0.2) < 0.2

    read, *written = [task.result() for task in asked]
    assert "Try again in a moment" in problem(read, 503, "UNAVAILABLE")["detail"]
    for answer in written:
        assert "not known whether the change was made" in problem(answer, 503, "UNAVAILABLE")["detail"]
    assert (health.status_code, health.json()["checks"]["postgres"]) == (503, "unavailable")


async def test_requests_do_not_wait_for_a_frozen_valkey(database_url: str) -> None:
    asked: dict[str, asyncio.Task[httpx.Response]] = {}
    async with a_frozen_server() as address:
        settings = control_settings(database_url, f"redis://{address}")
        async with running_control(settings) as control, control.acting_as(Role.ADMIN) as admin:
            paths = ("/admin/attention", "/admin/system", "/admin/jobs", "/admin/banners", "/admin/overview")

            async def ask() -> None:
                async with asyncio.TaskGroup() as group:
                    asked.update({path: group.create_task(admin.get(path)) for path in paths})
                    asked["made"] = group.create_task(admin.post("/admin/banners", json=banner_body()))

            assert await measure_fastest(ask, seconds=2.0, tries=4) < 2.0
            health = await admin.get("/health/ready")
            assert await measure_fastest(lambda: admin.get("/health/ready"), seconds=0.2) < 0.2

    statuses = {path: task.result().status_code for path, task in asked.items()}
    assert statuses["/admin/banners"] == 200
    assert statuses["/admin/attention"] == 200  # It says that Valkey is away.
    assert statuses["/admin/jobs"] == 503
    # It was stored; that Valkey did not hear of it costs a second.
    assert statuses["made"] == 201
    assert (health.status_code, health.json()["checks"]["valkey"]) == (200, "unavailable")


async def test_a_slow_request_is_left_alone_while_the_database_answers() -> None:
    async def answer_slowly() -> Response:
        await asyncio.sleep(WAIT_SECONDS + 0.2)
        return Response("done")

    async def is_answering() -> bool:
        return True

    answer = await DatabaseTimeout(is_answering).wait_for(answer_slowly(), "GET")

    assert answer.body == b"done"


async def test_one_unanswered_question_is_not_an_outage_and_two_in_a_row_are() -> None:
    async def answer_slowly() -> Response:
        await asyncio.sleep(WAIT_SECONDS + ASK_AGAIN_SECONDS / 2)
        return Response("done")

    async def wait_with(answers: list[bool]) -> Response:
        given = iter(answers)

        async def is_answering() -> bool:
            return next(given)

        return await DatabaseTimeout(is_answering).wait_for(answer_slowly(), "GET")

    assert (await wait_with([False, True])).body == b"done"
    with pytest.raises(UnavailableError, match="PostgreSQL does not answer"):
        await wait_with([False, False])


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://adloom:pw@db.internal/ads", ("db.internal", 5432)),
        ("postgresql://adloom:pw@[::1]:6000/ads", ("::1", 6000)),
        ("postgresql://adloom:pw@/ads?host=/run/adloom&port=5433", ("/run/adloom/.s.PGSQL.5433", 5433)),
        ("postgresql://adloom:pw@a:1,b:2/ads", None),
        ("postgresql://adloom@host:port/ads", None),
    ],
    ids=["default port", "IPv6", "unix socket", "several hosts", "no number"],
)
def test_where_postgresql_listens_is_found_in_its_url(url: str, expected: tuple[str, int] | None) -> None:
    assert find_postgres(url) == expected
