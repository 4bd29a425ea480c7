"""How a delivery process says that it is doing."""

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from adloom.core.clock import ManualClock
from adloom.delivery.health import FRESH_FOR, DeliveryHealth
from adloom.delivery.publish import IndexKeeper
from adloom.runtime.ports import free_port
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.valkey import Valkey, open_valkey
from tests.support.builders import NOON


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
async def keeper(pool: Pool, valkey: Valkey, clock: ManualClock) -> IndexKeeper:
    keeper = IndexKeeper(pool, valkey, clock)
    await keeper.refresh()
    return keeper


async def said(health: DeliveryHealth) -> tuple[int, Mapping[str, Any]]:
    answer = await health.ready()
    return answer.status, json.loads(answer.body)


async def test_all_is_well_with_both_servers_and_an_index(
    keeper: IndexKeeper, pool: Pool, valkey: Valkey, clock: ManualClock
) -> None:
    clock.advance(timedelta(seconds=1.5))

    assert await said(DeliveryHealth(keeper, pool, valkey, clock)) == (
        200,
        {
            "status": "ok",
            "checks": {
                "postgres": "ok",
                "valkey": "ok",
                "index": {"status": "ok", "version": 0, "ageSeconds": 1.5},
            },
        },
    )


async def test_serving_goes_on_without_the_database(
    keeper: IndexKeeper, valkey: Valkey, clock: ManualClock
) -> None:
    async with open_pool(f"postgresql://nobody@127.0.0.1:{free_port()}/none", size_max=1) as away:
        status, body = await said(DeliveryHealth(keeper, away, valkey, clock))

    assert (status, body["checks"]["postgres"]) == (200, "unavailable")


async def test_without_the_ledger_no_event_can_be_taken(
    keeper: IndexKeeper, pool: Pool, clock: ManualClock
) -> None:
    async with open_valkey(f"redis://127.0.0.1:{free_port()}") as away:
        status, body = await said(DeliveryHealth(keeper, pool, away, clock))

    assert (status, body["status"], body["checks"]["valkey"]) == (503, "unavailable", "unavailable")


async def test_a_flood_of_questions_is_answered_by_one_look(
    keeper: IndexKeeper, pool: Pool, valkey: Valkey, redis_url: str, clock: ManualClock
) -> None:
    async with open_valkey(redis_url) as own:
        health = DeliveryHealth(keeper, pool, own, clock)
        before = (await valkey.info("stats"))["total_connections_received"]

        async with asyncio.TaskGroup() as group:
            for _ in range(200):
                group.create_task(health.ready())

        assert (await valkey.info("stats"))["total_connections_received"] == before + 1


async def test_what_was_seen_is_told_for_a_moment_only(
    keeper: IndexKeeper, pool: Pool, redis_url: str, clock: ManualClock
) -> None:
    async with open_valkey(redis_url) as own:
        health = DeliveryHealth(keeper, pool, own, clock)
        _, before = await said(health)
        clock.advance(FRESH_FOR + timedelta(milliseconds=1))
        _, after = await said(health)

    assert before["checks"]["index"]["ageSeconds"] < after["checks"]["index"]["ageSeconds"]
