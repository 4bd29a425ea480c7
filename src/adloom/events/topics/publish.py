"""The projection `topics`: publishes what counted, each event once, in the script that moves the cursor."""

from collections.abc import Sequence
from typing import Final

from adloom.events.followers.counted import CountedEntry, CountedLookup
from adloom.events.followers.fence import Argument, ExpectedValue, FollowerCommitter, read_cursor_at
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.events.topics.payload import TOPICS, build_message
from adloom.runtime.valkey import Valkey

TOPICS_PROJECTION: Final = "topics"
CURSOR: Final = "adloom:ledger:cursor:topics"
BATCH_MAX: Final = 500  # The server does nothing else while it takes a batch: this is about a millisecond.
ENTRIES_MAX: Final = 1_000_000  # Of each topic, about; half a gigabyte.

# A script that fails halfway keeps what it has done, so everything that can fail is checked first.
PUBLISH: Final = """
local entries_max, at = ARGV[first], first + 1
while at < #ARGV do
    local kind = redis.call('TYPE', ARGV[at]).ok
    if kind ~= 'stream' and kind ~= 'none' then
        return redis.error_reply('ADLOOM ' .. ARGV[at] .. ' is taken by a ' .. kind)
    end
    at = at + 2 + ARGV[at + 1]
end
at = first + 1
while at < #ARGV do
    local topic, count = ARGV[at], ARGV[at + 1]
    for i = at + 2, at + 1 + count do redis.call('XADD', topic, '*', 'event', ARGV[i]) end
    redis.call('XTRIM', topic, 'MAXLEN', '~', entries_max)
    at = at + 2 + count
end
"""


class TopicsProjection:
    """The projection `topics`."""

    def __init__(self, valkey: Valkey, lookup: CountedLookup, *, entries_max: int = ENTRIES_MAX) -> None:
        self._valkey = valkey
        self._commit = FollowerCommitter(valkey, lookup, PUBLISH).commit
        self._entries_max = entries_max

    async def read_cursor(self) -> str:
        return await read_cursor_at(self._valkey, CURSOR)

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Publish what counted and move the cursor, in one script; if nothing is kept, only move it."""
        wanted = records if self._entries_max else ()
        counted = await self._commit(
            wanted, self._arguments, expected=[ExpectedValue(CURSOR, after)], cursor=cursor
        )
        return BatchResult(counted=len(counted), repeated=len(wanted) - len(counted))

    def _arguments(self, counted: Sequence[CountedEntry]) -> list[Argument]:
        payloads: dict[str, list[bytes]] = {topic: [] for topic in TOPICS}
        for one in counted:
            if message := build_message(one):
                payloads[message.topic].append(message.payload)
        arguments: list[Argument] = [self._entries_max]
        for topic, several in payloads.items():
            if several:
                arguments += (topic, len(several), *several)
        return arguments
