"""A projection's consumer group in Valkey, and the lock that gives it one owner at a time.

The group remembers how far entries were handed out, and how often a bad one was tried. It does not remember
each entry that is being applied (XREADGROUP … NOACK): what was handed out and not applied lies between the
projection's cursor and the group's position, so the next owner sets the group back to the cursor. Only entries
that were tried and failed are pending. A pending list of every entry took eight times of Valkey's CPU (4.0
and 0.5 µs an event) and as much of its file as the event itself.

The projections of a worker read the same entries one after the other. Only the first reads them from Valkey
and leaves them in `RecentEntries`; its followers read there, and move their groups every few seconds.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, TypeAlias, cast

from redis.exceptions import ResponseError

from adloom.core.errors import UnavailableError
from adloom.events.log.event import LogEntry, parse_entry_id
from adloom.events.log.stream import STREAM
from adloom.events.projections.dead_letters import DeadLetterQueue
from adloom.events.projections.recent_entries import RecentEntries
from adloom.runtime.locks.lock import LEASE, HeldLocks, ValkeyLock
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
    if one.name ~= consumer and one.pending == 0 and one.idle > tonumber(kept_millis) then
        redis.call('XGROUP', 'DELCONSUMER', stream, group, one.name)
    end
end
return 1
"""

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
# ids must not be used again: an entry with one would be skipped.
SET_SCRIPT: Final = f"""
local stream, lease, group, holder, after = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
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
return 1
"""
# Claim everything pending, without counting that as a try, and acknowledge what is applied.
CLAIM_SCRIPT: Final = f"""
local stream, group, consumer, after = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
{_IS_BEYOND}
local from = '0-0'
repeat
    local answer = redis.call('XAUTOCLAIM', stream, group, consumer, 0, from, 'COUNT', 100, 'JUSTID')
    for _, id in ipairs(answer[2]) do
        if not is_beyond(id, after) then redis.call('XACK', stream, group, id) end
    end
    from = answer[1]
until from == '0-0'
return 1
"""
# The delivery count of an entry is its number of tries; the next try is counted before it is made.
TRIED_SCRIPT: Final = """
local stream, group, consumer, id = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local pending = redis.call('XPENDING', stream, group, id, id, 1)
local tries = pending[1] and pending[1][4] or 1
redis.call('XCLAIM', stream, group, consumer, 0, id, 'RETRYCOUNT', tries + 1, 'FORCE', 'JUSTID')
return tries
"""

# An answer takes the server's memory until it is sent, and large events would fill it. So a batch may take several
# answers; if it were as small as one of them, a projection would rest after it although more is waiting.
READ_BYTES_MAX: Final = 2**21
BATCH_BYTES_MAX: Final = 2**24
ENTRY_BYTES_EXPECTED: Final = 1_000

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
        self._entry_bytes = ENTRY_BYTES_EXPECTED  # On average, in the last read.
        self._is_cut = False  # Whether that read left out entries because of their size.
        self._drop_idle = valkey.register_script(DROP_IDLE_SCRIPT)
        self._set = valkey.register_script(SET_SCRIPT)
        self._claim = valkey.register_script(CLAIM_SCRIPT)
        self._tried = valkey.register_script(TRIED_SCRIPT)
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
            return int(await self._tried(self._keys, [self._projection, self._consumer, entry_id]))

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
            left = min(count_max, BATCH_BYTES_MAX // self._entry_bytes) - len(taken)
            if left <= 0:
                break
            more = await self._read_group(taken[-1].id, left)
            if more is None:
                return None
            taken += more
        return taken

    async def _read_group(self, after: str, count_max: int) -> list[LogEntry] | None:
        for _ in range(SET_BACK_MAX):
            # Safe to repeat: what was read and did not arrive is read once more, from the cursor.
            holder, groups, entries = await retry_if_disconnected(lambda: self._fetch(count_max))
            if holder != self._lock.holder.encode():
                return None
            last, pending = _find_position(groups, self._projection)
            if pending:
                await self._claim(self._keys, [self._projection, self._consumer, after])
            if last == after:
                return entries
            if not await self._set(self._keys, [self._projection, self._lock.holder, after]):
                return None
        raise UnavailableError(f"Somebody else reads in the group {self._projection}.")

    async def _fetch(self, count_max: int) -> tuple[object, object, list[LogEntry]]:
        """Return the lock's holder, the group's position and the entries after it, as of one moment."""
        count = min(count_max, READ_BYTES_MAX // self._entry_bytes + 1)
        async with self._valkey.pipeline(transaction=True) as at_once:
            at_once.get(self._keys[1])
            at_once.xinfo_groups(STREAM)
            at_once.xreadgroup(self._projection, self._consumer, {STREAM: ">"}, count=count, noack=True)
            holder, groups, streams = await at_once.execute(raise_on_error=False)
        entries = _parse_entries(streams)
        self._is_cut = len(entries) == count < count_max
        if entries:
            self._entry_bytes = sum([len(entry.data) for entry in entries]) // len(entries) + 1
        return holder, groups, entries


def count_readable(entries: Sequence[LogEntry], until: str | None, count_max: int) -> int:
    """Return how many of the entries may be returned: none beyond `until`, the cursor of another projection."""
    count = min(count_max, len(entries))
    if until is None:
        return count
    return bisect_right(entries, parse_entry_id(until), hi=count, key=lambda entry: parse_entry_id(entry.id))


def lock_key(projection: str) -> str:
    return f"{STREAM}:owner:{projection}"


def _keep_raw(answer: object, **_: object) -> object:
    return answer


def _find_position(groups: object, name: str) -> tuple[str | None, int]:
    """Return how far a group has handed out entries, and how many are pending; None if there is no group."""
    if isinstance(groups, ResponseError):  # There is no stream.
        return None, 0
    # The stubs know every protocol version and decoding.
    for facts in cast("list[dict[str, bytes | int]]", groups):
        if facts["name"] == name.encode():
            return cast("bytes", facts["last-delivered-id"]).decode(), cast("int", facts["pending"])
    return None, 0


def _parse_entries(streams: object) -> list[LogEntry]:
    if not streams or isinstance(streams, ResponseError):
        return []
    # Under the newer protocol this is a mapping, under the older one a list of pairs.
    rows = next(iter(dict(cast("dict[bytes, _Rows]", streams)).values()))
    return [LogEntry(row_id.decode(), fields[1]) for row_id, fields in rows]
