"""The appender and its spool: events are accepted while the log is away, and only the first ones wait for it."""

import asyncio
from collections.abc import Sequence

import pytest

from adloom.core.errors import UnavailableError
from adloom.core.ids import SystemIds
from adloom.events.log.append import EventAppender
from adloom.events.log.spool.drain import TAKEN_SECONDS_MAX, DiskSpool, SpoolLimits
from tests.support.eventually import eventually, measure_fastest
from tests.support.fake_disk import DiskImage, FakeDisk, Fault

SOON = 60.0


class FakeLedger:
    """Accepts everything, refuses everything, or hangs."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.is_away = False
        self.is_hanging = False
        self.tries = 0
        self.seconds = 0.0

    async def append(self, entries: Sequence[bytes]) -> None:
        self.tries += 1
        if self.is_hanging:
            await asyncio.sleep(60)
        if self.is_away:
            raise UnavailableError("away")
        await asyncio.sleep(self.seconds)
        self.entries += entries


@pytest.fixture
def ledger() -> FakeLedger:
    return FakeLedger()


@pytest.fixture
def image() -> DiskImage:
    return DiskImage()


def a_spool(
    image: DiskImage, ledger: FakeLedger, *, process: str = "delivery-1", **limits: float
) -> tuple[DiskSpool, FakeDisk]:
    disk = FakeDisk(image)
    numbers = {"bytes_max": 100_000, "append_seconds_max": 0.1, "poll_seconds": 0.05} | limits
    bounds = SpoolLimits(
        bytes_max=int(numbers["bytes_max"]),
        segment_bytes_max=1_000,
        batch_max=int(numbers.get("batch_max", 500)),
        append_seconds_max=numbers["append_seconds_max"],
        poll_seconds=numbers["poll_seconds"],
    )
    return DiskSpool(disk, ledger, process=process, ids=SystemIds(), limits=bounds), disk


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


async def test_events_accepted_during_an_outage_are_drained_in_order_after_it(
    image: DiskImage, ledger: FakeLedger
) -> None:
    spool, _ = a_spool(image, ledger)
    async with spool, EventAppender(ledger, spool) as appender:
        await appender.append(b"before", None)
        ledger.is_away = True
        for entry in numbered(50):
            await appender.append(entry, None)
        assert (appender.appended, appender.spooled, spool.spooled) == (1, 50, 50)
        assert not spool.is_empty
        assert 0 < spool.find_logged_until(1e9) <= 1e9 - TAKEN_SECONDS_MAX

        ledger.is_away = False
        await eventually(lambda: spool.is_empty, seconds=SOON)
        assert spool.find_logged_until(1e9) == 1e9
        await appender.append(b"after", None)

    assert ledger.entries == [b"before", *numbered(50), b"after"]
    assert (appender.appended, spool.drained, appender.failed) == (2, 50, 0)
    assert image.files == {}


async def test_only_the_first_append_waits_for_a_log_that_hangs(image: DiskImage, ledger: FakeLedger) -> None:
    spool, _ = a_spool(image, ledger)
    async with spool, EventAppender(ledger, spool, append_seconds_max=0.5) as appender:
        ledger.is_hanging = True
        loop = asyncio.get_running_loop()

        started_at = loop.time()
        await appender.append(b"first", None)
        first_seconds = loop.time() - started_at

        async def append_twenty() -> None:
            for entry in numbered(20):
                await appender.append(entry, None)

        # On an idle machine they take 0.06 s: there are 2 ms between two appends.
        seconds = await measure_fastest(append_twenty, seconds=0.5)

    assert first_seconds >= 0.5
    assert seconds < 0.5


async def test_an_event_fails_when_log_and_spool_both_fail(image: DiskImage, ledger: FakeLedger) -> None:
    spool, disk = a_spool(image, ledger)
    async with spool, EventAppender(ledger, spool) as appender:
        ledger.is_away = True
        assert spool.is_able
        disk.plan(Fault.FAILS, after_steps=0)

        with pytest.raises(UnavailableError):
            await appender.append(b"lost", None)
        assert not spool.is_able

        await appender.append(b"kept", None)
        assert spool.is_able
        ledger.is_away = False
        await eventually(lambda: spool.is_empty, seconds=SOON)
    assert ledger.entries == [b"kept"]
    assert (appender.failed, spool.refused) == (1, 1)


async def test_a_full_spool_refuses_events(image: DiskImage, ledger: FakeLedger) -> None:
    spool, _ = a_spool(image, ledger, bytes_max=40)
    async with spool, EventAppender(ledger, spool) as appender:
        ledger.is_away = True
        await appender.append(bytes(32), None)

        with pytest.raises(UnavailableError):
            await appender.append(b"more", None)

        assert not spool.is_able


async def test_events_that_no_request_waits_for_may_use_half_of_the_spool(
    image: DiskImage, ledger: FakeLedger
) -> None:
    spool, _ = a_spool(image, ledger, bytes_max=100)
    async with spool, EventAppender(ledger, spool) as appender:
        ledger.is_away = True
        for _ in range(4):
            assert appender.enqueue(bytes(12))
            await asyncio.sleep(0)
            await appender.append(b"x", None)

    assert (appender.spooled, appender.dropped) == (6, 2)


async def test_a_steady_stream_returns_to_the_log_after_an_outage(
    image: DiskImage, ledger: FakeLedger
) -> None:
    ledger.seconds = 0.002
    spool, disk = a_spool(image, ledger)
    disk.pause = lambda: asyncio.sleep(0.001)
    async with spool, EventAppender(ledger, spool) as appender:
        numbers = iter(range(100_000))
        is_ending = False

        async def send() -> None:
            while not is_ending:
                await appender.append(b"%d" % next(numbers), None)

        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(send())
            ledger.is_away = True
            await eventually(lambda: appender.spooled > 500, seconds=SOON)
            ledger.is_away = False
            await eventually(lambda: spool.is_empty and appender.appended > 100, seconds=SOON)
            is_ending = True

    assert sorted(map(int, ledger.entries)) == list(range(next(numbers)))


async def test_appends_slow_down_until_the_log_has_caught_up(image: DiskImage, ledger: FakeLedger) -> None:
    ledger.seconds = 0.004
    spool, disk = a_spool(image, ledger, batch_max=20, bytes_max=100_000_000)
    disk.pause = lambda: asyncio.sleep(0.0005)
    async with spool, EventAppender(ledger, spool) as appender:
        is_ending = False

        async def send() -> None:
            while not is_ending:
                await appender.append(bytes(1000), None)

        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(send())
            ledger.is_away = True
            await eventually(lambda: appender.spooled > 300, seconds=SOON)
            ledger.is_away = False
            await eventually(lambda: appender.appended > 0, seconds=SOON)
            is_ending = True

    assert len(ledger.entries) == appender.appended + appender.spooled


async def test_a_restarted_process_drains_the_files_of_its_predecessor(
    image: DiskImage, ledger: FakeLedger
) -> None:
    ledger.is_away = True
    spool, _ = a_spool(image, ledger)
    async with spool, EventAppender(ledger, spool) as appender:
        for entry in numbered(20):
            await appender.append(entry, None)
    ledger.is_away = False

    successor, _ = a_spool(image, ledger)
    async with successor:
        await eventually(lambda: image.files == {}, seconds=SOON)

    assert ledger.entries == numbered(20)


async def test_files_of_another_process_are_adopted_by_a_later_scan(
    image: DiskImage, ledger: FakeLedger
) -> None:
    ledger.is_away = True
    spool, _ = a_spool(image, ledger, process="delivery-7")
    async with spool, EventAppender(ledger, spool) as appender:
        await appender.append(b"left", None)
    ledger.is_away = False

    successor, _ = a_spool(image, ledger, process="delivery-1")
    async with successor:
        assert successor.waiting_bytes == 0
        await eventually(lambda: image.files == {}, seconds=SOON)

    assert ledger.entries == [b"left"]


async def test_new_events_go_directly_to_the_log_while_old_files_are_drained(
    image: DiskImage, ledger: FakeLedger
) -> None:
    ledger.is_away = True
    spool, _ = a_spool(image, ledger)
    async with spool, EventAppender(ledger, spool) as appender:
        await appender.append_all(numbered(2000), None)
    ledger.is_away, ledger.seconds = False, 0.01

    successor, _ = a_spool(image, ledger)
    async with successor, EventAppender(ledger, successor) as appender:
        await appender.append(b"new", None)
        assert successor.waiting_bytes > 0
        assert successor.find_logged_until(1e9) == 0, "nobody knows since when they wait"
        await eventually(lambda: successor.waiting_bytes == 0, seconds=SOON)

    assert appender.spooled == 0


async def test_closing_spools_events_that_a_hanging_log_does_not_accept(
    image: DiskImage, ledger: FakeLedger
) -> None:
    ledger.is_hanging = True
    spool, _ = a_spool(image, ledger)
    async with spool:
        async with EventAppender(ledger, spool) as appender:
            futures = [appender.append(entry, None) for entry in numbered(1200)]
            await asyncio.sleep(0)
        assert all(future.done() and future.exception() is None for future in futures)
        assert (appender.spooled, appender.failed) == (1200, 0)

    ledger.is_hanging = False
    successor, _ = a_spool(image, ledger)
    async with successor:
        await eventually(lambda: image.files == {}, seconds=SOON)
    assert ledger.entries == numbered(1200)


async def test_a_process_starts_although_its_disk_cannot_be_listed(
    image: DiskImage, ledger: FakeLedger
) -> None:
    spool, disk = a_spool(image, ledger)
    disk.plan(Fault.FAILS, after_steps=0)

    async with spool, EventAppender(ledger, spool) as appender:
        await appender.append(b"a", None)

    assert ledger.entries == [b"a"]
