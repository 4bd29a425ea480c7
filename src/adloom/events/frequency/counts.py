"""Reading how often a user was shown banners, and forgetting it: one round trip to Valkey each."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias, cast
from uuid import UUID

from adloom.core.ids import BannerId
from adloom.events.followers.fence import ERASURES
from adloom.events.frequency.windows import Window, list_buckets, list_live_buckets
from adloom.runtime.valkey import Valkey, retry_if_disconnected, unavailable_when_away

# Counts are kept in generations, so that a new one can be built beside the one that is read.
GENERATION: Final = "adloom:frequency:generation"  # The one that is read; none is the first.
GENERATIONS: Final = "adloom:frequency:generations"  # How many were ever begun.
BUILDING: Final = "adloom:frequency:building"
FIRST_GENERATION: Final = "0"
BANNERS_MAX: Final = (
    1_000  # That one call asks about: a script can spread no more than a few thousand values.
)

Counts: TypeAlias = Mapping[Window, Mapping[BannerId, int]]

_FIELDS: Final = """
local of_user = 'adloom:frequency:' .. (redis.call('GET', KEYS[1]) or '0') .. ':' .. ARGV[1]
local found = {}
for i = 2, 6 do
    if #ARGV > 6 then
        found[i - 1] = redis.call('HMGET', of_user .. ARGV[i], unpack(ARGV, 7))
    else
        found[i - 1] = redis.call('HGETALL', of_user .. ARGV[i])
    end
end
return found
"""
# The erasure is counted first: a batch that was counted before it cannot come after it any more.
_FORGET: Final = """
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


def generation_prefix(generation: str) -> str:
    """Give what the keys of a generation begin with."""
    return f"adloom:frequency:{generation}:"


def cursor_key(generation: str) -> str:
    """Name the key that tells how far a generation has counted."""
    return f"{generation_prefix(generation)}cursor"


def rebuilt_key(generation: str) -> str:
    """Name the key that tells up to which entry a generation was rebuilt from the tables, and has everything."""
    return f"{generation_prefix(generation)}rebuilt"


class FrequencyCounts:
    """Valid impressions per user and banner in the windows of the calendar, as of what is projected."""

    def __init__(self, valkey: Valkey) -> None:
        self._fields = valkey.register_script(_FIELDS)
        self._forget = valkey.register_script(_FORGET)

    async def read(self, user_id: UUID, banner_ids: Sequence[BannerId], now: datetime) -> Counts:
        """Tell how often a user was shown some banners, in the windows that `now` lies in."""
        assert len(banner_ids) <= BANNERS_MAX
        if not banner_ids:
            return {window: {} for window in Window}
        hashes = cast("list[list[bytes | None]]", await self._read(user_id, now, banner_ids))
        return {
            window: {banner: int(count or 0) for banner, count in zip(banner_ids, counts, strict=True)}
            for window, counts in zip(Window, hashes, strict=True)
        }

    async def read_all(self, user_id: UUID, now: datetime) -> Counts:
        """Tell everything that is counted of a user in the windows that `now` lies in."""
        hashes = cast("list[list[bytes]]", await self._read(user_id, now, ()))
        return {
            window: {
                BannerId(UUID(banner.decode())): int(count)
                for banner, count in zip(fields[::2], fields[1::2], strict=True)
            }
            for window, fields in zip(Window, hashes, strict=True)
        }

    async def forget(self, user_id: UUID, now: datetime) -> int:
        """Forget a user, after the tables have; tell how many buckets there were.

        A batch that was counted before cannot bring the user back: it is counted again.
        """
        suffixes = [bucket.suffix for bucket in list_live_buckets(now)]
        keys, arguments = [ERASURES, GENERATION, BUILDING], [str(user_id), *suffixes]
        with unavailable_when_away():
            return await retry_if_disconnected(lambda: self._forget(keys, arguments))

    async def _read(self, user_id: UUID, now: datetime, banner_ids: Sequence[BannerId]) -> object:
        suffixes = [bucket.suffix for bucket in list_buckets(now)]
        arguments = [str(user_id), *suffixes, *map(str, banner_ids)]
        with unavailable_when_away():
            return await retry_if_disconnected(lambda: self._fields([GENERATION], arguments))
