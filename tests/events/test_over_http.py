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
from adloom.runtime.valkey import Valkey
from tests.events.builders import BANNER, NOW, PLACEMENT, SECRET, UNKNOWN_ID, FakeIndex
from tests.support.hot_server import serving


@pytest.fixture
async def client(valkey: Valkey) -> AsyncGenerator[httpx.AsyncClient]:
    async with EventAppender(ValkeyEventLog(valkey)) as appender:
        routes = EventRoutes(FakeIndex, appender, TokenKeys(SECRET), ManualClock(NOW))
        async with serving(routes.list_routes()) as client:
            yield client


def a_report(**fields: str) -> dict[str, str]:
    return {"correlationId": "one", "bannerId": str(BANNER), "placementId": str(PLACEMENT), **fields}


async def count_events(valkey: Valkey) -> int:
    return len(await ValkeyEventLog(valkey).read(BEGINNING, count_max=100_000, wait_seconds=1))


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
