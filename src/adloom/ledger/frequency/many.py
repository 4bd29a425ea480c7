"""Reading how often many users were shown banners, in one round trip to Valkey and one answer."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple, cast

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
        local counted = redis.call('HGETALL', prefix .. ARGV[i] .. ARGV[w])
        if #counted > 0 then found[#found + 1] = {i - windows - 2, w - 2, counted} end
    end
end
return cmsgpack.pack(found)
"""

# The place of a user, that of a window, and banners each with their number.
_decode: Final = msgspec.msgpack.Decoder(list[tuple[int, int, list[str]]]).decode


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
        self, users: Sequence[str], windows: Sequence[Window], now: datetime
    ) -> dict[int, list[Shown]]:
        """Tell all that is counted of users, in those of some windows that `now` lies in.

        The answer has their places; who is missing in it was shown nothing.
        """
        assert len(users) <= USERS_MAX, "a call has a bound"
        if not windows:
            return {}
        suffixes = {bucket.window: bucket.suffix for bucket in buckets_of(now)}
        arguments = [len(windows), *(suffixes[window] for window in windows), *users]
        with unavailable_when_away():
            answer = await again_if_cut_off(lambda: self._read([GENERATION], arguments))
        shown: dict[int, list[Shown]] = {}
        for place, number, counted in _decode(cast("bytes", answer)):
            window = windows[number]
            shown.setdefault(place, []).extend(
                [
                    Shown(window, banner, int(times))
                    for banner, times in zip(*[iter(counted)] * 2, strict=True)
                ]
            )
        return shown
