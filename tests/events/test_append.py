"""Group commit: durable before the answer, bounded, quiet when idle."""

import asyncio
import contextlib
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from adloom.core.errors import UnavailableError
from adloom.events.auction_log.side_stream import SIDE_STREAM, AuctionSideStream, pack_pair
from adloom.events.log.append import EventAppender
from adloom.events.log.event import BEGINNING
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.http.fast.fast_routes import FastAnswer
from adloom.runtime.ports import find_port
from adloom.runtime.valkey import Valkey, open_valkey
from simulation.loop import run as run_on_virtual_time


class HeldStore:
    """Keeps batches, and acknowledges one when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.release = asyncio.Semaphore(0)
        self.error: Exception | None = None

    async def append(self, entries: Sequence[bytes]) -> None:
        self.batches.append(list(entries))
        await self.release.acquire()
        if self.error is not None:
            raise self.error


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_events_of_one_event_loop_iteration_are_one_batch() -> None:
    store = HeldStore()
    async with EventAppender(store) as appender:
        first = [appender.append(b"a", 1), appender.append(b"b", 2)]
        await settle()
        second = [appender.append(b"c", 3), appender.append(b"d", 4)]
        await settle()
        assert store.batches == [[b"a", b"b"]]
        assert not any(future.done() for future in first + second)

        store.release.release()
        await settle()

        assert [future.result() for future in first] == [1, 2]
        assert not any(future.done() for future in second)
        store.release.release()
        assert [await future for future in second] == [3, 4]
    assert store.batches == [[b"a", b"b"], [b"c", b"d"]]
    assert (appender.appended, appender.failed, appender.batches) == (4, 0, 2)


async def test_a_batch_has_a_maximum_size() -> None:
    store = HeldStore()
    async with EventAppender(store, batch_max=3) as appender:
        futures = [appender.append(b"%d" % number, None) for number in range(7)]
        for _ in range(3):
            store.release.release()
        await asyncio.wait(futures)

    assert [len(batch) for batch in store.batches] == [3, 3, 1]


class TimedStore:
    """Takes so long for a batch, and notes its size."""

    def __init__(self, seconds: float) -> None:
        self.sizes: list[int] = []
        self._seconds = seconds

    async def append(self, entries: Sequence[bytes]) -> None:
        self.sizes.append(len(entries))
        if self._seconds:
            await asyncio.sleep(self._seconds)


@pytest.mark.parametrize(
    ("seconds_apart", "seconds_stored", "batch_mean", "waits_max"),
    [
        (0.01, 0.0, 1, 0.0),
        (0.001, 0.0, 2, 0.002),
        (0.0005, 0.0, 28, 0.014),
        (0.0002, 0.0, 64, 0.014),
        (0.0002, 0.004, 79, 0.022),
        (0.00005, 0.0, 86, 0.0048),
    ],
)
def test_events_that_come_fast_are_appended_in_larger_batches(
    seconds_apart: float, seconds_stored: float, batch_mean: float, waits_max: float
) -> None:
    store, waits = TimedStore(seconds_stored), list[float]()

    async def send_events() -> None:
        now = asyncio.get_running_loop().time
        async with EventAppender(store) as appender:
            for _ in range(1_000):
                sent_at = now()
                appender.append(b"a", None).add_done_callback(
                    lambda _, sent_at=sent_at: waits.append(now() - sent_at)
                )
                await asyncio.sleep(seconds_apart)

    run_on_virtual_time(7, send_events())

    assert sum(store.sizes) / len(store.sizes) == pytest.approx(batch_mean, rel=0.1)
    assert max(waits) == pytest.approx(waits_max, abs=0.0002)


@pytest.mark.parametrize("seconds_stored", [0.0, 0.004])
@pytest.mark.parametrize("clients", [4, 7, 12, 32, 40])
def test_clients_that_wait_for_their_answers_are_not_waited_for_long(
    clients: int, seconds_stored: float
) -> None:
    rounds, store = 100, TimedStore(seconds_stored)

    async def send_in_turns() -> float:
        began_at = asyncio.get_running_loop().time()
        async with EventAppender(store) as appender:

            async def send() -> None:
                for _ in range(rounds):
                    await appender.append(b"a", None)

            await asyncio.gather(*(send() for _ in range(clients)))
        return asyncio.get_running_loop().time() - began_at

    seconds = run_on_virtual_time(7, send_in_turns())

    assert seconds / rounds < seconds_stored + 0.0005


@pytest.mark.parametrize("error", [UnavailableError("away"), ValueError("a bug")])
async def test_unacknowledged_events_fail_and_later_events_succeed(
    error: Exception,
) -> None:
    store = HeldStore()
    async with EventAppender(store) as appender:
        store.error = error
        future = appender.append(b"a", None)
        store.release.release()
        with pytest.raises(UnavailableError):
            await future

        store.error = None
        store.release.release()
        await appender.append(b"b", None)
    assert (appender.appended, appender.failed) == (1, 1)


async def test_a_request_is_answered_when_its_event_is_durable_whatever_is_wrong_with_others() -> None:
    def break_down(*_answered: object) -> None:
        raise ValueError("a connection with a bug")

    accepted = FastAnswer(b"HTTP/1.1 202 Accepted\r\n")
    store = HeldStore()
    async with EventAppender(store) as appender:
        broken, answers = appender.append_for(b"a", accepted), list[FastAnswer]()
        broken.add_callback(break_down)
        appender.append_for(b"b", accepted).add_callback(lambda _, answer: answers.append(answer))
        await settle()
        assert store.batches == [[b"a", b"b"]]
        assert not answers
        store.release.release()
        await settle()
        assert answers == [accepted]

        store.error = UnavailableError("away")
        failing = appender.append_for(b"c", accepted)
        failing.add_callback(lambda _, answer: answers.append(answer))
        store.release.release()
        with pytest.raises(UnavailableError, match="does not answer"):
            await failing
    assert answers[1].head.startswith(b"HTTP/1.1 503 ")
    assert await broken == accepted


class HangingStore:
    """Hangs at events; one of them takes the cancellation, as a driver whose connection is just breaking may."""

    async def append(self, entries: Sequence[bytes]) -> None:
        if entries[0] == b"hangs":
            await asyncio.sleep(60)
        elif entries[0] == b"hangs on":
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)


async def test_an_append_to_a_log_that_hangs_times_out() -> None:
    async with EventAppender(HeldStore(), append_seconds_max=0.01) as appender:
        for _ in range(2):
            with pytest.raises(UnavailableError):
                await appender.append(b"a", None)


async def test_events_are_appended_after_a_time_out_whose_cancellation_was_lost() -> None:
    async with EventAppender(HangingStore(), append_seconds_max=0.01) as appender:
        for event in (b"hangs on", b"hangs"):
            await asyncio.gather(appender.append(event, None), return_exceptions=True)
            assert await asyncio.wait_for(appender.append(b"a", 1), 1) == 1


async def test_an_event_beyond_the_pending_limit_is_refused_immediately() -> None:
    store = HeldStore()
    async with EventAppender(store, pending_max=2) as appender:
        futures = [appender.append(b"a", None)]
        await settle()
        futures += [appender.append(b"b", None), appender.append(b"c", None)]

        with pytest.raises(UnavailableError) as refused:
            appender.append(b"d", None)

        assert refused.value.retry_after_seconds >= 1
        assert appender.refused == 1
        store.release.release()
        store.release.release()
        await asyncio.wait(futures)


async def test_the_events_of_one_request_are_answered_when_all_of_them_are_durable() -> None:
    store = HeldStore()
    async with EventAppender(store, batch_max=3) as appender:
        together = appender.append_all([b"%d" % number for number in range(5)], "all")
        for _ in range(2):
            await settle()
            assert not together.done()
            store.release.release()

        assert await together == "all"
    assert store.batches == [[b"0", b"1", b"2"], [b"3", b"4"]]
    assert (appender.appended, appender.failed) == (5, 0)


@pytest.mark.parametrize("failing", [0, 1])
async def test_the_events_of_one_request_fail_when_one_of_them_does(failing: int) -> None:
    store = HeldStore()
    async with EventAppender(store, batch_max=2) as appender:
        together = appender.append_all([b"a", b"b", b"c"], None)
        for number in range(2):
            await settle()
            store.error = UnavailableError("away") if number == failing else None
            store.release.release()

        with pytest.raises(UnavailableError):
            await together


async def test_the_events_of_one_request_are_refused_together() -> None:
    store = HeldStore()
    async with EventAppender(store, pending_max=3) as appender:
        one = appender.append(b"a", None)

        with pytest.raises(UnavailableError):
            appender.append_all([b"b", b"c", b"d"], None)

        assert (appender.refused, appender.pending) == (3, 1)
        two = appender.append_all([b"b", b"c"], None)
        store.release.release()
        await asyncio.wait([one, two])


async def test_a_request_without_events_is_done_immediately() -> None:
    async with EventAppender(HeldStore()) as appender:
        assert appender.append_all([], "none").result() == "none"


async def test_an_event_that_no_request_waits_for_is_appended_in_order_or_dropped() -> None:
    store = HeldStore()
    async with EventAppender(store, pending_max=2) as appender:
        assert appender.enqueue(b"a")
        future = appender.append(b"b", None)
        assert not appender.enqueue(b"c")
        store.release.release()
        await future

        store.error = UnavailableError("away")
        assert appender.enqueue(b"d")
        store.release.release()
        await settle()

    assert store.batches == [[b"a", b"b"], [b"d"]]
    assert (appender.appended, appender.dropped, appender.refused, appender.failed) == (2, 1, 0, 1)


async def test_a_client_that_went_away_does_not_disturb_its_batch() -> None:
    store = HeldStore()
    async with EventAppender(store) as appender:
        gone, there = appender.append(b"a", None), appender.append(b"b", None)
        await settle()
        gone.cancel()
        store.release.release()
        await there


async def test_closing_appends_pending_events_and_refuses_later_ones() -> None:
    store = HeldStore()
    for _ in range(2):
        store.release.release()
    async with EventAppender(store, batch_max=1) as appender:
        futures = [appender.append(b"a", None), appender.append(b"b", None)]

    assert store.batches == [[b"a"], [b"b"]]
    assert all(future.done() and future.exception() is None for future in futures)
    with pytest.raises(UnavailableError):
        appender.append(b"c", None)


async def test_the_log_has_the_entry_when_the_future_is_done(valkey: Valkey) -> None:
    async with EventAppender(ValkeyEventLog(valkey)) as appender:
        futures = [appender.append(b"%d" % number, None) for number in range(1200)]
        await asyncio.wait(futures)

        entries = await ValkeyEventLog(valkey).read(BEGINNING, count_max=2000, wait_seconds=1)

    assert [entry.data for entry in entries] == [b"%d" % number for number in range(1200)]
    assert all(future.exception() is None for future in futures)


async def test_a_valkey_that_was_restarted_is_used_again(valkey: Valkey) -> None:
    async with EventAppender(ValkeyEventLog(valkey)) as appender:
        await appender.append(b"a", None)
        await valkey.connection_pool.disconnect()  # A new server does not know the connection.

        await appender.append(b"b", None)

    assert await valkey.xlen(STREAM) == 2


async def test_a_connection_of_its_own_outlives_a_restart(valkey: Valkey) -> None:
    async with aclosing(DedicatedConnection(valkey)) as line:
        log, auctions = ValkeyEventLog(valkey, line), AuctionSideStream(valkey, line)
        for _ in range(2):
            await valkey.script_flush()
            await valkey.client_kill_filter(_type="normal")
            await log.append([b"a", b"b"])
            await log.append([b"%d" % number for number in range(12)])
            await auctions.append([pack_pair(b"c", b"an auction")])

    assert await valkey.xlen(STREAM) == 8
    assert await valkey.xlen(SIDE_STREAM) == 2


async def test_an_append_without_valkey_raises_unavailable() -> None:
    unused_url = f"redis://127.0.0.1:{find_port()}/0"
    async with open_valkey(unused_url) as gone, EventAppender(ValkeyEventLog(gone)) as appender:
        with pytest.raises(UnavailableError):
            await appender.append(b"a", None)


async def test_events_beyond_a_bound_of_bytes_are_refused_until_some_are_stored() -> None:
    store = HeldStore()
    async with EventAppender(store, pending_bytes_max=10) as appender:
        first = appender.append(b"12345678", None)
        await settle()
        waiting = appender.append_all([b"1234", b"5678"], None)

        with pytest.raises(UnavailableError):
            appender.append(b"123", None)
        assert not appender.enqueue(b"123")
        assert appender.pending_bytes == 8
        assert appender.enqueue(b"12")

        store.release.release()
        store.release.release()
        await asyncio.gather(first, waiting)
        assert appender.pending_bytes == 0
        store.release.release()
        await appender.append(b"1234567890", None)
    assert (appender.refused, appender.dropped) == (1, 1)
