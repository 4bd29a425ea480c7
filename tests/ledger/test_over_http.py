"""The event routes over real sockets, with a real Valkey behind them."""

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from adloom.core.clock import ManualClock
from adloom.ledger.api import EventRoutes
from adloom.ledger.append import LedgerAppender
from adloom.ledger.stream import STREAM, ValkeyLedger
from adloom.ledger.token import TokenKeys
from adloom.runtime.http.hot import HotRoutes
from adloom.runtime.http.plain import PlainApp
from adloom.runtime.http.protocol import make_protocol
from adloom.runtime.ports import free_port
from adloom.runtime.valkey import Valkey, open_valkey
from tests.ledger.builders import BANNER, NOBODY, NOW, PLACEMENT, SECRET, FakeIndex, a_token


async def served(valkey: Valkey) -> AsyncGenerator[httpx.AsyncClient]:
    async with LedgerAppender(ValkeyLedger(valkey)) as appender:
        routes = EventRoutes(FakeIndex, appender, TokenKeys(SECRET), ManualClock(NOW))
        protocol = make_protocol(HotRoutes(routes.routes()))
        config = uvicorn.Config(PlainApp({}), http=protocol, lifespan="off", log_config=None)
        config.load()
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: protocol(config=config, server_state=state, app_state={}),
            "127.0.0.1",
            0,
        )
        port: int = server.sockets[0].getsockname()[1]
        async with server, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            yield client


@pytest.fixture
async def client(valkey: Valkey) -> AsyncGenerator[httpx.AsyncClient]:
    async for one in served(valkey):
        yield one


@pytest.fixture
async def client_without_ledger() -> AsyncGenerator[httpx.AsyncClient]:
    async with open_valkey(f"redis://127.0.0.1:{free_port()}/0") as nobody:
        async for one in served(nobody):
            yield one


def a_report(**fields: str) -> dict[str, str]:
    return {"correlationId": "one", "bannerId": str(BANNER), "placementId": str(PLACEMENT), **fields}


async def test_many_events_at_once_are_all_accepted_and_in_the_ledger(
    client: httpx.AsyncClient, valkey: Valkey
) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                client.post("/banners/events/impression", json=a_report(correlationId=f"{number}"))
            )
            for number in range(200)
        ]

    assert {task.result().status_code for task in tasks} == {202}
    assert {task.result().content for task in tasks} == {b'{"accepted":true}'}
    assert await valkey.xlen(STREAM) == 200


async def test_the_pixel_and_the_link_answer_as_browsers_need_it(client: httpx.AsyncClient) -> None:
    token = a_token().decode()

    pixel = await client.get(f"/i/{token}")
    link = await client.get(f"/c/{token}")

    assert (pixel.status_code, pixel.headers["content-type"], len(pixel.content)) == (200, "image/gif", 43)
    assert pixel.headers["cache-control"] == "no-store"
    assert (link.status_code, link.headers["location"]) == (302, "https://shop.example/?utm_source=a")


async def test_refusals_are_problems_with_codes(client: httpx.AsyncClient) -> None:
    missing = await client.post("/banners/events/click", json={})
    unknown = await client.post("/banners/events/click", json=a_report(bannerId=str(NOBODY)))
    forged = await client.post("/banners/events/click", json=a_report(trackingToken="nonsense"))

    assert [answer.status_code for answer in (missing, unknown, forged)] == [400, 404, 403]
    assert [answer.json()["errorCode"] for answer in (missing, unknown, forged)] == [
        "VALIDATION_FAILED",
        "BANNER_NOT_FOUND",
        "TRACKING_TOKEN_INVALID",
    ]
    assert missing.json()["errors"][0]["field"] == "correlationId"


async def test_without_the_ledger_clients_are_told_to_come_back_and_readers_are_led_on(
    client_without_ledger: httpx.AsyncClient,
) -> None:
    refused = await client_without_ledger.post("/banners/events/impression", json=a_report())
    link = await client_without_ledger.get(f"/c/{a_token().decode()}")

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["errorCode"] == "UNAVAILABLE"
    assert link.status_code == 302
