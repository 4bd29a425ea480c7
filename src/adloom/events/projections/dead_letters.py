"""Dead letters: entries that a projection could not apply, in a stream of their own.

They stay until a person retries or deletes them. A projection that finds no room for one waits: what was
accepted is never dropped by itself.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias, cast

import msgspec

from adloom.core.errors import UnavailableError
from adloom.events.log.event import LogEntry
from adloom.events.log.event_group import unpack_group
from adloom.events.log.stream import ADD_GROUPS, DEAD_STREAM, STREAM
from adloom.runtime.valkey import Valkey, raise_if_away

LETTERS_MAX: Final = 10_000
# Which entries of which projection are here, so that an entry is added once.
INDEX: Final = f"{DEAD_STREAM}:entries"
PAGE: Final = 100

BURY_SCRIPT: Final = """
local dead, index = KEYS[1], KEYS[2]
local field = ARGV[2] .. ' ' .. ARGV[3]
if redis.call('HEXISTS', index, field) == 1 then return 1 end
if redis.call('XLEN', dead) >= tonumber(ARGV[1]) then return 0 end
local time = redis.call('TIME')
local at = time[1] .. string.format('%03d', math.floor(time[2] / 1000))
local id = redis.call(
    'XADD', dead, '*', 'projection', ARGV[2], 'entry', ARGV[3], 'reason', ARGV[4], 'tries', ARGV[5],
    'at', at, 'e', ARGV[6], 'again', ARGV[7]
)
redis.call('HSET', index, field, id)
return 1
"""

# Removes a letter and appends it to the log, both or neither. Without the third key it is only removed. With a number of
# events it is a group that a worker of an older version could not read.
REMOVE_SCRIPT: Final = f"""
{ADD_GROUPS}
local dead, index, ledger = KEYS[1], KEYS[2], KEYS[3]
local found = redis.call('XRANGE', dead, ARGV[1], ARGV[1])
if #found == 0 then return 0 end
local letter = {{}}
local fields = found[1][2]
for i = 1, #fields, 2 do letter[fields[i]] = fields[i + 1] end
local again = letter['again'] or letter['e']
if ledger and ARGV[2] == '0' then
    redis.call('XADD', ledger, '*', 'e', again)
elseif ledger then
    add_groups(ledger, {{ARGV[2], again}})
end
redis.call('XDEL', dead, ARGV[1])
redis.call('HDEL', index, (letter['projection'] or '') .. ' ' .. (letter['entry'] or ''))
return 1
"""

_Rows: TypeAlias = list[tuple[bytes, dict[bytes, bytes]]]


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that was given up; `id` is its place among the dead letters."""

    id: str
    projection: str
    entry_id: str
    reason: str
    tries: int
    at: datetime
    data: bytes


class DeadLetterQueue:
    """Lists, retries and deletes dead letters."""

    def __init__(self, valkey: Valkey, *, letters_max: int = LETTERS_MAX) -> None:
        self._valkey = valkey
        self._letters_max = letters_max

    async def add(  # noqa: PLR0913 - a letter has as many fields
        self, projection: str, entry_id: str, data: bytes, *, reason: str, tries: int, again: bytes
    ) -> None:
        """Put an entry aside; repeated calls keep it once. UnavailableError when there is no room."""
        letter = (projection, entry_id, reason, tries, data, again)
        with raise_if_away():
            is_buried = await self._valkey.eval(
                BURY_SCRIPT, 2, DEAD_STREAM, INDEX, self._letters_max, *letter
            )
        if not is_buried:
            raise UnavailableError(
                f"There are {self._letters_max} dead letters already; see `adloom ledger dead list`."
            )

    async def count(self) -> int:
        with raise_if_away():
            return await self._valkey.xlen(DEAD_STREAM)

    async def count_by_projection(self) -> Mapping[str, int]:
        with raise_if_away():
            fields = cast("list[bytes]", await self._valkey.hkeys(INDEX))
        counts: dict[str, int] = {}
        for field in fields:
            projection = field.decode().partition(" ")[0]
            counts[projection] = counts.get(projection, 0) + 1
        return counts

    async def list_after(self, after: str = "-", *, count_max: int = PAGE) -> Sequence[DeadLetter]:
        first = after if after == "-" else f"({after}"
        with raise_if_away():
            rows = await self._valkey.xrange(DEAD_STREAM, min=first, count=count_max)
        # The stubs know every protocol version and decoding.
        return [_build_letter(row_id, fields) for row_id, fields in cast("_Rows", rows)]

    async def get(self, letter_id: str) -> DeadLetter | None:
        with raise_if_away():
            rows = cast("_Rows", await self._valkey.xrange(DEAD_STREAM, letter_id, letter_id))
        return _build_letter(*rows[0]) if rows else None

    async def retry(self, letter_id: str) -> bool:
        """Append an entry to the log again and remove it here; False if there is none."""
        letter = await self.get(letter_id)
        events = len(unpack_group(letter.data)) if letter is not None else 0
        with raise_if_away():
            return bool(
                await self._valkey.eval(REMOVE_SCRIPT, 3, DEAD_STREAM, INDEX, STREAM, letter_id, events)
            )

    async def delete(self, letter_id: str) -> bool:
        """Remove an entry for good; False if there is none."""
        with raise_if_away():
            return bool(await self._valkey.eval(REMOVE_SCRIPT, 2, DEAD_STREAM, INDEX, letter_id))


def _build_letter(row_id: bytes, fields: dict[bytes, bytes]) -> DeadLetter:
    def read_text(name: bytes) -> str:
        return fields.get(name, b"").decode(errors="replace")

    return DeadLetter(
        id=row_id.decode(),
        projection=read_text(b"projection"),
        entry_id=read_text(b"entry"),
        reason=read_text(b"reason"),
        tries=int(read_text(b"tries")),
        at=datetime.fromtimestamp(int(read_text(b"at")) / 1000, UTC),
        data=fields.get(b"e", b""),
    )


class Redelivery(msgspec.Struct, frozen=True, array_like=True, tag_field="k", tag="again.v1"):
    """An entry that is appended again for one projection only: a follower that could not apply it the first time.

    The others have applied the first one and skip this. The follower takes it for the first one, under whose id
    the tables say whether it counted.
    """

    projection: str
    entry_id: str
    data: bytes


encode_redelivery: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Redelivery).decode


def wrap_redelivery(entry: LogEntry, projection: str) -> bytes:
    """Wrap an entry for one projection; what is wrapped already stays as it is."""
    if unwrap_redelivery(entry.data) is not None:
        return entry.data
    return encode_redelivery(Redelivery(projection=projection, entry_id=entry.id, data=entry.data))


def unwrap_redelivery(data: bytes) -> Redelivery | None:
    try:
        return _decode(data)
    except msgspec.DecodeError:
        return None
