"""Reading how often many users were shown banners, in one round trip to Valkey and one answer."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, cast
from uuid import UUID

import msgspec

from adloom.ledger.frequency.counts import GENERATION
from adloom.ledger.frequency.windows import Window, buckets_of
from adloom.ledger.stream import unavailable_when_away
from adloom.runtime.valkey import Valkey, again_if_cut_off

USERS_MAX: Final = 500  # Of one call: the server does nothing else meanwhile.

# Packed, so that the driver has one text to read instead of thousands.
_READ: Final = """
local prefix = 'adloom:frequency:' .. (redis.call('GET', KEYS[1]) or '0') .. ':'
local windows = tonumber(ARGV[1])
local found = {}
for i = windows + 2, #ARGV do
    for w = 2, windows + 1 do
        found[#found + 1] = redis.call('HGETALL', prefix .. ARGV[i] .. ARGV[w])
    end
end
return cmsgpack.pack(found)
"""

_decode: Final = msgspec.msgpack.Decoder(list[list[str]]).decode


class Shown(NamedTuple):
    """A banner, by its id as a text, and how often it was shown in a window of the calendar."""

    window: Window
    banner: str
    times: int


class FrequencyOfMany:
    """Valid impressions per user in the windows of the calendar, as of what is projected."""

    def __init__(self, valkey: Valkey) -> None:
        self._read = valkey.register_script(_READ)

    async def of(
        self, user_ids: Sequence[UUID], windows: Sequence[Window], now: datetime
    ) -> list[list[Shown]]:
        """Tell for each user all that is counted, in those of some windows that `now` lies in."""
        assert len(user_ids) <= USERS_MAX, "a call has a bound"
        if not windows:
            return [[] for _ in user_ids]
        suffixes = {bucket.window: bucket.suffix for bucket in buckets_of(now)}
        arguments = [len(windows), *(suffixes[window] for window in windows), *map(str, user_ids)]
        with unavailable_when_away():
            answer = await again_if_cut_off(lambda: self._read([GENERATION], arguments))
        hashes = _decode(cast("bytes", answer))
        return [
            _shown(windows, hashes[start : start + len(windows)])
            for start in range(0, len(hashes), len(windows))
        ]


def _shown(windows: Sequence[Window], hashes: Sequence[Sequence[str]]) -> list[Shown]:
    return [
        Shown(window, banner, int(times))
        for window, fields in zip(windows, hashes, strict=True)
        for banner, times in zip(fields[::2], fields[1::2], strict=True)
    ]
