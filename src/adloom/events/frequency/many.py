"""Reading how often many users were shown banners, in one round trip to Valkey and one answer."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha1
from typing import Final, NamedTuple, cast

import msgspec
from redis.exceptions import NoScriptError

from adloom.events.frequency.counts import GENERATION
from adloom.events.frequency.windows import Window, list_buckets
from adloom.runtime.valkey import DedicatedConnection, Valkey, retry_if_disconnected, unavailable_when_away

WINDOWS_REMEMBERED_MAX: Final = 64
USERS_MAX: Final = 500  # Of one call: the server does nothing else meanwhile.

# Packed, so that the driver has one text to write and to read instead of thousands. Most users have not seen those
# few banners often enough that are asked about, and then nothing else of them is looked at. What is below the least
# that matters in a window is left out: most of what users have seen is.
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

# By window, how often a banner was shown at least for anybody to care.
MinimumCounts = Mapping[Window, int]
# A user, and the banners that matter, as texts: unless one of them was shown that often, nothing is told.
FrequencyQuery = tuple[str, ...]


class BannerFrequency(NamedTuple):
    """A banner, by its id as a text, and how often it was shown in a window of the calendar."""

    window: Window
    banner: str
    times: int


_READ_NAME: Final = sha1(_READ.encode(), usedforsecurity=False).hexdigest()  # As the server names it.
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(
    list[tuple[int, list[BannerFrequency]]]
).decode  # By the places of users.


class FrequencyReader:
    """Valid impressions per user in the windows of the calendar, as of what is projected."""

    def __init__(self, valkey: Valkey | DedicatedConnection) -> None:
        self._call: Callable[..., Awaitable[object]] = valkey.execute_command

    async def read(
        self, asked: Sequence[FrequencyQuery], least: MinimumCounts, now: datetime
    ) -> dict[int, list[BannerFrequency]]:
        """Tell all that users were shown at least so often, in those of some windows that `now` lies in.

        The answer has their places; of who is missing in it there is nothing to tell.
        """
        assert len(asked) <= USERS_MAX, "a call has a bound"
        if not least:
            return {}
        hour = now.replace(minute=0, second=0, microsecond=0)
        arguments = [_encode(asked), _packed_windows(hour, tuple(least.items()))]
        with unavailable_when_away():
            answer = await retry_if_disconnected(lambda: self._read(*arguments))
        return dict(_decode(cast("bytes", answer)))

    async def _read(self, asked: bytes, windows: bytes) -> object:
        try:
            return await self._call("EVALSHA", _READ_NAME, 1, GENERATION, asked, windows)
        except NoScriptError:  # The server was started anew and has run nothing yet.
            return await self._call("EVAL", _READ, 1, GENERATION, asked, windows)


@lru_cache(WINDOWS_REMEMBERED_MAX)
def _packed_windows(hour: datetime, least: tuple[tuple[Window, int], ...]) -> bytes:
    """Tell what the keys of windows end in during an hour, and how often matters."""
    suffixes = {bucket.window: bucket.suffix for bucket in list_buckets(hour)}
    return _encode([(window.value, suffixes[window], times) for window, times in least])
