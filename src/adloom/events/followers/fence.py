"""Applying a batch in Valkey exactly once: one script that compares, applies and moves the cursor.

The script does nothing if the cursor was moved by a second worker, by a replay, or by ourselves in a commit whose
answer was lost. It does nothing either if a user was erased after the tables were read for the batch, so that
nothing of that user comes back.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias, cast

from redis.exceptions import ResponseError

from adloom.core.errors import UnavailableError
from adloom.events.followers.counted import CountedEntry, CountedLookup
from adloom.events.log.event import BEGINNING, parse_entry_id
from adloom.events.ports import CursorMovedError, DecodedEntry
from adloom.runtime.valkey import Valkey, raise_if_away

ERASURES: Final = "adloom:ledger:erasures"  # How many there have been.
TRIES_MAX: Final = 5  # Each stands for one more erasure within the milliseconds that a batch takes.

Argument: TypeAlias = str | bytes | int

# Expected values of the keys, the new value of the first of them, then the body's arguments from `first` on.
_FENCED: Final = """
for i = 1, #KEYS do
    if (redis.call('GET', KEYS[i]) or '') ~= ARGV[i] then return i end
end
local first = #KEYS + 2
{body}
redis.call('SET', KEYS[1], ARGV[#KEYS + 1])
return 0
"""


class ExpectedValue(NamedTuple):
    """What a key must hold for a script to run; an empty text stands for no key."""

    key: str
    value: str


class FencedScript:
    """A Lua script that runs only while some keys hold expected values, and then sets the first of them."""

    def __init__(self, valkey: Valkey, body: str) -> None:
        self._script = valkey.register_script(_FENCED.format(body=body))

    async def run(
        self, expected: Sequence[ExpectedValue], value: str, arguments: Sequence[Argument]
    ) -> str | None:
        """Run it; return the key that was not as expected, or None if it ran."""
        keys = [one.key for one in expected]
        values = [*(one.value for one in expected), value, *arguments]
        with raise_if_away():
            try:
                refused_by: int = await self._script(keys, values)
            except ResponseError as error:  # The server's message says what is wrong.
                raise UnavailableError(f"Valkey refuses the batch: {error}") from error
        return keys[refused_by - 1] if refused_by else None


class FollowerCommitter:
    """Commits batches of a projection that follows the event tables."""

    def __init__(self, valkey: Valkey, lookup: CountedLookup, body: str) -> None:
        self._valkey = valkey
        self._lookup = lookup
        self._script = FencedScript(valkey, body)

    async def commit(
        self,
        records: Sequence[DecodedEntry],
        arguments: Callable[[Sequence[CountedEntry]], Sequence[Argument]],
        *,
        expected: Sequence[ExpectedValue],
        cursor: str,
    ) -> list[CountedEntry]:
        """Apply the counted entries of a batch, as `arguments` packs them, and return them; `expected[0]` is the cursor."""
        for _ in range(TRIES_MAX):
            with raise_if_away():
                erasures = await read_text(self._valkey, ERASURES)
            counted = await self._lookup.find_counted(records) if records else []
            fences = (*expected, ExpectedValue(ERASURES, erasures))
            refused_by = await self._script.run(fences, cursor, arguments(counted))
            if refused_by is None:
                return counted
            if refused_by != ERASURES:
                raise CursorMovedError
        raise UnavailableError("Users are being erased faster than a batch can be committed.")


def split_batch(
    records: Sequence[DecodedEntry], *, after: str, cursor: str, part_max: int
) -> Iterator[tuple[Sequence[DecodedEntry], str]]:
    """Split a batch into parts, each with the cursor behind it."""
    if len(records) <= part_max:
        yield records, cursor
        return
    part: list[DecodedEntry] = []
    for record in records:
        # A redelivered entry has its first id, which is behind the cursor: no cut after it.
        if len(part) >= part_max and parse_entry_id(part[-1].entry_id) > parse_entry_id(after):
            after = part[-1].entry_id
            yield part, after
            part = []
        part.append(record)
    yield part, cursor


async def read_cursor_at(valkey: Valkey, key: str) -> str:
    """Return the cursor at a key; it starts at the beginning of the log."""
    with raise_if_away():
        if cursor := await read_text(valkey, key):
            return cursor
        await valkey.set(key, BEGINNING, nx=True)
        return await read_text(valkey, key)


async def read_text(valkey: Valkey, key: str) -> str:
    """Return the text at a key, empty if there is none."""
    # The stubs know every decoding; ours answers bytes.
    value = cast("bytes | None", await valkey.get(key))
    return value.decode() if value else ""
