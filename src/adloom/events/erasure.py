"""Finds a user's id in the streams, and removes it. Topics and dead letters are cleaned at once; the log when it is applied.

The rows of removed entries stay, without the user. A rebuild copies rows whose entries the log does not have.
"""

from collections.abc import AsyncGenerator
from typing import Final, cast
from uuid import UUID

from adloom.events.cursor_store import translate_database_errors
from adloom.events.log.event_group import pack_group, unpack_group
from adloom.events.log.personal import remove_user
from adloom.events.log.stream import DEAD_STREAM, STREAM
from adloom.events.projections.dead_letters import INDEX, Redelivery, encode_redelivery, unwrap_redelivery
from adloom.events.tables.erasure_store import take_entries
from adloom.events.topics.publish import TOPICS
from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey, raise_if_away

REMOVED_A_CALL: Final = 500
ENTRIES_A_CALL: Final = 100  # The server does nothing else meanwhile: one or two milliseconds.

FIND_SCRIPT: Final = """
local rows = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2])
local answer = {#rows > 0 and rows[#rows][1] or ''}
local function has_id(values)
    for v = 2, #values, 2 do
        for n = 3, #ARGV do
            if string.find(values[v], ARGV[n], 1, true) then return true end
        end
    end
end
for _, row in ipairs(rows) do
    if has_id(row[2]) then answer[#answer + 1] = row[1] end
end
return answer
"""
# Add the letter as it is to be, and remove it as it was, both or neither. Without new data it is only removed.
REPLACE_SCRIPT: Final = """
local dead, index = KEYS[1], KEYS[2]
local found = redis.call('XRANGE', dead, ARGV[1], ARGV[1])
if #found == 0 then return 0 end
local letter, fields = {}, found[1][2]
for i = 1, #fields, 2 do letter[fields[i]] = fields[i + 1] end
local field = (letter['projection'] or '') .. ' ' .. (letter['entry'] or '')
if ARGV[2] == '' then
    redis.call('HDEL', index, field)
else
    letter['e'], letter['again'], letter['reason'] = ARGV[2], ARGV[3], 'its user was erased'
    local values = {}
    for name, value in pairs(letter) do
        values[#values + 1] = name
        values[#values + 1] = value
    end
    redis.call('HSET', index, field, redis.call('XADD', dead, '*', unpack(values)))
end
redis.call('XDEL', dead, ARGV[1])
return 1
"""


async def clean_letter(valkey: Valkey, letter_id: str) -> None:
    with raise_if_away():
        rows = await valkey.xrange(DEAD_STREAM, letter_id, letter_id)
        if not rows:
            return
        # The stubs know every protocol version and decoding; ours answers pairs of bytes.
        [(_, fields)] = cast("list[tuple[bytes, dict[bytes, bytes]]]", rows)
        data = _clean(fields.get(b"e", b""))
        again = _clean(fields.get(b"again", fields.get(b"e", b"")))
        await valkey.eval(REPLACE_SCRIPT, 2, DEAD_STREAM, INDEX, letter_id, data, again)


def _clean(data: bytes) -> bytes:
    """Return data without its user; nothing where nothing can be counted from it."""
    if events := unpack_group(
        data
    ):  # Of an older worker, which could not read it. An address may have an id, too.
        left = [cleaned for event in events if (cleaned := _clean(event))]
        return pack_group(left).packed if left else b""
    redelivery = unwrap_redelivery(data)
    if redelivery is None:
        return remove_user(data) or b""
    inner = remove_user(redelivery.data)
    if inner is None:
        return b""
    return encode_redelivery(Redelivery(redelivery.projection, redelivery.entry_id, inner))


class StreamSearch:
    """Finds the entries that name a user, in any spelling."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._find = valkey.register_script(FIND_SCRIPT)

    async def find_in_log(self, user_id: UUID) -> list[str]:
        return [entry_id async for page in self._search(STREAM, user_id) for entry_id in page]

    async def clean_topics(self, user_id: UUID) -> None:
        """Remove the user's messages: those who read the topics have had them."""
        for topic in TOPICS:
            async for page in self._search(topic, user_id):
                if page:
                    with raise_if_away():
                        await self._valkey.xdel(topic, *page)

    async def clean_letters(self, user_id: UUID) -> None:
        """Take the user out of dead letters, which may still be counted."""
        async for page in self._search(DEAD_STREAM, user_id):
            for letter_id in page:
                await clean_letter(self._valkey, letter_id)

    async def _search(self, stream: str, user_id: UUID) -> AsyncGenerator[list[str]]:
        spellings = (str(user_id), user_id.hex, user_id.bytes)
        start = "-"
        while True:
            with raise_if_away():
                answer = await self._find([stream], [start, ENTRIES_A_CALL, *spellings])
            last, *found = [one.decode() for one in cast("list[bytes]", answer)]
            if not last:
                return
            yield found
            start = f"({last}"


class ErasedEntries:
    """The entries that are to be removed."""

    def __init__(self, pool: Pool, valkey: Valkey) -> None:
        self._pool = pool
        self._valkey = valkey

    async def sweep(self, applied: str) -> None:
        """Remove the entries up to one that all projections have applied."""
        with translate_database_errors("The database does not return entries of erased users"):
            async with self._pool.acquire() as connection:
                while True:
                    async with connection.transaction():
                        found = await take_entries(connection, applied, REMOVED_A_CALL)
                        if found:
                            with raise_if_away():
                                await self._valkey.xdel(STREAM, *found)
                    if len(found) < REMOVED_A_CALL:
                        return
