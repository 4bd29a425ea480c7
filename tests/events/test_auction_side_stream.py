"""Recorded auctions lie beside the ledger until they are rows, and never take the room of what readers report."""

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
from tests.events.builders import NOW, a_bid, an_auction, an_impression
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


class Hall:
    """A ledger with auctions beside it, and their projection."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self.pool = pool
        self.valkey = valkey
        self.beside = AuctionSideStream(valkey)
        self.tables = AuctionTables(pool, self.beside, clock=ManualClock(NOW), kept_days=7)
        self.followed = Followed(pool, valkey)

    async def apply(self, *, count_max: int = 100_000) -> BatchResult:
        """Have the projection fold what it has not."""
        after = await self.tables.read_cursor()
        records = (await self.followed.records(after))[:count_max]
        return await self.tables.commit(records, after=after, cursor=records[-1].entry_id)

    async def rows(self) -> set[UUID]:
        return {row["id"] for row in await self.pool.fetch("SELECT id FROM auction.auctions")}

    async def waiting(self) -> int:
        return await self.valkey.xlen(SIDE_STREAM)


@pytest.fixture
def hall(pool: Pool, valkey: Valkey) -> Hall:
    return Hall(pool, valkey)


@pytest.fixture
async def small(valkey: Valkey) -> AsyncIterator[Valkey]:
    """A Valkey with 16 MB for all that is in it."""
    used = int((await valkey.info("memory"))["used_memory"])
    await valkey.config_set("maxmemory", used + 16 * MEGABYTE)
    await valkey.config_set("maxmemory-policy", "noeviction")
    yield valkey
    await valkey.config_set("maxmemory", 0)


async def test_an_auction_becomes_a_row_and_goes(hall: Hall) -> None:
    await hall.beside.append([a_pair(1), a_pair(2, is_sold=False)])

    assert await hall.waiting() == 2
    assert await hall.apply() == BatchResult(counted=2)
    assert await hall.rows() == {numbered(1), numbered(2)}
    assert await hall.waiting() == 0
    assert (hall.beside.kept, hall.beside.left_out) == (2, 0)


async def test_the_log_has_what_was_served_and_no_bids(hall: Hall) -> None:
    await hall.beside.append([a_pair(1, bids=LARGE), a_pair(2, bids=LARGE, is_sold=False)])

    records = await hall.followed.records()

    assert [type(one.event) for one in records] == [Served, Unsold]
    assert max(len(encode_event(one.event)) for one in records) < 300


async def test_auctions_come_in_the_order_of_the_ledger(hall: Hall) -> None:
    """So that whoever follows finds the auction of an impression that it reads."""
    await hall.followed.append(an_impression("before"))
    await hall.beside.append([a_pair(1)])
    await hall.followed.append(an_impression("after"))

    assert await hall.apply(count_max=2) == BatchResult(counted=1)
    assert await hall.rows() == {numbered(1)}


async def test_an_auction_in_the_log_itself_is_still_applied(hall: Hall) -> None:
    """As releases before this one have left them there."""
    await hall.followed.append(an_auction(numbered(1)))
    await hall.beside.append([a_pair(2)])

    assert await hall.apply() == BatchResult(counted=2)
    assert await hall.rows() == {numbered(1), numbered(2)}


async def test_a_full_side_stream_takes_nothing_and_the_log_goes_on(hall: Hall) -> None:
    beside = AuctionSideStream(hall.valkey, waiting_bytes_max=MEGABYTE)

    for number in range(10):
        await beside.append([a_pair(100 * number + one, bids=LARGE) for one in range(50)])

    assert await hall.valkey.xlen(STREAM) == 500
    assert (await hall.valkey.memory_usage(SIDE_STREAM, samples=0) or 0) < 2.5 * MEGABYTE
    assert 0 < beside.kept == await hall.waiting() == 500 - beside.left_out
    # Once they are rows, there is room again.
    assert (await hall.apply()).counted == beside.kept
    await beside.append([a_pair(9_999)])
    assert await hall.waiting() == 1


async def test_recording_at_its_limit_never_has_an_event_refused(small: Valkey) -> None:
    """Whoever should fold them is away, and the ledger keeps its entries."""
    beside, ledger = AuctionSideStream(small), ValkeyEventLog(small)
    event = encode_event(an_impression())

    for second in range(120):  # As many megabytes, of 16.
        for _ in range(2):
            await beside.append([a_pair(second, bids=LARGE) for _ in range(35)])
        await ledger.append([event] * 50)

    memory = await small.info("memory")
    assert memory["used_memory"] < memory["maxmemory"] * 0.9
    assert beside.left_out > beside.kept > 0
    assert await small.xlen(STREAM) == 120 * (70 + 50)


async def test_only_applied_auctions_are_trimmed(hall: Hall) -> None:
    chance = Random(5)  # noqa: S311 - not a secret
    kept: set[UUID] = set()
    number = 0
    for _ in range(60):
        size = chance.randint(1, 130)
        pairs = [a_pair(number + one, is_sold=chance.random() < 0.7) for one in range(size)]
        kept |= {numbered(number + one) for one in range(size)}
        number += size
        await hall.beside.append(pairs)
        if chance.random() < 0.5:
            await hall.followed.append(an_impression(str(number)))
        if chance.random() < 0.6:
            await hall.apply(count_max=chance.randint(1, 400))
        # What does not lie there any more is a row.
        gone = len(kept) - await hall.waiting()
        assert len(await hall.rows()) >= gone
    while await hall.tables.read_cursor() != (await hall.followed.records())[-1].entry_id:
        await hall.apply()

    assert await hall.rows() == kept
    assert await hall.waiting() == 0


async def test_a_late_worker_trims_nothing(hall: Hall) -> None:
    await hall.beside.append([a_pair(1)])
    [record] = await hall.followed.records()

    with pytest.raises(CursorMovedError):
        await hall.tables.commit([record], after="1-1", cursor=record.entry_id)

    assert await hall.waiting() == 1


async def test_what_was_left_lying_goes_with_the_next(hall: Hall) -> None:
    """A worker that is killed between the two has written the rows and forgotten nothing."""
    await hall.beside.append([a_pair(1)])
    [record] = await hall.followed.records()
    without = AuctionTables(hall.pool, clock=ManualClock(NOW), kept_days=7)
    await without.read_cursor()
    await without.commit([record], after=BEGINNING, cursor=record.entry_id)
    await hall.beside.append([a_pair(2)])

    await hall.apply()

    assert await hall.waiting() == 0


async def test_an_id_that_is_in_use_does_not_stop_the_log(hall: Hall) -> None:
    """Where the ledger was lost and its ids are given again, and what lies beside it was not lost."""
    await hall.valkey.xadd(SIDE_STREAM, {"e": b"of another ledger"}, id="99999999999999-0")

    await hall.beside.append([a_pair(1), a_pair(2)])

    assert len(await hall.followed.records()) == 2
    assert (hall.beside.kept, hall.beside.left_out) == (0, 2)


async def test_what_cannot_be_read_is_given_up_alone(hall: Hall) -> None:
    await hall.beside.append([pack_pair(encode_event(a_served()), b"no auction")])
    [record] = await hall.followed.records()
    after = await hall.tables.read_cursor()

    with pytest.raises(PoisonEntryError):
        await hall.tables.commit([record], after=after, cursor=record.entry_id)
    # As whoever isolates it goes on.
    assert await hall.tables.commit([], after=after, cursor=record.entry_id) == BatchResult()
    await hall.beside.append([a_pair(2)])
    assert await hall.apply() == BatchResult(counted=1)


def test_no_piece_takes_long() -> None:
    """All else in the worker waits while the rows of one are made."""
    large = [an_auction(numbered(number), bids=LARGE) for number in range(150)]
    small = [an_auction(numbered(number)) for number in range(1_200)]

    pieces = list(split_pieces([*large, *small]))

    assert [one for piece in pieces for one in piece] == [*large, *small]
    assert max(map(len, pieces)) == ROWS_AT_ONCE
    assert max(sum(len(one.bids) for one in piece) for piece in pieces) <= BID_BYTES_AT_ONCE
    assert list(split_pieces([])) == []


class FakeBeside:
    """Takes pairs, or not."""

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
    """Has events in it, or not."""

    has_room_to_spare = True

    def __init__(self, *, is_empty: bool) -> None:
        self.is_empty = is_empty

    async def wait_for_drain(self) -> None:
        raise AssertionError("Nobody waits for it.")

    async def put(self, entries: Sequence[bytes]) -> None:
        raise AssertionError(entries)


async def test_auctions_go_into_the_side_stream() -> None:
    told: list[bytes] = []
    beside = FakeBeside()

    async with AuctionAppender(beside, told.extend, FakeSpool(is_empty=True)) as appender:
        appender.enqueue_all([a_pair(1), a_pair(2)])

    assert (beside.kept, told, appender.left_out) == ([a_pair(1), a_pair(2)], [], 0)


@pytest.mark.parametrize("is_empty", [True, False])
async def test_while_valkey_is_away_the_log_gets_what_was_served(*, is_empty: bool) -> None:
    told: list[bytes] = []
    beside = FakeBeside()
    beside.is_away = True

    async with AuctionAppender(beside, told.extend, FakeSpool(is_empty=is_empty)) as appender:
        appender.enqueue_all([a_pair(1), a_pair(2, is_sold=False)])

    happenings: list[LogEvent] = [decode_event(one) for one in told]
    assert [type(one) for one in happenings] == [Served]
    assert appender.left_out == 2
    # Where events wait on the disk already, nobody asks in vain.
    assert beside.tries == int(is_empty)


async def test_of_too_many_at_once_the_log_gets_what_was_served() -> None:
    told: list[bytes] = []
    beside = FakeBeside()

    async with AuctionAppender(beside, told.extend, None) as appender:
        appender.enqueue_all([a_pair(number) for number in range(1_010)])

    assert (len(beside.kept), len(told), appender.left_out) == (1_000, 10, 10)
    assert beside.tries == 1_000 // BATCH_MAX
