"""The event routes over real sockets, with a real Valkey behind them."""

import asyncio
from collections.abc import AsyncGenerator

import httpx
import msgspec
import pytest

from adloom.core.clock import ManualClock
from adloom.events.ingest.api import EventRoutes
from adloom.events.ingest.token import TokenKeys
from adloom.events.log.append import EventAppender
from adloom.events.log.event import BEGINNING
from adloom.events.log.stream import ValkeyEventLog
from adloom.runtime.ports import find_port
from adloom.runtime.valkey import Valkey, open_valkey
from tests.events.builders import BANNER, NOW, PLACEMENT, SECRET, UNKNOWN_ID, FakeIndex, a_token
from tests.support.hot_server import serving


async def served(valkey: Valkey) -> AsyncGenerator[httpx.AsyncClient]:
    async with EventAppender(ValkeyEventLog(valkey)) as appender:
        routes = EventRoutes(FakeIndex, appender, TokenKeys(SECRET), ManualClock(NOW))
        async with serving(routes.list_routes()) as client:
            yield client


@pytest.fixture
async def client(valkey: Valkey) -> AsyncGenerator[httpx.AsyncClient]:
    async for one in served(valkey):
        yield one


@pytest.fixture
async def client_without_ledger() -> AsyncGenerator[httpx.AsyncClient]:
    async with open_valkey(f"redis://127.0.0.1:{find_port()}/0") as away:
        async for one in served(away):
            yield one


def a_report(**fields: str) -> dict[str, str]:
    return {"correlationId": "one", "bannerId": str(BANNER), "placementId": str(PLACEMENT), **fields}


async def count_events(valkey: Valkey) -> int:
    return len(await ValkeyEventLog(valkey).read(BEGINNING, count_max=100_000, wait_seconds=1))


async def test_many_concurrent_events_are_all_accepted_and_in_the_log(
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
    assert await count_events(valkey) == 200


async def test_the_pixel_and_the_link_have_the_headers_that_browsers_need(client: httpx.AsyncClient) -> None:
    token = a_token().decode()

    pixel = await client.get(f"/i/{token}")
    link = await client.get(f"/c/{token}")

    assert (pixel.status_code, pixel.headers["content-type"], len(pixel.content)) == (200, "image/gif", 43)
    assert pixel.headers["cache-control"] == "no-store"
    assert (link.status_code, link.headers["location"]) == (302, "https://shop.example/?utm_source=a")


async def test_rejections_are_problem_details_with_codes(client: httpx.AsyncClient) -> None:
    missing = await client.post("/banners/events/click", json={})
    unknown = await client.post("/banners/events/click", json=a_report(bannerId=str(UNKNOWN_ID)))
    forged = await client.post("/banners/events/click", json=a_report(trackingToken="nonsense"))

    assert [answer.status_code for answer in (missing, unknown, forged)] == [400, 404, 403]
    assert [answer.json()["errorCode"] for answer in (missing, unknown, forged)] == [
        "VALIDATION_FAILED",
        "BANNER_NOT_FOUND",
        "TRACKING_TOKEN_INVALID",
    ]
    assert missing.json()["errors"][0]["field"] == "correlationId"


def events(count: int) -> list[dict[str, str]]:
    return [a_report(type=("impression", "click")[n % 2], correlationId=f"{n}") for n in range(count)]


async def test_concurrent_batches_are_all_in_the_log_and_report_their_bad_events(
    client: httpx.AsyncClient, valkey: Valkey
) -> None:
    batch = [*events(499), a_report(type="impression", bannerId=str(UNKNOWN_ID))]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(client.post("/banners/events/batch", json={"events": batch})) for _ in range(8)
        ]

    outcomes = [task.result() for task in tasks]
    assert {outcome.status_code for outcome in outcomes} == {202}
    assert outcomes[0].headers["content-type"] == "application/json"
    assert all(
        outcome.json()
        == {
            "accepted": 499,
            "rejected": [
                {
                    "index": 499,
                    "errorCode": "BANNER_NOT_FOUND",
                    "message": f"There is no banner {UNKNOWN_ID}.",
                }
            ],
        }
        for outcome in outcomes
    )
    assert await count_events(valkey) == 8 * 499


async def test_a_batch_may_have_more_bytes_than_a_single_event_and_a_bound_of_its_own(
    client: httpx.AsyncClient, valkey: Valkey
) -> None:
    large = [{**event, "pageUrl": "https://pub.example/" + "a" * 1_800} for event in events(500)]
    path, kind = "/banners/events/batch", {"content-type": "application/json"}

    taken = await client.post(path, json={"events": large})
    too_large = await client.post(path, content=b" " * (1024 * 1024 + 1), headers=kind)
    single = await client.post("/banners/events/impression", content=b" " * (64 * 1024 + 1), headers=kind)

    assert (taken.status_code, taken.json()) == (202, {"accepted": 500, "rejected": []})
    assert [(one.status_code, one.json()["errorCode"]) for one in (too_large, single)] == [
        (413, "BODY_TOO_LARGE")
    ] * 2
    assert await count_events(valkey) == 500


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        b"[]",
        b"{}",
        b'{"events":7}',
        b'{"events":[' + b"{}," * 9_999 + b"{}]}",
        b'{"events":[' + b"[" * 400_000 + b"]" * 400_000 + b"]}",
        b'{"events":[],"events":' + b'{"a":' * 100_000,
    ],
)
async def test_a_hostile_batch_is_rejected_and_the_connection_stays_open(
    client: httpx.AsyncClient, body: bytes
) -> None:
    refused = await client.post("/banners/events/batch", content=body)
    good = await client.post("/banners/events/batch", content=msgspec.json.encode({"events": events(1)}))

    assert (refused.status_code, refused.json()["errorCode"]) == (400, "VALIDATION_FAILED")
    assert good.status_code == 202


async def test_a_batch_gets_503_with_retry_after_while_the_log_is_away(
    client_without_ledger: httpx.AsyncClient,
) -> None:
    for count in (1, 500):
        refused = await client_without_ledger.post("/banners/events/batch", json={"events": events(count)})

        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


async def test_clients_get_503_and_visitors_are_redirected_while_the_log_is_away(
    client_without_ledger: httpx.AsyncClient,
) -> None:
    refused = await client_without_ledger.post("/banners/events/impression", json=a_report())
    link = await client_without_ledger.get(f"/c/{a_token().decode()}")

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json()["errorCode"] == "UNAVAILABLE"
    assert link.status_code == 302
