"""The readiness check of a delivery process."""

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from adloom.core.clock import ManualClock
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.valkey import Valkey, open_valkey
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.health import DeliveryHealth
from tests.support.builders import NOON
from tests.support.eventually import eventually, measure_fastest


class FakeSpool(msgspec.Struct, frozen=True, kw_only=True):
    is_able: bool
    waiting_bytes: int
    has_disk: bool = True

    def can_write(self) -> bool:
        return self.has_disk


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
async def refresher(pool: Pool, valkey: Valkey, clock: ManualClock) -> IndexRefresher:
    refresher = IndexRefresher(pool, valkey, clock)
    await refresher.refresh()
    return refresher


async def check_ready(health: DeliveryHealth) -> tuple[int, Mapping[str, Any]]:
    await health.postgres.check()
    await health.valkey.check()
    await health.disk.check()
    return await read(health)


async def read(health: DeliveryHealth) -> tuple[int, Mapping[str, Any]]:
    answer = await health.check_ready()
    return answer.status, json.loads(answer.body)


async def test_a_process_with_both_servers_and_an_index_is_ready(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, clock: ManualClock
) -> None:
    clock.advance(timedelta(seconds=1.5))

    status, body = await check_ready(DeliveryHealth(refresher, pool, valkey, clock))

    assert 0 <= body["ageSeconds"] < 60
    assert (status, {**body, "ageSeconds": 0}) == (
        200,
        {
            "status": "ok",
            "ageSeconds": 0,
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
    async with open_pool(f"postgresql://nobody@127.0.0.1:{find_port()}/none", size_max=1) as away:
        status, body = await check_ready(DeliveryHealth(refresher, away, valkey, clock))

    assert (status, body["checks"]["postgres"]) == (200, "unavailable")


async def test_a_process_without_valkey_and_spool_is_not_ready(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock
) -> None:
    async with open_valkey(f"redis://127.0.0.1:{find_port()}") as away:
        status, body = await check_ready(DeliveryHealth(refresher, pool, away, clock))

    assert (status, body["status"], body["checks"]["valkey"]) == (503, "unavailable", "unavailable")


@pytest.mark.parametrize("is_able", [True, False])
async def test_a_process_without_valkey_is_ready_while_the_spool_accepts_events(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock, *, is_able: bool
) -> None:
    spool = FakeSpool(is_able=is_able, waiting_bytes=12)
    async with open_valkey(f"redis://127.0.0.1:{find_port()}") as away:
        status, body = await check_ready(DeliveryHealth(refresher, pool, away, clock, spool=spool))

    word = "ok" if is_able else "unavailable"
    assert (status, body["status"]) == (200 if is_able else 503, word)
    assert body["checks"]["valkey"] == "unavailable"
    assert body["checks"]["spool"] == {"status": word, "waitingBytes": 12}


async def test_a_process_without_valkey_is_not_ready_when_the_disk_takes_no_writes(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock
) -> None:
    spool = FakeSpool(is_able=True, waiting_bytes=0, has_disk=False)
    async with open_valkey(f"redis://127.0.0.1:{find_port()}") as away:
        status, body = await check_ready(DeliveryHealth(refresher, pool, away, clock, spool=spool))

    assert (status, body["checks"]["spool"]["status"]) == (503, "unavailable")


async def test_a_process_with_valkey_is_ready_although_the_spool_accepts_nothing(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, clock: ManualClock
) -> None:
    spool = FakeSpool(is_able=False, waiting_bytes=0)

    status, body = await check_ready(DeliveryHealth(refresher, pool, valkey, clock, spool=spool))

    assert (status, body["checks"]["spool"]["status"]) == (200, "unavailable")


async def test_a_probe_does_not_wait_for_a_hanging_valkey(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock
) -> None:
    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    spool = FakeSpool(is_able=True, waiting_bytes=0)
    async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        async with open_valkey(f"redis://127.0.0.1:{port}") as hanging:
            health = DeliveryHealth(refresher, pool, hanging, clock, spool=spool)
            async with health.run():
                async with asyncio.timeout(30):
                    first_status, first = await read(health)
                await eventually(lambda: health.valkey.age_seconds is not None, seconds=30)
                assert await measure_fastest(lambda: read(health), seconds=0.2) < 0.2
                status, body = await read(health)

    # Before the first result nothing is known, and that is said.
    assert (first_status, first["checks"]["valkey"], first["ageSeconds"]) == (200, "unavailable", None)
    assert (status, body["checks"]["valkey"]) == (200, "unavailable")
    assert body["ageSeconds"] < 60


async def test_a_flood_of_probes_asks_no_server(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, redis_url: str, clock: ManualClock
) -> None:
    async with open_valkey(redis_url) as own:
        health = DeliveryHealth(refresher, pool, own, clock)
        await check_ready(health)
        before = (await valkey.info("stats"))["total_connections_received"]

        for _ in range(200):
            await read(health)

        assert (await valkey.info("stats"))["total_connections_received"] == before


async def test_a_server_that_comes_back_is_found_by_the_next_check(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, clock: ManualClock
) -> None:
    health = DeliveryHealth(refresher, pool, valkey, clock)

    before, _ = await read(health)
    async with health.run():
        await eventually(lambda: bool(health.valkey.result), seconds=30)
        after, _ = await read(health)

    assert (before, after) == (503, 200)
