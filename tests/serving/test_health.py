"""How a delivery process says that it is doing."""

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


async def said(health: DeliveryHealth) -> tuple[int, Mapping[str, Any]]:
    answer = await health.check_ready()
    return answer.status, json.loads(answer.body)


async def test_all_is_well_with_both_servers_and_an_index(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, clock: ManualClock
) -> None:
    clock.advance(timedelta(seconds=1.5))

    assert await said(DeliveryHealth(refresher, pool, valkey, clock)) == (
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


async def test_serving_goes_on_without_the_database(
    refresher: IndexRefresher, valkey: Valkey, clock: ManualClock
) -> None:
    async with open_pool(f"postgresql://nobody@127.0.0.1:{free_port()}/none", size_max=1) as away:
        status, body = await said(DeliveryHealth(refresher, away, valkey, clock))

    assert (status, body["checks"]["postgres"]) == (200, "unavailable")


async def test_without_the_ledger_no_event_can_be_taken(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock
) -> None:
    async with open_valkey(f"redis://127.0.0.1:{free_port()}") as away:
        status, body = await said(DeliveryHealth(refresher, pool, away, clock))

    assert (status, body["status"], body["checks"]["valkey"]) == (503, "unavailable", "unavailable")


@pytest.mark.parametrize("is_able", [True, False])
async def test_without_the_ledger_events_are_taken_while_the_spool_takes_them(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock, *, is_able: bool
) -> None:
    spool = FakeSpool(is_able=is_able, waiting_bytes=12)
    async with open_valkey(f"redis://127.0.0.1:{free_port()}") as away:
        status, body = await said(DeliveryHealth(refresher, pool, away, clock, spool=spool))

    word = "ok" if is_able else "unavailable"
    assert (status, body["status"]) == (200 if is_able else 503, word)
    assert body["checks"]["valkey"] == "unavailable"
    assert body["checks"]["spool"] == {"status": word, "waitingBytes": 12}


async def test_a_spool_that_takes_nothing_does_not_matter_while_the_ledger_is_there(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, clock: ManualClock
) -> None:
    spool = FakeSpool(is_able=False, waiting_bytes=0)

    status, body = await said(DeliveryHealth(refresher, pool, valkey, clock, spool=spool))

    assert (status, body["checks"]["spool"]["status"]) == (200, "unavailable")


async def test_a_ledger_that_hangs_is_given_up_soon(
    refresher: IndexRefresher, pool: Pool, clock: ManualClock
) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    spool = FakeSpool(is_able=True, waiting_bytes=0)
    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        async with (
            asyncio.timeout(2 * CHECK_SECONDS_MAX),
            open_valkey(f"redis://127.0.0.1:{port}") as hanging,
        ):
            status, body = await said(DeliveryHealth(refresher, pool, hanging, clock, spool=spool))

    assert (status, body["checks"]["valkey"]) == (200, "unavailable")


async def test_a_flood_of_questions_is_answered_by_one_look(
    refresher: IndexRefresher, pool: Pool, valkey: Valkey, redis_url: str, clock: ManualClock
) -> None:
    async with open_valkey(redis_url) as own:
        health = DeliveryHealth(refresher, pool, own, clock)
        before = (await valkey.info("stats"))["total_connections_received"]

        async with asyncio.TaskGroup() as group:
            for _ in range(200):
                group.create_task(health.check_ready())

        assert (await valkey.info("stats"))["total_connections_received"] == before + 1


async def test_what_was_seen_is_told_for_a_moment_only(
    refresher: IndexRefresher, pool: Pool, redis_url: str, clock: ManualClock
) -> None:
    async with open_valkey(redis_url) as own:
        health = DeliveryHealth(refresher, pool, own, clock)
        _, before = await said(health)
        clock.advance(FRESH_FOR + timedelta(milliseconds=1))
        _, after = await said(health)

    assert before["checks"]["index"]["ageSeconds"] < after["checks"]["index"]["ageSeconds"]
