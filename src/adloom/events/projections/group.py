"""A projection's consumer group in Valkey, and the lock that gives it one owner at a time.

The group remembers how far entries were handed out. It does not remember each entry that is being applied
(XREADGROUP … NOACK): what was handed out and not applied lies between the projection's cursor and the group's
position, so the next owner sets the group back to the cursor. A pending list of every entry took eight times of
Valkey's CPU (4.0 and 0.5 µs an event) and as much of its file as the event itself. How often a bad event was tried is in
a hash beside it: the group knows entries of the stream only, and one may have many events.

The projections of a worker read the same entries one after the other. Only the first reads them from Valkey
and leaves them in `RecentEntries`; its followers read there, and move their groups every few seconds.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, TypeAlias, cast

from redis.exceptions import ResponseError

from adloom.core.errors import UnavailableError
from adloom.events.log.event import LogEntry, parse_entry_id
from adloom.events.log.event_group import FIELD, GROUP_BYTES_MAX, GROUP_FIELD, drop_before, unpack_entry
from adloom.events.log.stream import ADD_GROUPS, STREAM
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.events.projections.recent_entries import RecentEntries
from adloom.runtime.locks import LEASE, HeldLocks, ValkeyLock
from adloom.runtime.valkey import Valkey, raise_if_away, retry_if_disconnected

CONSUMER_KEPT: Final = timedelta(hours=1)
MOVE_SECONDS: Final = 5.0  # How often a follower's group is moved to the follower's cursor.
SET_BACK_MAX: Final = 3  # If it happens more often in a row, another reader is at work without the lock.

# Workers that are long gone: in containers each start has another name.
DROP_IDLE_SCRIPT: Final = """
local stream, group, consumer, kept_millis = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local consumers = redis.pcall('XINFO', 'CONSUMERS', stream, group)
if consumers.err then return 1 end
for _, facts in ipairs(consumers) do
    local one = {}
    for i = 1, #facts, 2 do one[facts[i]] = facts[i + 1] end
    if one.name ~= consumer and one.idle > tonumber(kept_millis) then
        redis.call('XGROUP', 'DELCONSUMER', stream, group, one.name)
    end
end
return 1
"""

AGAIN_MAX: Final = 500  # Entries that are appended again at once: the server does nothing else meanwhile.

_IS_BEYOND: Final = """
-- A half of an id has fewer than 53 bits, so numbers are exact.
local function is_beyond(one, other)
    local a, b = string.match(one, '(%d+)-(%d+)')
    local c, d = string.match(other, '(%d+)-(%d+)')
    a, b, c, d = tonumber(a), tonumber(b), tonumber(c), tonumber(d)
    return a > c or (a == c and b > d)
end
"""
# Put the group at the cursor, whatever was lost: the group, the stream, or the stream's newest entries. Their
# ids must not be used again: an entry with one would be skipped. A server that lost the newest, as one that takes over does,
# may have used some: its clock may be behind. Whatever lies between the place where it knew the group and the cursor
# is appended again; what was applied counts once.
SET_SCRIPT: Final = f"""
{ADD_GROUPS}
local stream, lease, group, holder, after, found = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
{_IS_BEYOND}
if redis.call('GET', lease) ~= holder then return 0 end
local made = redis.pcall('XGROUP', 'CREATE', stream, group, after, 'MKSTREAM')
if made.err then redis.call('XGROUP', 'SETID', stream, group, after) end
local facts = redis.call('XINFO', 'STREAM', stream)
for i = 1, #facts, 2 do
    if facts[i] == 'last-generated-id' and is_beyond(after, facts[i + 1]) then
        redis.call('XSETID', stream, after)
    end
end
if found and is_beyond(after, found) then
    local rows = redis.call('XRANGE', stream, '(' .. found, after, 'COUNT', {AGAIN_MAX})
    for _, row in ipairs(rows) do
        local fields = row[2]
        if fields[1] == '{GROUP_FIELD.decode()}' then
            add_groups(stream, {{fields[4], fields[2]}})
        else
            redis.call('XADD', stream, '*', unpack(fields))
        end
    end
    if #rows == {AGAIN_MAX} then redis.call('XGROUP', 'SETID', stream, group, rows[#rows][1]) end
end
return 1
"""
# An answer takes the server's memory until it is sent, and large events would fill it. So a batch may take several
# answers; if it were as small as one of them, a projection would rest after it although more is waiting.
READ_BYTES_MAX: Final = 2**21
BATCH_BYTES_MAX: Final = 2**24
ENTRY_BYTES_EXPECTED: Final = 1_000
# Entries are taken to be as large as the last ones. Where they are groups all at once, an answer has so much at most.
READ_ENTRIES_MAX: Final = 2**22 // GROUP_BYTES_MAX

_Rows: TypeAlias = list[tuple[bytes, list[bytes]]]


class ConsumerGroup:
    """One worker's place in one projection's group."""

    def __init__(  # noqa: PLR0913 - two of them are for tests
        self,
        valkey: Valkey,
        projection: str,
        *,
        consumer: str,
        incarnation: str,
        recent: RecentEntries | None = None,
        is_first: bool = False,
        may_own: Callable[[], bool] | None = None,
        held_locks: HeldLocks | None = None,
        lease: timedelta = LEASE,
        consumer_kept: timedelta = CONSUMER_KEPT,
    ) -> None:
        self._valkey = valkey
        self._projection = projection
        self._consumer = consumer
        self._lock = ValkeyLock(
            valkey,
            lock_key(projection),
            consumer=consumer,
            incarnation=incarnation,
            held=held_locks,
            lease=lease,
        )
        self._kept_millis = int(consumer_kept.total_seconds() * 1000)
        self._keys = [STREAM, self._lock.key]
        self._letters = DeadLetterQueue(valkey)
        self._recent = recent or RecentEntries(kept_max=0)
        self._is_first = is_first
        self._may_own = may_own
        self._moved_at = 0.0  # When the group was last at the cursor,
        self._is_left_behind = False  # and whether it has fallen behind since.
        # Read already, but beyond `until`; they follow the last that was returned.
        self._ahead: list[LogEntry] = []
        self._given = ""
        self._entry_bytes = ENTRY_BYTES_EXPECTED  # Of an entry of the stream, on average, in the last read.
        self._is_cut = False  # Whether that read left out entries because of their size or number.
        self._drop_idle = valkey.register_script(DROP_IDLE_SCRIPT)
        self._set = valkey.register_script(SET_SCRIPT)
        # As the server sends them: the driver would make a dictionary of every entry.
        valkey.set_response_callback("XREADGROUP", _keep_raw)  # pyright: ignore[reportArgumentType] - its stubs have it give nothing

    async def acquire(self) -> bool:
        """Take the lock or renew it; give it up while `may_own` says that another worker should have it."""
        if self._may_own is not None and not self._may_own():
            await self.release()
            return False
        is_ours = await self._lock.acquire()
        if self._lock.was_just_taken:
            with raise_if_away():
                await self._drop_idle(self._keys, [self._projection, self._consumer, self._kept_millis])
        return is_ours

    async def release(self) -> None:
        await self._lock.release()

    async def read(self, after: str, *, until: str | None, count_max: int) -> Sequence[LogEntry] | None:
        if self._given != after:
            self._ahead = []
        if until is not None and parse_entry_id(until) <= parse_entry_id(after):
            return []
        with raise_if_away():
            if known := [] if self._is_first else self._recent.read_after(after, count_max=count_max):
                if not await self._read_on(after):
                    self._lock.doubt()
                    return None
                self._ahead = []  # Those beyond `until` are found among the recent entries again.
                return known[: count_readable(known, until, count_max)]
            if not self._ahead:
                taken = await self._read_batch(after, count_max)
                if taken is None:
                    self._lock.doubt()
                    return None
                self._ahead = taken
                if self._is_first:
                    self._recent.add(after, taken, at=asyncio.get_running_loop().time())
        self._is_left_behind = False
        count = count_readable(self._ahead, until, count_max)
        given, self._ahead = self._ahead[:count], self._ahead[count:]
        self._given = given[-1].id if given else after
        if given and not self._is_first and self._recent.ends_before(after):
            # The projection that we follow runs in another process, so we are the first here.
            self._recent.add(after, given, at=asyncio.get_running_loop().time())
        return given

    async def wait(self, after: str, *, seconds: float) -> None:
        millis = max(1, int(seconds * 1000))  # Zero would be for ever.
        with raise_if_away():
            if self._is_left_behind:
                await self._move_group(after)
            await self._valkey.xread({STREAM: after}, count=1, block=millis)

    async def count_try(self, entry_id: str) -> int:
        with raise_if_away():
            return await self._valkey.hincrby(tries_key(self._projection), entry_id, 1)

    async def add_dead_letter(self, entry: LogEntry, *, reason: str, tries: int, again: bytes) -> None:
        await self._letters.add(
            self._projection, entry.id, entry.data, reason=reason, tries=tries, again=again
        )

    async def _read_on(self, after: str) -> bool:
        """Read on without the group, but move it when that is due; return whether the lock is ours, as far as we know."""
        is_due = asyncio.get_running_loop().time() >= self._moved_at + MOVE_SECONDS
        is_ours = not is_due or await self._move_group(after)
        self._is_left_behind = True
        return is_ours

    async def _move_group(self, after: str) -> bool:
        self._moved_at = asyncio.get_running_loop().time()
        self._is_left_behind = False
        return bool(await self._set(self._keys, [self._projection, self._lock.holder, after]))

    async def _read_batch(self, after: str, count_max: int) -> list[LogEntry] | None:
        taken = await self._read_group(after, count_max)
        while taken and self._is_cut:
            size = sum([len(entry.data) for entry in taken])
            if len(taken) >= count_max or size >= BATCH_BYTES_MAX:
                break
            more = await self._read_group(taken[-1].id, count_max - len(taken))
            if more is None:
                return None
            taken += more
        return taken

    async def _read_group(self, after: str, count_max: int) -> list[LogEntry] | None:
        """Read about so many events; the last entry may have more."""
        for _ in range(SET_BACK_MAX):
            # Safe to repeat: what was read and did not arrive is read once more, from the cursor.
            holder, groups, has_tries, rows = await retry_if_disconnected(lambda: self._fetch(count_max))
            if holder != self._lock.holder.encode():
                return None
            if has_tries:
                await self._forget_tries(after)
            position = _find_position(groups, self._projection)
            if position == after:
                return self._unpack(rows, after, count_max)
            # A follower's group lies behind its cursor, and what is appended again counts for the first one.
            found = [position] if self._is_first and position else []
            if not await self._set(self._keys, [self._projection, self._lock.holder, after, *found]):
                return None
        raise UnavailableError(f"Another worker reads in the group {self._projection}.")

    async def _fetch(self, count_max: int) -> tuple[object, object, object, _Rows]:
        """Return the lock's holder, the group's position and the entries after it, as of one moment."""
        async with self._valkey.pipeline(transaction=True) as at_once:
            at_once.get(self._keys[1])
            at_once.xinfo_groups(STREAM)
            at_once.exists(tries_key(self._projection))
            at_once.xreadgroup(
                self._projection,
                self._consumer,
                {STREAM: ">"},
                count=self._count_entries(count_max),
                noack=True,
            )
            holder, groups, has_tries, streams = await at_once.execute(raise_on_error=False)
        return holder, groups, has_tries, _find_rows(streams)

    def _count_entries(self, count_max: int) -> int:
        return min(count_max, READ_ENTRIES_MAX, READ_BYTES_MAX // self._entry_bytes + 1)

    def _unpack(self, rows: _Rows, after: str, count_max: int) -> list[LogEntry]:
        """Return the events of entries, without those that are not after the cursor: it may be inside of the first."""
        count = self._count_entries(count_max)
        entries: list[LogEntry] = []
        for row_id, row in rows:
            if row[0] == FIELD:
                entries.append(LogEntry(row_id.decode(), row[1]))
            else:
                entries += unpack_entry(row_id.decode(), row[0], row[1])
        if rows:
            self._entry_bytes = sum([len(row[1]) for _, row in rows]) // len(rows) + 1
        millis, sequence = parse_entry_id(after)
        entries = drop_before(entries, (millis, sequence + 1))
        self._is_cut = len(rows) == count and len(entries) < count_max
        return entries

    async def _forget_tries(self, applied: str) -> None:
        """Forget the tries of events up to the cursor."""
        key, until = tries_key(self._projection), parse_entry_id(applied)
        # The stubs have an answer that may need no waiting.
        tried = await cast("Awaitable[list[bytes]]", self._valkey.hkeys(key))
        if gone := [entry_id for entry_id in tried if parse_entry_id(entry_id.decode()) <= until]:
            await self._valkey.hdel(key, *cast("list[str]", gone))


def count_readable(entries: Sequence[LogEntry], until: str | None, count_max: int) -> int:
    """Return how many of the entries may be returned: none beyond `until`, the cursor of another projection."""
    count = min(count_max, len(entries))
    if until is None:
        return count
    return bisect_right(entries, parse_entry_id(until), hi=count, key=lambda entry: parse_entry_id(entry.id))


def lock_key(projection: str) -> str:
    return f"{STREAM}:owner:{projection}"


def tries_key(projection: str) -> str:
    """Name the hash of the events that a projection could not apply alone, with the number of its tries of each."""
    return f"{STREAM}:tries:{projection}"


def _keep_raw(answer: object, **_: object) -> object:
    return answer


def _find_position(groups: object, name: str) -> str | None:
    """Return how far a group has handed out entries; None if there is no group."""
    if isinstance(groups, ResponseError):  # There is no stream.
        return None
    # The stubs know every protocol version and decoding.
    for facts in cast("list[dict[str, bytes | int]]", groups):
        if facts["name"] == name.encode():
            return cast("bytes", facts["last-delivered-id"]).decode()
    return None


def _find_rows(streams: object) -> _Rows:
    if not streams or isinstance(streams, ResponseError):
        return []
    # Under the newer protocol this is a mapping, under the older one a list of pairs.
    return next(iter(dict(cast("dict[bytes, _Rows]", streams)).values()))
