"""The log as a rebuild reads it: outside the groups of the projections, from any entry to any other."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final, NamedTuple, cast

from adloom.events.log.event import LogEntry
from adloom.events.log.stream import FIELD, STREAM
from adloom.events.projections import dead_letters
from adloom.runtime.valkey import Valkey, raise_if_away

# Valkey does nothing else meanwhile, and events wait for it: a few milliseconds.
IDS_A_CALL: Final = 2_000

# Only ids, in runs: within a millisecond they are numbered one after the other.
RUNS_SCRIPT: Final = """
local rows = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])
if #rows == 0 then return {} end
local answer = {#rows, rows[#rows][1]}
local at, first, last
for i = 1, #rows do
    local millis, sequence = string.match(rows[i][1], '^(%d+)-(%d+)$')
    sequence = tonumber(sequence)
    if millis == at and sequence == last + 1 then
        last = sequence
    else
        if at then
            answer[#answer + 1] = at
            answer[#answer + 1] = first
            answer[#answer + 1] = last
        end
        at, first, last = millis, sequence, sequence
    end
end
answer[#answer + 1] = at
answer[#answer + 1] = first
answer[#answer + 1] = last
return answer
"""


class IdRun(NamedTuple):
    """Entries of one millisecond, with all sequence numbers from the first to the last."""

    entry_ms: int
    first_seq: int
    last_seq: int


class IdRuns(NamedTuple):
    """Some entries, and their number."""

    entries: int
    runs: list[IdRun]


class LogScanner:
    """Reads the log without being a consumer."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def find_oldest(self) -> str | None:
        with raise_if_away():
            rows = cast("list[tuple[bytes, object]]", await self._valkey.xrange(STREAM, count=1))
        return rows[0][0].decode() if rows else None

    async def was_trimmed(self) -> bool:
        """Return whether entries were ever trimmed: then more will be, while we read."""
        with raise_if_away():
            if not await self._valkey.exists(STREAM):
                return False
            facts = cast("dict[str, int]", await self._valkey.xinfo_stream(STREAM))
        return facts["entries-added"] > facts["length"]

    async def is_dead(self, projection: str, entry_id: str) -> bool:
        with raise_if_away():
            return bool(await self._valkey.hexists(dead_letters.INDEX, f"{projection} {entry_id}"))

    async def scan_ids(self, first: str, last: str) -> AsyncGenerator[IdRuns]:
        """Yield the ids of all entries from one to another, both included."""
        start = first
        while True:
            with raise_if_away():
                answer: list[bytes | int] = await self._valkey.eval(
                    RUNS_SCRIPT, 1, STREAM, start, last, IDS_A_CALL
                )
            if not answer:
                return
            count, end, *numbers = answer
            values = [int(number) for number in numbers]
            yield IdRuns(int(count), [IdRun(*values[at : at + 3]) for at in range(0, len(values), 3)])
            assert isinstance(end, bytes)
            start = f"({end.decode()}"

    async def read(self, start: str, last: str, *, count_max: int) -> Sequence[LogEntry]:
        """Read entries up to one; `start` is included unless it begins with `(`."""
        with raise_if_away():
            answer = await self._valkey.xrange(STREAM, start, last, count=count_max)
        # The stubs know every protocol version and decoding; ours answers pairs of bytes.
        rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", answer)
        return [LogEntry(row_id.decode(), fields.get(FIELD, b"")) for row_id, fields in rows]
