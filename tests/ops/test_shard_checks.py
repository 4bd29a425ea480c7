"""The doctor on workers that share the budget actors."""

from collections.abc import Sequence

from adloom.ops.checks.finding import FindingState
from adloom.ops.checks.processes import judge_shards, name_longest
from adloom.runtime.telemetry.heartbeat import ProcessHeartbeat, Reading, ShardReading
from tests.support.builders import NOON


def a_worker(
    name: str, held: Sequence[int] | None, *, waiting: int = 0, is_connected: bool = True
) -> ProcessHeartbeat:
    shards = None
    if held is not None:
        lag = {held[0]: waiting} if waiting else {}
        shards = ShardReading(held=tuple(held), lag=lag, fenced_writes=2, moves=3, is_connected=is_connected)
    return ProcessHeartbeat(
        process=name,
        kind="worker",
        host="here",
        pid=1,
        version="1",
        started_at=NOON,
        told_at=NOON,
        requests_per_second=0,
        reading=Reading(shards=shards),
    )


def test_workers_that_share_nothing_are_not_judged() -> None:
    assert judge_shards([a_worker("worker", None)]) == []


def test_shares_waiting_messages_and_refused_writes_are_told() -> None:
    [found] = judge_shards([a_worker("worker-1", range(60), waiting=7), a_worker("worker-2", range(60, 100))])

    assert found.state is FindingState.OK
    assert found.detail == (
        "worker-1 60, worker-2 40; 7 messages wait (shard 0: 7), 4 late writes were refused, 6 moves"
    )


def test_shards_without_a_worker_are_a_warning() -> None:
    [found] = judge_shards([a_worker("worker-1", range(90))])

    assert found.state is FindingState.WARN
    assert found.detail.startswith("10 of 100 have no worker")
    assert "--roles entity" in found.remedy


def test_a_worker_without_nats_is_a_failure() -> None:
    [found] = judge_shards([a_worker("worker-1", range(100), is_connected=False)])

    assert found.state is FindingState.FAIL
    assert "ADLOOM_NATS_URL" in found.remedy


def test_the_shards_where_most_wait_are_named() -> None:
    assert name_longest({}) == name_longest({4: 0}) == ""
    assert name_longest({"12": 40, "7": 1_080, "3": 40, "9": 1}) == " (shard 7: 1,080, 3: 40, 12: 40)"


def test_many_waiting_messages_need_more_workers() -> None:
    [some] = judge_shards([a_worker("worker-1", range(100), waiting=5_000)])
    [many] = judge_shards([a_worker("worker-1", range(100), waiting=500_000)])

    assert (some.state, many.state) == (FindingState.WARN, FindingState.FAIL)
    assert "more workers" in some.remedy
