"""Finds a user's id in the streams. Topics and dead letters are cleaned at once; the log when it is applied."""

from collections.abc import AsyncGenerator
from typing import Final, cast
from uuid import UUID

from adloom.events.erasure.letters import clean_letter
from adloom.events.log.stream import DEAD_STREAM, STREAM
from adloom.events.topics.publish import TOPICS
from adloom.runtime.valkey import Valkey, unavailable_when_away

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
                    with unavailable_when_away():
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
            with unavailable_when_away():
                answer = await self._find([stream], [start, ENTRIES_A_CALL, *spellings])
            last, *found = [one.decode() for one in cast("list[bytes]", answer)]
            if not last:
                return
            yield found
            start = f"({last}"
