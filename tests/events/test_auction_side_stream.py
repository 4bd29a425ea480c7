"""Recorded auctions wait in a side stream until they are rows, and never displace reported events."""

from collections.abc import AsyncIterator, Sequence
from random import Random
from uuid import UUID

import pytest

from adloom.core.clock import ManualClock
from adloom.core.errors import UnavailableError
from adloom.events.auction_log.side_stream import (
    BATCH_MAX,
    SIDE_STREAM,
    AuctionAppender,
    AuctionSideStream,
    pack_pair,
)
from adloom.events.auction_log.store import BID_BYTES_AT_ONCE, ROWS_AT_ONCE, AuctionTables, split_pieces
from adloom.events.log.event import BEGINNING, LogEvent, Served, Unsold, decode_event, encode_event
from adloom.events.log.stream import STREAM, ValkeyEventLog
from adloom.events.ports import BatchResult, CursorMovedError, PoisonEntryError
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.events.builders import NOW, USER, a_bid, an_auction, an_impression
from tests.events.followed import Followed, a_served

pytestmark = pytest.mark.anyio

MEGABYTE = 2**20
LARGE = b"".join([a_bid()] * 256)


def numbered(number: int) -> UUID:
    return UUID(int=(0x0189 << 112) | (7 << 76) | (8 << 60) | number)


def a_pair(number: int = 1, *, bids: bytes = a_bid(), is_sold: bool = True) -> bytes:
    entry = a_served(request_id=numbered(number)) if is_sold else Unsold(held_at=NOW)
    auction = an_auction(numbered(number), bids=bids, **({} if is_sold else {"winner": None}))
    return pack_pair(encode_event(entry), encode_event(auction))


class SideStreamSystem:
    """A log, its side stream of auctions, and their projection."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.pool = pool
        self.valkey = valkey
        self.side_stream = AuctionSideStream(valkey)
        self.tables = AuctionTables(pool, self.side_stream, clock=ManualClock(NOW), kept_days=7)
        self.followed = Followed(pool, valkey)

    async def apply(self, *, count_max: int = 100_000) -> BatchResult:
        """Let the projection apply new entries."""
        after = await self.tables.read_cursor()
        records = (await self.followed.records(after))[:count_max]
        return await self.tables.commit(records, after=after, cursor=records[-1].entry_id)

    async def rows(self) -> set[UUID]:
        return {row["id"] for row in await self.pool.fetch("SELECT id FROM auction.auctions")}

    async def waiting(self) -> int:
        return await self.valkey.xlen(SIDE_STREAM)


@pytest.fixture
def system(pool: Pool, valkey: Valkey) -> SideStreamSystem:
    return SideStreamSystem(pool, valkey)


@pytest.fixture
async def small(valkey: Valkey) -> AsyncIterator[Valkey]:
    """A Valkey with 16 MB more memory than it uses."""
    used = int((await valkey.info("memory"))["used_memory"])
    await valkey.config_set("maxmemory", used + 16 * MEGABYTE)
    await valkey.config_set("maxmemory-policy", "noeviction")
    yield valkey
    await valkey.config_set("maxmemory", 0)


async def test_an_auction_becomes_a_row_and_leaves_the_side_stream(system: SideStreamSystem) -> None:
    await system.side_stream.append([a_pair(1), a_pair(2, is_sold=False)])

    assert await system.waiting() == 2
    assert await system.apply() == BatchResult(counted=2)
    assert await system.rows() == {numbered(1), numbered(2)}
    assert await system.waiting() == 0
    assert (system.side_stream.kept, system.side_stream.left_out) == (2, 0)


async def test_the_log_has_served_offers_and_no_bids(system: SideStreamSystem) -> None:
    await system.side_stream.append([a_pair(1, bids=LARGE), a_pair(2, bids=LARGE, is_sold=False)])

    records = await system.followed.records()

    assert [type(one.event) for one in records] == [Served, Unsold]
    assert max(len(encode_event(one.event)) for one in records) < 300


async def test_auctions_are_applied_in_the_order_of_the_log(system: SideStreamSystem) -> None:
    """So that a follower finds the auction of an impression that it reads."""
    await system.followed.append(an_impression("before"))
    await system.side_stream.append([a_pair(1)])
    await system.followed.append(an_impression("after"))

    assert await system.apply(count_max=2) == BatchResult(counted=1)
    assert await system.rows() == {numbered(1)}


async def test_an_auction_in_the_log_itself_is_still_applied(system: SideStreamSystem) -> None:
    """Older releases wrote auctions there."""
    await system.followed.append(an_auction(numbered(1)))
    await system.side_stream.append([a_pair(2)])

    assert await system.apply() == BatchResult(counted=2)
    assert await system.rows() == {numbered(1), numbered(2)}


async def test_a_full_side_stream_does_not_stop_the_log(system: SideStreamSystem) -> None:
    side_stream = AuctionSideStream(system.valkey, waiting_bytes_max=MEGABYTE)

    for number in range(10):
        await side_stream.append([a_pair(100 * number + one, bids=LARGE) for one in range(50)])

    assert await system.valkey.xlen(STREAM) == 500
    assert (await system.valkey.memory_usage(SIDE_STREAM, samples=0) or 0) < 2.5 * MEGABYTE
    assert 0 < side_stream.kept == await system.waiting() == 500 - side_stream.left_out
    # When they are rows, there is room again.
    assert (await system.apply()).counted == side_stream.kept
    await side_stream.append([a_pair(9_999)])
    assert await system.waiting() == 1


async def test_no_event_is_refused_because_the_side_stream_is_full(small: Valkey) -> None:
    """No worker applies them, and the log keeps its entries."""
    side_stream, ledger = AuctionSideStream(small), ValkeyEventLog(small)
    event = encode_event(an_impression(user_id=USER))  # Alone in its entry.

    for second in range(120):  # 120 MB for a Valkey of 16 MB.
        for _ in range(2):
            await side_stream.append([a_pair(second, bids=LARGE) for _ in range(35)])
        await ledger.append([event] * 50)

    memory = await small.info("memory")
    assert memory["used_memory"] < memory["maxmemory"] * 0.9
    assert side_stream.left_out > side_stream.kept > 0
    assert await small.xlen(STREAM) == 120 * (70 + 50)


async def test_only_applied_auctions_are_trimmed(system: SideStreamSystem) -> None:
    chance = Random(5)  # noqa: S311 - not a secret
    kept: set[UUID] = set()
    number = 0
    for _ in range(60):
        size = chance.randint(1, 130)
        pairs = [a_pair(number + one, is_sold=chance.random() < 0.7) for one in range(size)]
        kept |= {numbered(number + one) for one in range(size)}
        number += size
        await system.side_stream.append(pairs)
        if chance.random() < 0.5:
            await system.followed.append(an_impression(str(number)))
        if chance.random() < 0.6:
            await system.apply(count_max=chance.randint(1, 400))
        # An auction that is no longer in the side stream is a row.
        gone = len(kept) - await system.waiting()
        assert len(await system.rows()) >= gone
    while await system.tables.read_cursor() != (await system.followed.records())[-1].entry_id:
        await system.apply()

    assert await system.rows() == kept
    assert await system.waiting() == 0


async def test_a_late_worker_trims_nothing(system: SideStreamSystem) -> None:
    await system.side_stream.append([a_pair(1)])
    [record] = await system.followed.records()

    with pytest.raises(CursorMovedError):
        await system.tables.commit([record], after="1-1", cursor=record.entry_id)

    assert await system.waiting() == 1


async def test_auctions_left_by_a_killed_worker_are_trimmed_with_the_next(system: SideStreamSystem) -> None:
    """A worker that is killed between the two steps has written the rows and trimmed nothing."""
    await system.side_stream.append([a_pair(1)])
    [record] = await system.followed.records()
    without = AuctionTables(system.pool, clock=ManualClock(NOW), kept_days=7)
    await without.read_cursor()
    await without.commit([record], after=BEGINNING, cursor=record.entry_id)
    await system.side_stream.append([a_pair(2)])

    await system.apply()

    assert await system.waiting() == 0


async def test_an_entry_id_already_in_the_side_stream_does_not_stop_the_log(system: SideStreamSystem) -> None:
    """After the log was lost, its ids are used again, while the side stream still has the old ones."""
    await system.valkey.xadd(SIDE_STREAM, {"e": b"of another log"}, id="99999999999999-0")

    await system.side_stream.append([a_pair(1), a_pair(2)])

    assert len(await system.followed.records()) == 2
    assert (system.side_stream.kept, system.side_stream.left_out) == (0, 2)


async def test_an_unreadable_auction_is_a_poison_entry_and_later_ones_are_applied(
    system: SideStreamSystem,
) -> None:
    await system.side_stream.append([pack_pair(encode_event(a_served()), b"no auction")])
    [record] = await system.followed.records()
    after = await system.tables.read_cursor()

    with pytest.raises(PoisonEntryError):
        await system.tables.commit([record], after=after, cursor=record.entry_id)
    # The quarantine then commits without it.
    assert await system.tables.commit([], after=after, cursor=record.entry_id) == BatchResult()
    await system.side_stream.append([a_pair(2)])
    assert await system.apply() == BatchResult(counted=1)


def test_auctions_are_split_into_pieces_of_bounded_size() -> None:
    """The worker does nothing else while it builds the rows of one piece."""
    large = [an_auction(numbered(number), bids=LARGE) for number in range(150)]
    small = [an_auction(numbered(number)) for number in range(1_200)]

    pieces = list(split_pieces([*large, *small]))

    assert [one for piece in pieces for one in piece] == [*large, *small]
    assert max(map(len, pieces)) == ROWS_AT_ONCE
    assert max(sum(len(one.bids) for one in piece) for piece in pieces) <= BID_BYTES_AT_ONCE
    assert list(split_pieces([])) == []


class FakeSideStream:
    """Accepts pairs, or is away."""

    def __init__(self) -> None:
        self.is_away = False
        self.tries = 0
        self.kept: list[bytes] = []

    async def append(self, entries: Sequence[bytes]) -> None:
        self.tries += 1
        if self.is_away:
            raise UnavailableError("Valkey is away.")
        self.kept += entries


class FakeSpool:
    """Is empty, or has events."""

    has_room_to_spare = True

    def __init__(self, *, is_empty: bool) -> None:
        self.is_empty = self.is_idle = is_empty

    async def wait_for_drain(self) -> None:
        raise AssertionError("No test waits for it.")

    async def put(self, entries: Sequence[bytes]) -> None:
        raise AssertionError(entries)


async def test_auctions_go_into_the_side_stream() -> None:
    logged: list[bytes] = []
    side_stream = FakeSideStream()

    async with AuctionAppender(side_stream, logged.extend, FakeSpool(is_empty=True)) as appender:
        appender.enqueue_all([a_pair(1), a_pair(2)])

    assert (side_stream.kept, logged, appender.left_out) == ([a_pair(1), a_pair(2)], [], 0)


@pytest.mark.parametrize("is_empty", [True, False])
async def test_served_offers_go_to_the_log_while_valkey_is_away(*, is_empty: bool) -> None:
    logged: list[bytes] = []
    side_stream = FakeSideStream()
    side_stream.is_away = True

    async with AuctionAppender(side_stream, logged.extend, FakeSpool(is_empty=is_empty)) as appender:
        appender.enqueue_all([a_pair(1), a_pair(2, is_sold=False)])

    events: list[LogEvent] = [decode_event(one) for one in logged]
    assert [type(one) for one in events] == [Served]
    assert appender.left_out == 2
    # While events wait on the disk, Valkey is not tried.
    assert side_stream.tries == int(is_empty)


async def test_served_offers_beyond_the_queue_limit_go_to_the_log() -> None:
    logged: list[bytes] = []
    side_stream = FakeSideStream()

    async with AuctionAppender(side_stream, logged.extend, None) as appender:
        appender.enqueue_all([a_pair(number) for number in range(1_010)])

    assert (len(side_stream.kept), len(logged), appender.left_out) == (1_000, 10, 10)
    assert side_stream.tries == 1_000 // BATCH_MAX
