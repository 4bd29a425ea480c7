"""The ledger in Valkey: one stream, one entry an event, read by cursor."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, cast

import msgspec
from redis.exceptions import NoScriptError

from adloom.core.errors import UnavailableError
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, again_if_cut_off

STREAM: Final = "adloom:ledger"
DEAD_STREAM: Final = "adloom:ledger:dead"
DEAD_ENTRIES_MAX: Final = 10_000  # The oldest dead letters go first; their count is in the metrics.
FIELD: Final = b"e"
BEGINNING: Final = "0-0"

# One command and one answer a batch. Against a pipeline of XADDs this takes a sixth of our CPU
# (3.5 and 20.8 µs an event in batches of 100), and a batch is in the file whole or not at all.
APPEND_SCRIPT: Final = """
local stream = KEYS[1]
for i = 1, #ARGV do redis.call('XADD', stream, '*', 'e', ARGV[i]) end
return #ARGV
"""

BEHIND_COUNTED_MAX: Final = 10_000  # A reader further behind is «at least» so far: counting has a price.
LAG_SCRIPT: Final = """
local unread = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])
if #unread == 0 then return {0, 0} end
local now = redis.call('TIME')
local oldest = string.match(unread[1][1], '^%d+')
return {#unread, now[1] * 1000 + math.floor(now[2] / 1000) - oldest}
"""

_Rows: TypeAlias = list[tuple[bytes, dict[bytes, bytes]]]


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One entry of the ledger; ids grow, and begin with the millisecond they were made in."""

    id: str
    data: bytes


class Lag(msgspec.Struct, frozen=True):
    """How far a reader is behind: entries it has not read, and the age of the oldest of them."""

    entries: int
    seconds: float


def entry_order(entry_id: str) -> tuple[int, int]:
    """Give what entry ids are ordered by: as texts they are not."""
    millis, _, sequence = entry_id.partition("-")
    return int(millis), int(sequence or 0)


class ValkeyLedger:
    """Appends to the stream, reads it and trims it."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._append_sha: str | None = None

    async def append(self, entries: Sequence[bytes]) -> None:
        """Append all, in order; acknowledged when they are as durable as the server is set to make them."""
        with _unavailable_when_away():
            # What is appended twice counts once, and a browser does not send its report again.
            count = await again_if_cut_off(lambda: self._append(entries))
        if count != len(entries):
            raise UnavailableError(f"The ledger answered {count!r} to {len(entries)} entries.")

    async def _append(self, entries: Sequence[bytes]) -> int:
        if self._append_sha is None:
            self._append_sha = str(await self._valkey.script_load(APPEND_SCRIPT))
        try:
            return await self._valkey.evalsha(self._append_sha, 1, STREAM, *entries)
        except NoScriptError:
            # The server was started anew and has run nothing yet.
            self._append_sha = None
            return await self._valkey.eval(APPEND_SCRIPT, 1, STREAM, *entries)

    async def read(self, after: str, *, count_max: int, wait_seconds: float) -> list[Entry]:
        """Read the entries after a cursor, and wait a little for the first where there are none."""
        wait_millis = max(1, int(wait_seconds * 1000))  # Zero would be for ever.
        with _unavailable_when_away():
            answer = await self._valkey.xread({STREAM: after}, count=count_max, block=wait_millis)
        # The stubs know every protocol version and decoding; ours answers pairs of bytes.
        streams = cast("list[tuple[bytes, _Rows]]", answer)
        return [
            Entry(row_id.decode(), fields.get(FIELD, b"")) for _, rows in streams for row_id, fields in rows
        ]

    async def bury(self, entry: Entry, *, reason: str) -> None:
        """Lay an entry that nobody can read aside, where an operator finds it."""
        with _unavailable_when_away():
            await self._valkey.xadd(
                DEAD_STREAM,
                {"entry": entry.id, "e": entry.data, "reason": reason},
                maxlen=DEAD_ENTRIES_MAX,
                approximate=True,
            )

    async def lag(self, cursor: str) -> Lag:
        """Tell how far a cursor is behind the newest entry."""
        with _unavailable_when_away():
            entries, age_millis = await self._valkey.eval(LAG_SCRIPT, 1, STREAM, cursor, BEHIND_COUNTED_MAX)
        return Lag(entries=entries, seconds=max(0, age_millis) / 1000)

    async def trim(self, before: str) -> int:
        """Forget the entries before an id, give or take a block of the stream."""
        with _unavailable_when_away():
            return await self._valkey.xtrim(STREAM, minid=before, approximate=True)


@contextmanager
def _unavailable_when_away() -> Generator[None]:
    try:
        yield
    except VALKEY_AWAY as error:
        raise UnavailableError(f"The ledger does not answer: {error!r}") from error
