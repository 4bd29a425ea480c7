"""The projection `frequency`: counts valid impressions per user and capped banner, each once, in the script that moves the cursor."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from adloom.core.ids import BannerId
from adloom.events.followers.counted import CountedEntry, CountedLookup
from adloom.events.followers.fence import (
    Argument,
    ExpectedValue,
    FollowerCommitter,
    read_cursor_at,
    read_text,
    split_batch,
)
from adloom.events.frequency.capped_store import FindCapped
from adloom.events.frequency.counts import (
    FIRST_GENERATION,
    GENERATION,
    make_cursor_key,
    make_generation_prefix,
    make_rebuilt_key,
)
from adloom.events.frequency.windows import list_buckets
from adloom.events.log.event import BEGINNING, Impression, parse_entry_id
from adloom.events.ports import BatchResult, DecodedEntry
from adloom.runtime.valkey import Valkey, raise_if_away

FREQUENCY: Final = "frequency"
PART_MAX: Final = 200  # The server does nothing else while it counts a part: a few milliseconds.
SECONDS_AN_HOUR: Final = 3_600

# A bucket gets its expiry with its first count; a lifetime's moves on, never back. A bucket whose expiry is past vanishes at
# once: late events count as long as a cap may still ask for them, and no longer.
COUNT: Final = """
local prefix, hours, shown = unpack(cmsgpack.unpack(ARGV[first]))
for _, one in ipairs(shown) do
    local of_user, banner, times = prefix .. one[1], one[2], one[4]
    for _, bucket in ipairs(hours[one[3]]) do
        local key = of_user .. bucket[1]
        redis.call('HINCRBY', key, banner, times)
        -- Asking is not written to the disk, setting is. A late event does not shorten a lifetime.
        if redis.call('EXPIRETIME', key) < bucket[2] then redis.call('EXPIREAT', key, bucket[2]) end
    end
end
"""


class ShownCount(NamedTuple):
    """A user was shown a banner so many times in an hour, which is counted from the epoch."""

    user: str
    banner: str
    hour: int
    times: int


class Generation(NamedTuple):
    """Where counts go, while other keys are as expected; entries up to `rebuilt` are in it already."""

    name: str
    expected: Sequence[ExpectedValue]
    rebuilt: str = BEGINNING


class FrequencyProjection:
    """The projection `frequency`, for the current generation or for one that is being built."""

    def __init__(
        self,
        valkey: Valkey,
        lookup: CountedLookup,
        find_capped: FindCapped,
        *,
        building: Generation | None = None,
    ) -> None:
        self._valkey = valkey
        self._find_capped = find_capped
        self._commit = FollowerCommitter(valkey, lookup, COUNT).commit
        self._is_building = building is not None
        self._generation = building or Generation(FIRST_GENERATION, ())

    async def read_cursor(self) -> str:
        """Return the last entry that was counted, in the current generation."""
        if not self._is_building:
            self._generation = await self._read_current()
        return await read_cursor_at(self._valkey, make_cursor_key(self._generation.name))

    async def commit(self, records: Sequence[DecodedEntry], *, after: str, cursor: str) -> BatchResult:
        """Count valid impressions of capped banners and move the cursor, in one script, or in several for a large batch.

        Each part moves the cursor to its own end, so an interruption between two counts nothing twice.
        """
        generation = self._generation
        rebuilt = parse_entry_id(generation.rebuilt)
        # An entry from before the rebuild comes again when it is redelivered: it is counted already.
        impressions = [
            record for record in records if _has_user(record) and parse_entry_id(record.entry_id) > rebuilt
        ]
        if impressions:
            capped = await self._find_capped()
            impressions = [record for record in impressions if _is_of(record, capped)]
        counted: list[CountedEntry] = []
        for part, end in split_batch(impressions, after=after, cursor=cursor, part_max=PART_MAX):
            counted += await self._commit(
                part,
                lambda found: [pack_counts(generation.name, sum_shown(found))],
                expected=[ExpectedValue(make_cursor_key(generation.name), after), *generation.expected],
                cursor=end,
            )
            after = end
        return BatchResult(counted=sum(map(_is_counted, counted)), repeated=len(impressions) - len(counted))

    async def _read_current(self) -> Generation:
        with raise_if_away():
            pointer = await read_text(self._valkey, GENERATION)
            name = pointer or FIRST_GENERATION
            rebuilt = await read_text(self._valkey, make_rebuilt_key(name))
        return Generation(name, [ExpectedValue(GENERATION, pointer)], rebuilt or BEGINNING)


def sum_shown(counted: Sequence[CountedEntry]) -> list[ShownCount]:
    times = Counter(
        (one.user_id, one.event.banner_id, int(one.event.occurred_at.timestamp()) // SECONDS_AN_HOUR)
        for one in counted
        if isinstance(one.event, Impression) and _is_counted(one)
    )
    return [ShownCount(str(user), str(banner), hour, count) for (user, banner, hour), count in times.items()]


def pack_counts(generation: str, rows: Sequence[ShownCount]) -> Argument:
    """Pack counts for the script: an hour decides the buckets, so each hour's are sent once."""
    places = {hour: place for place, hour in enumerate(dict.fromkeys(row.hour for row in rows), start=1)}
    hours = [_list_buckets(hour) for hour in places]
    counts = [(row.user, row.banner, places[row.hour], row.times) for row in rows]
    return msgspec.msgpack.encode((make_generation_prefix(generation), hours, counts))


def _list_buckets(hour: int) -> list[tuple[str, int]]:
    moment = datetime.fromtimestamp(hour * SECONDS_AN_HOUR, UTC)
    return [(bucket.suffix, bucket.expires_at) for bucket in list_buckets(moment)]


def _has_user(record: DecodedEntry) -> bool:
    return isinstance(record.event, Impression) and record.event.user_id is not None


def _is_of(record: DecodedEntry, banners: Collection[BannerId]) -> bool:
    return isinstance(record.event, Impression) and record.event.banner_id in banners


def _is_counted(counted: CountedEntry) -> bool:
    return counted.is_valid and counted.user_id is not None
