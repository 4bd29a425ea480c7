"""Reads how often users were shown banners, and erases it: one round trip to Valkey each."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha1
from typing import Final, NamedTuple, TypeAlias, cast
from uuid import UUID

import msgspec
from redis.exceptions import NoScriptError

from adloom.core.ids import BannerId
from adloom.events.followers.fence import ERASURES
from adloom.events.frequency.windows import Window, list_buckets, list_live_buckets
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.valkey import Valkey, raise_if_away, retry_if_disconnected

# Counts have generations, so that a new one can be built beside the current one.
GENERATION: Final = "adloom:frequency:generation"  # The current one; none means the first.
GENERATIONS: Final = "adloom:frequency:generations"  # How many were ever begun.
BUILDING: Final = "adloom:frequency:building"
FIRST_GENERATION: Final = "0"

Counts: TypeAlias = Mapping[Window, Mapping[BannerId, int]]

# Count the erasure first: a batch that was prepared before it is refused after it.
_ERASE: Final = """
redis.call('INCR', KEYS[1])
local generations = {redis.call('GET', KEYS[2]) or '0'}
generations[2] = redis.call('GET', KEYS[3]) or nil
local gone = 0
for _, generation in ipairs(generations) do
    for i = 2, #ARGV do
        gone = gone + redis.call('UNLINK', 'adloom:frequency:' .. generation .. ':' .. ARGV[1] .. ARGV[i])
    end
end
return gone
"""


def make_generation_prefix(generation: str) -> str:
    return f"adloom:frequency:{generation}:"


def make_cursor_key(generation: str) -> str:
    """Return the key of the last entry that a generation has counted."""
    return f"{make_generation_prefix(generation)}cursor"


def make_rebuilt_key(generation: str) -> str:
    """Return the key of the last entry that a generation has from its rebuild."""
    return f"{make_generation_prefix(generation)}rebuilt"


WINDOWS_REMEMBERED_MAX: Final = 64
USERS_MAX: Final = 500  # In one call: the server does nothing else meanwhile.

# Packed, so that the driver writes and reads one text instead of thousands. Most users have not seen the banners in
# question often enough, and nothing else of them is read then. Counts below the least that matters in a window are
# left out: most are.
_READ: Final = """
local prefix = 'adloom:frequency:' .. (redis.call('GET', KEYS[1]) or '0') .. ':'
local asked, windows = cmsgpack.unpack(ARGV[1]), cmsgpack.unpack(ARGV[2])
local found = {}

local function matters(key, one)
    for _, window in ipairs(windows) do
        local counted = redis.call('HMGET', key .. window[2], unpack(one, 2))
        for _, times in ipairs(counted) do
            if times and tonumber(times) >= window[3] then return true end
        end
    end
    return false
end

local function all_shown(key)
    local shown = {}
    for _, window in ipairs(windows) do
        local name, suffix, least = unpack(window)
        local counted = redis.call('HGETALL', key .. suffix)
        for f = 2, #counted, 2 do
            local times = tonumber(counted[f])
            if times >= least then shown[#shown + 1] = {name, counted[f - 1], times} end
        end
    end
    return shown
end

for place, one in ipairs(asked) do
    local key = prefix .. one[1]
    if #one == 1 or matters(key, one) then
        local shown = all_shown(key)
        if #shown > 0 then found[#found + 1] = {place - 1, shown} end
    end
end
return cmsgpack.pack(found)
"""

# By window, the least count that matters to any cap.
MinimumCounts = Mapping[Window, int]
# A user and the banners in question, as texts: unless one of them was shown often enough, nothing is returned.
FrequencyQuery = tuple[str, ...]


class BannerFrequency(NamedTuple):
    """How often a banner, by its id as a text, was shown in a window of the calendar."""

    window: Window
    banner: str
    times: int


_READ_NAME: Final = sha1(_READ.encode(), usedforsecurity=False).hexdigest()  # As the server computes it.
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(
    list[tuple[int, list[BannerFrequency]]]
).decode  # By the positions of users.


class FrequencyCounters:
    """Valid impressions of many users in the windows of the calendar, as far as they are projected."""

    def __init__(self, valkey: Valkey | DedicatedConnection) -> None:
        self._call: Callable[..., Awaitable[object]] = valkey.execute_command

    async def read(
        self, asked: Sequence[FrequencyQuery], least: MinimumCounts, now: datetime
    ) -> dict[int, list[BannerFrequency]]:
        """Return all banners that users were shown at least so often, in the windows of `now`.

        The result is by the users' positions; users without such a banner are missing.
        """
        assert len(asked) <= USERS_MAX, "a call has a bound"
        if not least:
            return {}
        hour = now.replace(minute=0, second=0, microsecond=0)
        arguments = [_encode(asked), _pack_windows(hour, tuple(least.items()))]
        with raise_if_away():
            answer = await retry_if_disconnected(lambda: self._read(*arguments))
        return dict(_decode(cast("bytes", answer)))

    async def read_user(self, user_id: UUID, now: datetime) -> Counts:
        found = await self.read([(str(user_id),)], dict.fromkeys(Window, 1), now)
        counts: dict[Window, dict[BannerId, int]] = {window: {} for window in Window}
        for window, banner, times in found.get(0, ()):
            counts[window][BannerId(UUID(banner))] = times
        return counts

    async def erase_user(self, user_id: UUID, now: datetime) -> int:
        """Erase a user, after the tables have; return the number of buckets.

        A batch that was prepared before cannot bring the user back: it is prepared again.
        """
        suffixes = [bucket.suffix for bucket in list_live_buckets(now)]
        arguments = [ERASURES, GENERATION, BUILDING, str(user_id), *suffixes]
        with raise_if_away():
            gone = await retry_if_disconnected(lambda: self._call("EVAL", _ERASE, 3, *arguments))
        return cast("int", gone)

    async def _read(self, asked: bytes, windows: bytes) -> object:
        try:
            return await self._call("EVALSHA", _READ_NAME, 1, GENERATION, asked, windows)
        except NoScriptError:  # The server was restarted and does not know the script.
            return await self._call("EVAL", _READ, 1, GENERATION, asked, windows)


@lru_cache(WINDOWS_REMEMBERED_MAX)
def _pack_windows(hour: datetime, least: tuple[tuple[Window, int], ...]) -> bytes:
    """Pack the suffixes of the windows' keys during an hour, and the least counts."""
    suffixes = {bucket.window: bucket.suffix for bucket in list_buckets(hour)}
    return _encode([(window.value, suffixes[window], times) for window, times in least])
