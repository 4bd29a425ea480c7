"""Heartbeats that processes publish over Valkey."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import cast

from adloom.core.clock import ManualClock
from adloom.runtime.settings import Telemetry, read_worker_settings
from adloom.runtime.telemetry.heartbeat import (
    FORGOTTEN_AFTER,
    GONE_AFTER,
    HOUR,
    MASK,
    MINUTE,
    PROCESSES,
    SETTINGS,
    HeartbeatPublisher,
    HeartbeatReader,
    Reading,
    mask_settings,
)
from adloom.runtime.valkey import Valkey
from tests.support.builders import NOON

SECRET = "a-secret-that-is-long-enough-for-this"


class Counter:
    """Requests that a process has served."""

    def __init__(self) -> None:
        self.requests = self.filled = 0

    def serve(self, requests: int, *, filled: int) -> None:
        self.requests += requests
        self.filled += filled

    def read(self) -> Reading:
        return Reading(requests=self.requests, filled=self.filled, index_version=7)


def a_publisher(
    valkey: Valkey, clock: ManualClock, counter: Counter, process: str = "delivery-1"
) -> HeartbeatPublisher:
    telemetry = Telemetry(
        process=process, log_level="info", log_format="json", metrics_port=None, otlp_endpoint=None
    )
    return HeartbeatPublisher(
        valkey, clock, telemetry=telemetry, settings={"port": "8080"}, read=counter.read, is_serving=True
    )


async def test_a_process_is_listed_while_it_sends_heartbeats(valkey: Valkey) -> None:
    clock, counter = ManualClock(NOON), Counter()
    reader = HeartbeatReader(valkey)
    await a_publisher(valkey, clock, counter).publish()

    [known] = await reader.list_processes(now=NOON)

    assert (known.process, known.kind, known.reading.index_version) == ("delivery-1", "delivery", 7)
    assert await reader.load_settings() == {known.id: {"port": "8080"}}
    assert await reader.list_processes(now=NOON + GONE_AFTER) == []


async def test_figures_that_do_not_change_are_written_every_fourth_second(valkey: Valkey) -> None:
    clock, counter = ManualClock(NOON), Counter()
    publisher, reader = a_publisher(valkey, clock, counter), HeartbeatReader(valkey)

    async def tell_after(seconds: float) -> float:
        """Return how old the heartbeat is after it may have been written again."""
        clock.advance(timedelta(seconds=seconds))
        await publisher.publish_if_due()
        [known] = await reader.list_processes(now=clock.now())
        return (clock.now() - known.told_at).total_seconds()

    assert [await tell_after(1) for _ in range(6)] == [0, 1, 2, 3, 0, 1]
    counter.serve(3, filled=2)
    assert await tell_after(1) == 0
    [minute] = await reader.load_traffic(MINUTE, count=1, now=clock.now())
    assert (minute.requests, minute.filled) == (3, 2)
    # Its rate is of the last ten heartbeats: it is told until it is 0 again.
    for _ in range(12):
        await tell_after(1)
    [known] = await reader.list_processes(now=clock.now())
    assert known.requests_per_second == 0
    [minute] = await reader.load_traffic(MINUTE, count=1, now=clock.now())
    assert minute.requests == 3


async def test_a_process_without_heartbeats_is_deleted_after_a_while(valkey: Valkey) -> None:
    await a_publisher(valkey, ManualClock(NOON), Counter()).publish()

    await HeartbeatReader(valkey).list_processes(now=NOON + FORGOTTEN_AFTER + timedelta(seconds=1))

    assert await valkey.hlen(PROCESSES) == 0  # pyright: ignore[reportGeneralTypeIssues]  the stubs know both kinds of client


async def test_what_others_have_written_there_hides_no_process(valkey: Valkey) -> None:
    await a_publisher(valkey, ManualClock(NOON), Counter()).publish()
    for table in (PROCESSES, SETTINGS):
        for name, text in ((b"broken", b"{"), (b"\xff", b"[]"), (b"old", b'{"port": 1}')):
            await valkey.hset(table, cast("str", name), cast("str", text))  # pyright: ignore[reportGeneralTypeIssues]  as above
    reader = HeartbeatReader(valkey)

    assert len(await reader.load_settings()) == 1
    assert len(await reader.list_processes(now=NOON)) == 1


async def test_a_stopping_process_removes_itself_from_the_list(valkey: Valkey) -> None:
    clock, stop = ManualClock(NOON), asyncio.Event()
    reader = HeartbeatReader(valkey)
    async with asyncio.TaskGroup() as group:
        group.create_task(a_publisher(valkey, clock, Counter()).run(stop))
        async with asyncio.timeout(60):
            while not await reader.list_processes(now=NOON):  # noqa: ASYNC110 - another task publishes it, over Valkey
                await asyncio.sleep(0.01)
        stop.set()

    assert await reader.list_processes(now=NOON) == []


async def test_the_traffic_of_all_processes_is_counted_by_minute_and_hour(valkey: Valkey) -> None:
    clock, one, other = ManualClock(NOON), Counter(), Counter()
    publishers = [a_publisher(valkey, clock, one), a_publisher(valkey, clock, other, "delivery-2")]
    for requests in (10, 5):
        one.serve(requests, filled=requests)
        other.serve(requests, filled=0)
        for publisher in publishers:
            await publisher.publish()
        clock.advance(timedelta(minutes=1))

    reader, now = HeartbeatReader(valkey), NOON + timedelta(minutes=1)
    minutes = await reader.load_traffic(MINUTE, count=3, now=now)
    [hour] = await reader.load_traffic(HOUR, count=1, now=now)

    assert [(minute.requests, minute.filled) for minute in minutes] == [(0, 0), (20, 10), (10, 5)]
    assert (hour.begins_at, hour.requests, hour.filled) == (NOON, 30, 15)


async def test_the_request_rate_is_that_of_the_last_seconds(valkey: Valkey) -> None:
    clock, counter = ManualClock(NOON), Counter()
    publisher = a_publisher(valkey, clock, counter)
    await publisher.publish()
    counter.serve(30, filled=30)
    clock.advance(timedelta(seconds=2))
    await publisher.publish()

    [known] = await HeartbeatReader(valkey).list_processes(now=clock.now())

    assert known.requests_per_second == 15


def test_settings_are_shown_without_their_secrets(tmp_path: Path) -> None:
    settings = read_worker_settings(
        {
            "DATABASE_URL": f"postgresql://adloom:{SECRET}@db/adloom",
            "REDIS_URL": f"redis://:{SECRET}@valkey/0",
            "ADLOOM_SECRET": SECRET,
            "ADLOOM_DATA_DIR": str(tmp_path),
        }
    )

    shown = mask_settings(settings)

    assert SECRET not in str(shown)
    assert (shown["services.database_url"], shown["sealing_secrets"]) == (MASK, MASK)
    assert (shown["schedule_sync_cron"], shown["meta_url"]) == ("* * * * *", "")
