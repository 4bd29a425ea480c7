"""The event log in Valkey: one stream, read by cursor. An entry is one event, or a group of events (`event_group`)."""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

import msgspec
from redis.exceptions import (
    ConnectionError,  # noqa: A004 - the driver's, which is not the system's
    ResponseError,
)

from adloom.core.clock import Clock, SystemClock
from adloom.core.errors import UnavailableError
from adloom.events.log.event import BEGINNING, LogEntry, parse_entry_id
from adloom.events.log.event_group import (
    COUNT_FIELD,
    FIELD,
    GROUP_FIELD,
    EventGroup,
    GroupIds,
    drop_before,
    group_events,
    unpack_entry,
)
from adloom.runtime.failover.dedicated_connection import (
    DedicatedConnection,
    borrow_connection,
    has_error,
    pack_command,
)
from adloom.runtime.failover.sentinel import count_replicas
from adloom.runtime.telemetry.heartbeat import LOG_FORMAT, HeartbeatReader
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, make_away_error, raise_if_away

STREAM: Final = "adloom:ledger"
DEAD_STREAM: Final = "adloom:ledger:dead"

# A batch is in the file whole or not at all. Of single events a script would take a third more instructions.
MULTI: Final = pack_command("MULTI")
EXEC: Final = pack_command("EXEC")
TIME: Final = pack_command("TIME")
# What the server says to an id of ours that is not beyond its newest entry.
REFUSED_ID: Final = "equal or smaller"
# Appends groups; the arguments are the number of events and the events of each. Every event of a group takes a sequence
# number, and the last of them is the group's id. No number is used twice, whatever the clock does and whichever process
# appends. The script costs the server as much as twenty entries, so it is called only where `GroupIds` cannot choose an id,
# or the server has refused two.
ADD_GROUPS: Final = """
local function add_groups(stream, groups)
    local millis, sequence = 0, 0
    local facts = redis.call('EXISTS', stream) == 1 and redis.call('XINFO', 'STREAM', stream) or {}
    for i = 1, #facts, 2 do
        if facts[i] == 'last-generated-id' then
            millis, sequence = string.match(facts[i + 1], '(%d+)-(%d+)')
            millis, sequence = tonumber(millis), tonumber(sequence)
        end
    end
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    if now > millis then millis, sequence = now, -1 end
    for i = 1, #groups, 2 do
        sequence = sequence + groups[i]
        local id = string.format('%.0f-%.0f', millis, sequence)
        redis.call('XADD', stream, id, 'g', groups[i + 1], 'n', groups[i])
    end
    return millis
end
"""
# With its first line the server treats the call as a write, which it refuses before a transaction where it takes none.
GROUPS_SCRIPT: Final = f"#!lua\n{ADD_GROUPS}return add_groups(KEYS[1], ARGV)\n"
# Mostly another process has appended in the same millisecond: then the next block in it is free, or the next millisecond.
CHOICES_MAX: Final = 2
FORMAT_CHECKED_SECONDS: Final = 5.0
# A process whose last heartbeat is older by our clock may run all the same: on a machine whose clock is behind ours.
CLOCKS_DIFFER_MAX: Final = timedelta(minutes=1)
_SIZES_KEPT: Final = 1_024
_SIZES: Final = tuple(b"$%d\r\n" % size for size in range(_SIZES_KEPT))

# Of Valkey's `maxmemory`. The rest is for leases, jobs and projections: without them nothing would be read, and
# so nothing could be trimmed. Asking the server takes it some microseconds, so that is done once in so many bytes.
MEMORY_PERCENT_MAX: Final = 85
MEMORY_CHECKED_BYTES: Final = 2**18
REPLICA_MILLIS_MAX: Final = 1_000
WAIT_MILLIS_MAX: Final = 100

# The server keeps entries in blocks of at most so many, and trims fastest by whole blocks. A large group is one alone.
BLOCK_ENTRIES: Final = 100

# Entries after a cursor are counted by consumer groups that know their number: the projection's own, or another that is
# a little ahead. What is between has to be read to be counted, and the server does nothing else meanwhile, so that is
# done for so many entries and bytes at most: beyond, the number is the least that it can be.
BEHIND_COUNTED_MAX: Final = 10_000
BEHIND_READ_BYTES_MAX: Final = 2**20
LAG_SCRIPT: Final = f"""
local stream, group, cursor, counted_max, bytes_max = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local first = redis.call('XRANGE', stream, '(' .. cursor, '+', 'COUNT', 1)
if #first == 0 then return {{0, 0}} end
local now = redis.call('TIME')
local age = now[1] * 1000 + math.floor(now[2] / 1000) - string.match(first[1][1], '^%d+')

local function count_up_to(last)
    local after, count, bytes = cursor, 0, 0
    while count < counted_max and bytes < bytes_max do
        local rows = redis.call('XRANGE', stream, '(' .. after, last, 'COUNT', {BLOCK_ENTRIES})
        for _, row in ipairs(rows) do bytes = bytes + #row[2][2] end
        count = count + #rows
        if #rows < {BLOCK_ENTRIES} then break end
        after = rows[#rows][1]
    end
    return count
end

local known = {{}}
for _, facts in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    local one = {{}}
    for i = 1, #facts, 2 do one[facts[i]] = facts[i + 1] end
    if one.lag then
        if one['last-delivered-id'] == cursor then return {{one.lag, age}} end
        table.insert(known, one.name == group and 1 or #known + 1, one)
    end
end
for _, one in ipairs(known) do
    -- Of a group that is behind the cursor, this is zero.
    local between = count_up_to(one['last-delivered-id'])
    if between > 0 then return {{one.lag + between, age}} end
end
return {{count_up_to('+'), age}}
"""

_Rows: TypeAlias = list[tuple[bytes, dict[bytes, bytes]]]


class Lag(msgspec.Struct, frozen=True):
    """How far a projection is behind: entries that it has not applied, and the age of the oldest of them.

    A group of events counts as one entry.
    """

    entries: int
    seconds: float


class EventLogSize(msgspec.Struct, frozen=True):
    """The entries of the log, their memory (about), and the number of dead letters."""

    entries: int = 0
    memory_bytes: int = 0
    dead: int = 0


class MemoryUse(msgspec.Struct, frozen=True):
    """The memory that the server uses, and the most it may use; 0 for no limit."""

    used_bytes: int = 0
    limit_bytes: int = 0


def pack_adds(stream: str, field: bytes, entries: Iterable[bytes], *options: str) -> bytes:
    """Pack a command for each entry that appends it to a stream, as the protocol has it."""
    head, parts = _pack_add_head(stream, field, options), list[bytes]()
    for entry in entries:
        size = len(entry)
        parts += (head, _SIZES[size] if size < _SIZES_KEPT else b"$%d\r\n" % size, entry, b"\r\n")
    return b"".join(parts)


@lru_cache(64)
def _pack_add_head(stream: str, field: bytes, options: tuple[str, ...]) -> bytes:
    return pack_command("XADD", stream, *options, "*", field, b"").removesuffix(b"$0\r\n\r\n")


def _pack_groups(groups: Iterable[EventGroup]) -> bytes:
    """Pack the call of the script, with its text: so the server always has it."""
    arguments = [argument for group in groups for argument in (group.count, group.packed)]
    return pack_command("EVAL", GROUPS_SCRIPT, 1, STREAM, *arguments)


def _pack_group(entry_id: str, group: EventGroup) -> bytes:
    return pack_command("XADD", STREAM, entry_id, GROUP_FIELD, group.packed, COUNT_FIELD, group.count)


def _is_refused_id(answer: object) -> bool:
    return isinstance(answer, ResponseError) and REFUSED_ID in str(answer)


def unpack_row(row_id: bytes, fields: Mapping[bytes, bytes]) -> list[LogEntry]:
    """Return the events of an entry of the stream, as the driver has it."""
    for field, value in fields.items():  # The first one decides.
        return unpack_entry(row_id.decode(), field, value)
    return [LogEntry(row_id.decode(), b"")]


class ValkeyEventLog:
    """Appends to the stream, reads it and trims it; a process that appends all the time gives it its own connection."""

    def __init__(
        self, valkey: Valkey, line: DedicatedConnection | None = None, *, clock: Clock | None = None
    ) -> None:
        self._valkey = valkey
        self._clock = clock or SystemClock()
        self._send = self._borrow_and_send if line is None else line.execute_packed
        self._replicas = count_replicas(valkey)
        self._lacks_replicas = False
        self._unchecked_bytes = MEMORY_CHECKED_BYTES
        self._ids = GroupIds()
        self._may_group = False
        self._format_checked_at = -math.inf
        self._measure_lag = valkey.register_script(LAG_SCRIPT)

    async def append(self, entries: Sequence[bytes]) -> None:
        """Append all, in the order of `group_events`; they are then as durable as the server is set to make them."""
        try:  # As `raise_if_away` and `retry_if_disconnected` do, in two calls fewer.
            try:
                await self._append(entries)
            except ConnectionError:
                # An event that is appended twice counts once, and a browser does not send its report again.
                await self._append(entries)
        except VALKEY_AWAY as error:
            raise make_away_error(error) from error

    async def _append(self, entries: Sequence[bytes]) -> None:
        alone, groups = group_events(entries)
        now = asyncio.get_running_loop().time()
        if groups and now >= self._format_checked_at + FORMAT_CHECKED_SECONDS:
            await self._check_format()
        if groups and not self._may_group:
            alone, groups = entries, []
        adds = pack_adds(STREAM, FIELD, alone) if alone else b""
        self._unchecked_bytes += len(adds) + sum([len(group.packed) for group in groups])
        if self._unchecked_bytes >= MEMORY_CHECKED_BYTES:
            await self._check_memory()
        if groups:
            await self._append_groups(groups, adds, len(alone))
        else:
            await self._transact(adds, len(alone))

    async def _append_groups(self, groups: Sequence[EventGroup], adds: bytes, count: int) -> None:
        """Append groups, and then so many events that stay alone; the script appends groups whose ids are refused."""
        for _ in range(CHOICES_MAX):
            ids = self._ids.choose(len(groups), at=asyncio.get_running_loop().time())
            if ids is None:
                break
            packed = b"".join((*map(_pack_group, ids, groups), adds, TIME))
            answers = await self._transact(packed, len(groups) + count + 1, refusable=len(groups))
            self._note_time(answers[-1])
            groups = [group for group, answer in zip(groups, answers, strict=False) if _is_refused_id(answer)]
            if not groups:
                return
            adds, count = b"", 0
        await self._append_by_script(groups, adds, count)

    async def _append_by_script(self, groups: Sequence[EventGroup], adds: bytes, count: int) -> None:
        millis, *_, time = await self._transact(_pack_groups(groups) + adds + TIME, count + 2)
        self._note_time(time)
        self._ids.note_used(millis)

    def _note_time(self, answer: Sequence[bytes]) -> None:
        seconds, micros = answer
        self._ids.note_time(int(seconds) + int(micros) / 1e6, at=asyncio.get_running_loop().time())

    async def _transact(self, packed: bytes, count: int, *, refusable: int = 0) -> Sequence[Any]:
        """Send so many commands as one transaction; return their answers. The first of them may be refused by their ids."""
        packed = MULTI + packed + EXEC
        if self._replicas:
            answers = await self._append_and_wait(packed, count + 2)
        else:
            answers = (await self._send(packed, count + 2))[-1]
        failed: list[Exception] = []
        if has_error(answers):
            must = [one for one in answers[:refusable] if not _is_refused_id(one)] + [*answers[refusable:]]
            failed = [one for one in must if isinstance(one, Exception)]
        if len(answers) != count or failed:
            raise UnavailableError(f"The event log answered {failed or answers!r} to {count} commands.")
        return answers

    async def _check_format(self) -> None:
        """Find out whether all processes can read groups: while an installation is upgraded, some may be of before."""
        now = asyncio.get_running_loop().time()
        since = self._clock.now() - CLOCKS_DIFFER_MAX
        running = await HeartbeatReader(self._valkey).list_processes(now=since)
        self._may_group = all(one.log_format >= LOG_FORMAT for one in running)
        self._format_checked_at = now

    async def _check_memory(self) -> None:
        memory = await self.measure_memory()
        if memory.limit_bytes and memory.used_bytes * 100 >= memory.limit_bytes * MEMORY_PERCENT_MAX:
            raise UnavailableError("The event log takes no events: Valkey has no memory to spare.")
        self._unchecked_bytes = 0

    async def _append_and_wait(self, packed: bytes, count: int) -> Sequence[object]:
        """Append, and wait until replicas have it too: both on one connection, which is what the server counts.

        While there are too few replicas nothing is appended: it would be there once more with every try.
        """
        if self._lacks_replicas and await self._valkey.wait(self._replicas, WAIT_MILLIS_MAX) < self._replicas:
            raise UnavailableError("Valkey has too few replicas.")
        waiting = pack_command("WAIT", self._replicas, REPLICA_MILLIS_MAX)
        *_, ids, replicas = await self._send(packed + waiting, count + 1)
        self._lacks_replicas = replicas < self._replicas
        if self._lacks_replicas:
            raise UnavailableError(f"{replicas} of {self._replicas} replicas of Valkey have the events.")
        return ids

    async def _borrow_and_send(self, packed: bytes, count: int) -> Sequence[Any]:
        async with borrow_connection(self._valkey) as execute_packed:
            return await execute_packed(packed, count)

    async def read(self, after: str, *, count_max: int, wait_seconds: float) -> list[LogEntry]:
        """Return the entries after a cursor; wait a little for the first where there are none."""
        wait_millis = max(1, int(wait_seconds * 1000))  # Zero would be forever.
        with raise_if_away():
            answer = await self._valkey.xread({STREAM: after}, count=count_max, block=wait_millis)
        # The stubs know every protocol version and decoding; ours answers pairs of bytes.
        streams = cast("list[tuple[bytes, _Rows]]", answer)
        entries = [entry for _, rows in streams for row in rows for entry in unpack_row(*row)]
        millis, sequence = parse_entry_id(after)
        return drop_before(entries, (millis, sequence + 1))[:count_max]

    async def read_last_id(self) -> str:
        """Return the id of the last entry; the beginning, where there is none."""
        with raise_if_away():
            rows = cast("_Rows", await self._valkey.xrevrange(STREAM, count=1))
        return rows[0][0].decode() if rows else BEGINNING

    async def measure_lag(self, projection: str, cursor: str) -> Lag:
        with raise_if_away():
            entries, age_millis = await self._measure_lag(
                [STREAM], [projection, cursor, BEHIND_COUNTED_MAX, BEHIND_READ_BYTES_MAX]
            )
        return Lag(entries=entries, seconds=max(0, age_millis) / 1000)

    async def measure_size(self) -> EventLogSize:
        """Measure the log. Valkey estimates its memory by the oldest blocks, so that may be more than all it uses."""
        with raise_if_away():
            asked = self._valkey.pipeline(transaction=False)
            asked.xlen(STREAM)
            asked.memory_usage(STREAM)
            asked.xlen(DEAD_STREAM)
            asked.info("memory")
            entries, estimate, dead, facts = cast(
                "tuple[int, int | None, int, Mapping[str, int]]", await asked.execute()
            )
        return EventLogSize(
            entries=entries, memory_bytes=min(estimate or 0, facts["used_memory_dataset"]), dead=dead
        )

    async def trim(self, before: str, count_max: int) -> int:
        """Remove the oldest entries before one, in whole blocks and about so many; return how many."""
        limit = max(count_max, BLOCK_ENTRIES)
        with raise_if_away():
            return await self._valkey.xtrim(STREAM, minid=before, approximate=True, limit=limit)

    async def measure_memory(self) -> MemoryUse:
        with raise_if_away():
            facts: Mapping[str, int] = await self._valkey.info("memory")
        return MemoryUse(used_bytes=facts["used_memory"], limit_bytes=facts.get("maxmemory", 0))
