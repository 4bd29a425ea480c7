"""The readiness check of a delivery process."""

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from adloom.core.clock import ManualClock
from adloom.runtime.ports import free_port
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.valkey import Valkey, open_valkey
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.health import CHECK_SECONDS_MAX, FRESH_FOR, DeliveryHealth
from tests.support.builders import NOON


class FakeSpool(msgspec.Struct, frozen=True, kw_only=True):
    is_able: bool
    waiting_bytes: int


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
async def refresher(pool: Pool, valkey: Valkey, clock: ManualClock) -> IndexRefresher:
    refresher = IndexRefresher(pool, valkey, clock)
    await refresher.refresh()
    return refresher


async def check_ready(health: DeliveryHealth) -> tuple[int, Mapping[str, Any]]:
    answer = await health.check_ready()
    return answer.status, json.loads(answer.body)


async def test_a_process_with_both_servers_and_an_index_is_ready(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, clock: ManualClock
) -> None:
    clock.advance(timedelta(seconds=1.5))

    assert await check_ready(DeliveryHealth(refresher, pool, valkey, clock)) == (
        200,
        {
            "status": "ok",
            "checks": {
                "postgres": "ok",
                "valkey": "ok",
                "index": {"status": "ok", "version": 0, "ageSeconds": 1.5},
                "spool": {"status": "off", "waitingBytes": 0},
            },
        },
    )


async def test_a_process_without_the_database_is_ready(
    refresher: IndexRefresher, valkey: Valkey, clock: ManualClock
) -> None:
    async with open_pool(f"postgresql://nobody@127.0.0.1:{free_port()}/none", size_max=1) as away:
        status, body = await check_ready(DeliveryHealth(refresher, away, valkey, clock))

    assert (status, body["checks"]["postgres"]) == (200, "unavailable")


async def test_a_process_without_valkey_and_spool_is_not_ready(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock
) -> None:
    async with open_valkey(f"redis://127.0.0.1:{free_port()}") as away:
        status, body = await check_ready(DeliveryHealth(refresher, pool, away, clock))

    assert (status, body["status"], body["checks"]["valkey"]) == (503, "unavailable", "unavailable")


@pytest.mark.parametrize("is_able", [True, False])
async def test_a_process_without_valkey_is_ready_while_the_spool_accepts_events(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock, *, is_able: bool
) -> None:
    spool = FakeSpool(is_able=is_able, waiting_bytes=12)
    async with open_valkey(f"redis://127.0.0.1:{free_port()}") as away:
        status, body = await check_ready(DeliveryHealth(refresher, pool, away, clock, spool=spool))

    word = "ok" if is_able else "unavailable"
    assert (status, body["status"]) == (200 if is_able else 503, word)
    assert body["checks"]["valkey"] == "unavailable"
    assert body["checks"]["spool"] == {"status": word, "waitingBytes": 12}


async def test_a_process_with_valkey_is_ready_although_the_spool_accepts_nothing(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, clock: ManualClock
) -> None:
    spool = FakeSpool(is_able=False, waiting_bytes=0)

    status, body = await check_ready(DeliveryHealth(refresher, pool, valkey, clock, spool=spool))

    assert (status, body["checks"]["spool"]["status"]) == (200, "unavailable")


async def test_a_check_of_a_hanging_valkey_times_out(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock
) -> None:
    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    spool = FakeSpool(is_able=True, waiting_bytes=0)
    async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        async with (
            asyncio.timeout(2 * CHECK_SECONDS_MAX),
            open_valkey(f"redis://127.0.0.1:{port}") as hanging,
        ):
            status, body = await check_ready(DeliveryHealth(refresher, pool, hanging, clock, spool=spool))

    assert (status, body["checks"]["valkey"]) == (200, "unavailable")


async def test_concurrent_checks_share_one_connection(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, redis_url: str, clock: ManualClock
) -> None:
    async with open_valkey(redis_url) as own:
        health = DeliveryHealth(refresher, pool, own, clock)
        before = (await valkey.info("stats"))["total_connections_received"]

        async with asyncio.TaskGroup() as group:
            for _ in range(200):
                group.create_task(health.check_ready())

        assert (await valkey.info("stats"))["total_connections_received"] == before + 1


async def test_a_cached_check_expires(
    refresher: IndexRefresher, pool: Pool, redis_url: str, clock: ManualClock
) -> None:
    async with open_valkey(redis_url) as own:
        health = DeliveryHealth(refresher, pool, own, clock)
        _, before = await check_ready(health)
        clock.advance(FRESH_FOR + timedelta(milliseconds=1))
        _, after = await check_ready(health)

    assert before["checks"]["index"]["ageSeconds"] < after["checks"]["index"]["ageSeconds"]
