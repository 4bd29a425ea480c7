"""The log as a rebuild reads it: outside the groups of the projections, from any event to any other.

An entry of the stream may be a group of events, whose id is that of its last event. So where a range ends inside of a
group, the group is the first entry after the range.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Final, NamedTuple, cast

from adloom.events.log.event import LogEntry, parse_entry_id
from adloom.events.log.event_group import drop_before
from adloom.events.log.stream import STREAM, unpack_row
from adloom.events.projections import dead_letters
from adloom.runtime.valkey import Valkey, raise_if_away

# Valkey does nothing else meanwhile, and events wait for it: a few milliseconds.
IDS_A_CALL: Final = 2_000
ENTRIES_AT_ONCE: Final = 100  # Groups of events are up to 1.6 MB then.

# Only ids, in runs: within a millisecond they are numbered one after the other.
RUNS_SCRIPT: Final = f"""
local start, stop, ids_max = ARGV[1], ARGV[2], tonumber(ARGV[3])
local answer, count = {{''}}, 0
local at, first, last
while count < ids_max do
    local rows = redis.call('XRANGE', KEYS[1], start, stop, 'COUNT', math.min(ids_max, {ENTRIES_AT_ONCE}))
    for _, row in ipairs(rows) do
        local millis, sequence = string.match(row[1], '^(%d+)-(%d+)$')
        local events = row[2][1] == 'g' and tonumber(row[2][4]) or 1
        sequence, count = tonumber(sequence), count + events
        if millis == at and sequence - events == last then
            last = sequence
        else
            if at then
                answer[#answer + 1] = at
                answer[#answer + 1] = first
                answer[#answer + 1] = last
            end
            at, first, last = millis, sequence - events + 1, sequence
        end
    end
    if #rows == 0 then break end
    answer[1] = rows[#rows][1]
    start = '(' .. answer[1]
end
if at then
    answer[#answer + 1] = at
    answer[#answer + 1] = first
    answer[#answer + 1] = last
end
return answer
"""


class IdRun(NamedTuple):
    """Events of one millisecond, with all sequence numbers from the first to the last."""

    entry_ms: int
    first_seq: int
    last_seq: int


class IdRuns(NamedTuple):
    """Some events, and their number."""

    entries: int
    runs: list[IdRun]


class LogScanner:
    """Reads the log without being a consumer."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey

    async def find_oldest(self) -> str | None:
        """Return the id of the oldest event."""
        oldest = await self._read_entries("-", "+", 1)
        return oldest[0][0].id if oldest else None

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
        """Yield the ids of all events from one to another, both included."""
        bounds = parse_entry_id(first), parse_entry_id(last)
        start = first
        while True:
            end, runs = await self._find_runs(start, last, IDS_A_CALL)
            if not end:
                break
            if found := _cut_runs(runs, *bounds):
                yield found
            start = f"({end}"
        _, runs = await self._find_runs(f"({last}", "+", 1)
        if found := _cut_runs(runs, *bounds):
            yield found

    async def _find_runs(self, start: str, stop: str, ids_max: int) -> tuple[str, list[IdRun]]:
        with raise_if_away():
            answer: list[bytes | int] = await self._valkey.eval(RUNS_SCRIPT, 1, STREAM, start, stop, ids_max)
        end, *numbers = answer
        values = [int(number) for number in numbers]
        assert isinstance(end, bytes)
        return end.decode(), [IdRun(*values[at : at + 3]) for at in range(0, len(values), 3)]

    async def read(self, start: str, last: str, *, count_max: int) -> Sequence[LogEntry]:
        """Read events up to one; `start` is included unless it begins with `(`.

        They are a few more than `count_max` where the last of them are of one group.
        """
        millis, sequence = parse_entry_id(start.removeprefix("("))
        first = millis, sequence + start.startswith("(")
        found: list[LogEntry] = []
        while len(found) < count_max:
            count = min(count_max - len(found), ENTRIES_AT_ONCE)
            entries = await self._read_entries(start, last, count)
            found += drop_before([event for events in entries for event in events], first)
            if len(entries) < count:
                if last != "+":
                    found += await self._read_across(last, first)
                break
            start = f"({entries[-1][-1].id}"
        return found

    async def _read_across(self, last: str, first: tuple[int, int]) -> list[LogEntry]:
        """Read those events of the next group that are not after `last`."""
        until = parse_entry_id(last)
        entries = await self._read_entries(f"({last}", "+", 1)
        events = [event for events in entries for event in events if parse_entry_id(event.id) <= until]
        return drop_before(events, first)

    async def _read_entries(self, start: str, stop: str, count: int) -> list[list[LogEntry]]:
        """Read entries of the stream, each as its events."""
        with raise_if_away():
            answer = await self._valkey.xrange(STREAM, start, stop, count=count)
        # The stubs know every protocol version and decoding; ours answers pairs of bytes.
        rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", answer)
        return [unpack_row(*row) for row in rows]


def _cut_runs(runs: Iterable[IdRun], first: tuple[int, int], last: tuple[int, int]) -> IdRuns | None:
    """Return what of some runs lies between two ids; None where that is nothing."""
    left: list[IdRun] = []
    for millis, first_seq, last_seq in runs:
        _, begin = max((millis, first_seq), first) if millis == first[0] else (millis, first_seq)
        _, end = min((millis, last_seq), last) if millis == last[0] else (millis, last_seq)
        if first[0] <= millis <= last[0] and begin <= end:
            left.append(IdRun(millis, begin, end))
    return IdRuns(sum([run.last_seq - run.first_seq + 1 for run in left]), left) if left else None
