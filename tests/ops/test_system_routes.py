"""The state of the installation over HTTP: processes, traffic, the event log, dead letters, settings."""

from datetime import timedelta

import pytest

from adloom.core.caller import Role
from adloom.events.log.stream import STREAM
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.runtime.telemetry.heartbeat import Reading, ShardReading
from adloom.runtime.valkey import Valkey
from tests.support.control import Client, ControlPlane, error_fields, problem
from tests.support.for_each import for_each
from tests.support.heartbeats import publish_heartbeat

PATH = "/admin/system"
ADMINS_ONLY = ("dead-letters", "settings")
OPERATORS_ONLY = ("processes", "traffic", "ledger")


async def add_dead_letter(valkey: Valkey) -> str:
    queue = DeadLetterQueue(valkey)
    await queue.add("event_tables", "1-0", b"no event", reason="It is no event.", tries=5, again=b"again")
    [letter] = await queue.list_after()
    return letter.id


async def test_every_process_is_listed_with_what_it_serves(admin: Client, valkey: Valkey) -> None:
    await publish_heartbeat(valkey, "worker", Reading())
    await publish_heartbeat(
        valkey, "delivery-1", Reading(requests=10, filled=9, index_version=3, p50_seconds=0.001)
    )

    answer = (await admin.get(f"{PATH}/processes")).json()

    assert [(one["process"], one["kind"], one["indexVersion"]) for one in answer["items"]] == [
        ("delivery-1", "delivery", 3),
        ("worker", "worker", None),
    ]
    assert answer["catalogVersion"] == 0


async def test_the_shards_of_a_worker_are_listed(admin: Client, valkey: Valkey) -> None:
    shards = ShardReading(held=(3, 5), lag={5: 12}, fenced_writes=1, moves=2, is_connected=True)
    await publish_heartbeat(valkey, "worker-1", Reading(shards=shards))
    await publish_heartbeat(valkey, "worker", Reading())

    items = (await admin.get(f"{PATH}/processes")).json()["items"]

    assert {one["process"]: one["shards"] for one in items} == {
        "worker": None,
        "worker-1": {
            "held": [3, 5],
            "lag": {"5": 12},
            "fencedWrites": 1,
            "moves": 2,
            "isConnected": True,
        },
    }


async def test_a_process_without_heartbeats_is_not_listed(
    control: ControlPlane, admin: Client, valkey: Valkey
) -> None:
    await publish_heartbeat(valkey, "worker", Reading())
    control.clock.advance(timedelta(seconds=10))

    assert (await admin.get(f"{PATH}/processes")).json()["items"] == []


async def test_traffic_is_that_of_all_delivery_processes(admin: Client, valkey: Valkey) -> None:
    await publish_heartbeat(
        valkey, "delivery-1", Reading(requests=10, filled=9, index_version=3, p99_seconds=0.002)
    )
    await publish_heartbeat(
        valkey, "delivery-2", Reading(requests=10, filled=5, index_version=3, p99_seconds=0.004)
    )
    await publish_heartbeat(valkey, "control", Reading(requests=500))

    answer = (await admin.get(f"{PATH}/traffic")).json()

    assert (answer["fill"], answer["p99Seconds"]) == (0.7, 0.004)
    assert len(answer["minutes"]) == 60
    assert answer["minutes"][-1] == {"beginsAt": "2026-11-15T12:00:00Z", "requests": 20, "filled": 14}


async def test_the_ledger_route_shows_the_lag_of_each_projection(admin: Client, valkey: Valkey) -> None:
    await valkey.xadd(STREAM, {"e": "x"})

    answer = (await admin.get(f"{PATH}/ledger")).json()

    assert (answer["entries"], answer["dead"]) == (1, 0)
    tables = next(one for one in answer["projections"] if one["name"] == "event_tables")
    assert (tables["behindEntries"], tables["owner"]) == (1, None)


async def test_a_dead_letter_can_be_shown_and_deleted(admin: Client, valkey: Valkey) -> None:
    letter_id = await add_dead_letter(valkey)

    listed = (await admin.get(f"{PATH}/dead-letters")).json()
    shown = (await admin.get(f"{PATH}/dead-letters/{letter_id}")).json()
    gone = await admin.delete(f"{PATH}/dead-letters/{letter_id}")

    assert ([one["id"] for one in listed["items"]], listed["totalCount"], listed["next"]) == (
        [letter_id],
        1,
        None,
    )
    assert (shown["reason"], shown["tries"]) == ("It is no event.", 5)
    assert "unreadable" in shown["event"]
    assert gone.status_code == 204
    problem(await admin.delete(f"{PATH}/dead-letters/{letter_id}"), 404, "DEAD_LETTER_NOT_FOUND")


async def test_a_dead_letter_can_be_retried(admin: Client, valkey: Valkey) -> None:
    letter_id = await add_dead_letter(valkey)

    answer = await admin.post(f"{PATH}/dead-letters/{letter_id}/retry")

    assert answer.status_code == 204
    assert await valkey.xlen(STREAM) == 1
    problem(await admin.get(f"{PATH}/dead-letters/{letter_id}"), 404, "DEAD_LETTER_NOT_FOUND")


@for_each("letter_id", ["x", "1", "1-", "-1", "1-x", "9" * 30 + "-0"])
async def test_an_invalid_dead_letter_id_is_refused(letter_id: str, admin: Client) -> None:
    answer = await admin.get(f"{PATH}/dead-letters/{letter_id}")

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"letterId"}


async def test_a_place_that_is_none_is_named_as_the_parameter(admin: Client) -> None:
    answer = await admin.get(f"{PATH}/dead-letters", params={"after": "x"})

    assert error_fields(problem(answer, 400, "VALIDATION_FAILED")) == {"after"}


async def test_the_settings_of_each_process_are_shown(admin: Client, valkey: Valkey) -> None:
    await publish_heartbeat(valkey, "worker", Reading(), port="3001")

    answer = (await admin.get(f"{PATH}/settings")).json()

    assert answer == {"items": [{"process": "worker", "settings": {"port": "3001"}}]}


@for_each("role", [Role.ADVERTISER, Role.PUBLISHER])
@for_each("path", [*ADMINS_ONLY, *OPERATORS_ONLY])
async def test_accounts_see_nothing_of_the_installation(path: str, role: Role, control: ControlPlane) -> None:
    async with control.acting_as(role) as client:
        problem(await client.get(f"{PATH}/{path}"), 403, "FORBIDDEN")


@pytest.mark.parametrize("path", ADMINS_ONLY)
async def test_a_viewer_sees_neither_dead_letters_nor_settings(path: str, control: ControlPlane) -> None:
    async with control.acting_as(Role.VIEWER) as viewer:
        problem(await viewer.get(f"{PATH}/{path}"), 403, "FORBIDDEN")
        assert (await viewer.get(f"{PATH}/traffic")).status_code == 200
