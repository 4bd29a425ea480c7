"""Recorded auctions in a side stream of the log, each under the id of the log's entry about its outcome.

An auction with its bids may have 15 kilobytes and is needed only until it is a row; the log's own entries are kept
for days. So it has a stream of its own, which is trimmed as soon as its entries are applied. The stream is bounded,
and takes nothing when Valkey has little memory left: events of visitors come first. Of an auction that cannot be
recorded, only what was served goes into the log.
"""

import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from hashlib import sha1
from typing import Any, Final, TypeAlias, cast

from redis.exceptions import NoScriptError

from adloom.events.log.append import EventAppender, EventLog, EventSpool
from adloom.events.log.event import AuctionEntry, Served, UnreadableEntryError, decode_event, parse_entry_id
from adloom.events.log.event_group import FIELD
from adloom.events.log.stream import STREAM
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.valkey import Valkey, raise_if_away, retry_if_disconnected

SIDE_STREAM: Final = f"{STREAM}:auctions"
# A minute of one delivery process at its limit: a worker may be away that long.
WAITING_BYTES_MAX: Final = 64 * 2**20
MEMORY_PERCENT_MAX: Final = 75  # Of Valkey's `maxmemory`, whatever uses it. The doctor warns from there on.
PAGE: Final = 100

# The server estimates the memory of a stream from its oldest blocks.
KEEP_SCRIPT: Final = """
local ledger, beside, pairs_of_them = KEYS[1], KEYS[2], ARGV[1]
local bytes_max, percent_max = tonumber(ARGV[2]), tonumber(ARGV[3])
local memory = redis.call('INFO', 'memory')
local used = tonumber(string.match(memory, 'used_memory:(%d+)'))
local limit = tonumber(string.match(memory, '\\nmaxmemory:(%d+)') or 0)
local has_room = limit == 0 or used * 100 < limit * percent_max
if has_room then
    has_room = (redis.call('MEMORY', 'USAGE', beside, 'SAMPLES', 100) or 0) < bytes_max
end
local kept, place, entry, auction = 0, 1, nil, nil
while place <= #pairs_of_them do
    entry, auction, place = struct.unpack('>I4c0I4c0', pairs_of_them, place)
    local id = redis.call('XADD', ledger, '*', 'e', entry)
    -- An id that is taken is of a ledger that was lost.
    if has_room and not redis.pcall('XADD', beside, id, 'e', auction).err then kept = kept + 1 end
end
return kept
"""
_KEEP_NAME: Final = sha1(
    KEEP_SCRIPT.encode(), usedforsecurity=False
).hexdigest()  # As the server computes it.

_length: Final = struct.Struct(">I")
_Rows: TypeAlias = list[tuple[bytes, dict[bytes, bytes]]]


def pack_pair(entry: bytes, auction: bytes) -> bytes:
    return b"".join((_length.pack(len(entry)), entry, _length.pack(len(auction)), auction))


def unpack_entry(pair: bytes) -> bytes:
    (size,) = _length.unpack_from(pair)
    return pair[_length.size : _length.size + size]


class AuctionSideStream:
    """Appends auctions with their entries, over a connection for that if there is one; the projection reads them."""

    def __init__(
        self,
        valkey: Valkey,
        line: DedicatedConnection | None = None,
        *,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        self._valkey = valkey
        self._call: Callable[..., Awaitable[Any]] = (line or valkey).execute_command
        self._waiting_bytes_max = waiting_bytes_max
        # Plain counters, read by the metrics.
        self.kept = 0
        self.left_out = 0

    async def append(self, entries: Sequence[bytes]) -> None:
        """Append pairs, in order; if there is no room, only the log's entry of each."""
        pairs = b"".join(entries)
        with raise_if_away():
            # What is appended twice is recorded once; the log has it twice, which is rare.
            kept = int(await retry_if_disconnected(lambda: self._keep(pairs)))
        self.kept += kept
        self.left_out += len(entries) - kept

    async def _keep(self, pairs: bytes) -> int:
        arguments = (2, STREAM, SIDE_STREAM, pairs, self._waiting_bytes_max, MEMORY_PERCENT_MAX)
        try:
            return await self._call("EVALSHA", _KEEP_NAME, *arguments)
        except NoScriptError:  # The server was restarted and does not know the script.
            return await self._call("EVAL", KEEP_SCRIPT, *arguments)

    async def read(
        self, ids: Collection[str], *, after: str, last: str
    ) -> AsyncGenerator[list[AuctionEntry]]:
        """Read the auctions of entries between two of the log, page by page; some may have none."""
        rows: _Rows = []
        while ids and (not rows or len(rows) == PAGE):
            with raise_if_away():
                rows = cast("_Rows", await self._valkey.xrange(SIDE_STREAM, f"({after}", last, count=PAGE))
            if not rows:
                return
            after = rows[-1][0].decode()
            yield [_decode_auction(fields[FIELD]) for row_id, fields in rows if row_id.decode() in ids]

    async def trim(self, last: str) -> None:
        millis, sequence = parse_entry_id(last)
        with raise_if_away():
            await self._valkey.xtrim(SIDE_STREAM, minid=f"{millis}-{sequence + 1}", approximate=False)


def _decode_auction(data: bytes) -> AuctionEntry:
    event = decode_event(data)
    if not isinstance(event, AuctionEntry):
        raise UnreadableEntryError("What lies beside the ledger is no auction.")
    return event


PENDING_MAX: Final = 1_000  # With 256 bids each they are 15 MB.
# The server does nothing else while it takes a batch: with 256 bids each about a millisecond.
BATCH_MAX: Final = 50

EnqueueAll = Callable[[Sequence[bytes]], object]


class AuctionAppender(EventAppender):
    """Appends pairs of an entry and its auction, without waiting; use it as a context."""

    def __init__(self, side_stream: EventLog, enqueue_served: EnqueueAll, spool: EventSpool | None) -> None:
        self._fallback = _ServedFallback(enqueue_served, spool)
        super().__init__(side_stream, self._fallback, pending_max=PENDING_MAX, batch_max=BATCH_MAX)

    @property
    def left_out(self) -> int:
        """How many auctions were not recorded, because Valkey did not take them in time."""
        return self._fallback.left_out

    def enqueue_all(self, entries: Sequence[bytes]) -> int:
        """Append auctions; of those without room, only what was served."""
        taken = super().enqueue_all(entries)
        self._fallback.enqueue_served(entries[taken:])
        return taken


class _ServedFallback:
    """Takes the place of an appender's spool: nothing waits here, the log's own entries are published alone.

    While events wait in the process's spool, Valkey is away and need not be asked.
    """

    has_room_to_spare = True

    def __init__(self, enqueue_served: EnqueueAll, spool: EventSpool | None) -> None:
        self._enqueue_served = enqueue_served
        self._spool = spool
        self.left_out = 0

    @property
    def is_empty(self) -> bool:
        return self._spool is None or self._spool.is_empty

    @property
    def is_idle(self) -> bool:
        return self.is_empty

    async def wait_for_drain(self) -> None:
        return  # Nothing waits here.

    async def put(self, entries: Sequence[bytes]) -> None:
        self.enqueue_served(entries)

    def enqueue_served(self, pairs: Sequence[bytes]) -> None:
        self.left_out += len(pairs)
        alone = map(unpack_entry, pairs)
        # An unsold auction is of no use without its bids.
        if served := [entry for entry in alone if isinstance(decode_event(entry), Served)]:
            self._enqueue_served(served)
