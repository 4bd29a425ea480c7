"""Groups of events: several events that are appended together are one entry of the stream.

The server needs 5 to 10 µs to append an entry, and 5 to 8 to send it to a reader, whether it has one event or sixty.
Each event of a group has an id of its own. The last event has the id of the group; those before it have the sequence
numbers before it, in the same millisecond. So the server's commands for "after an id" and "before an id" are right for
events, too. A cursor may be inside of a group: the server returns the whole group after it, and the reader drops the
events up to the cursor (`drop_before`).

An event that names a user is never in a group, because a user is erased by deleting the user's entries.
"""

# pure

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from adloom.events.log.event import SHORT_NAMES, LogEntry, parse_entry_id

FIELD: Final = b"e"  # Of an entry that is one event.
# Of an entry that is a group: a MessagePack list of its events, and their number, which scripts read.
GROUP_FIELD: Final = b"g"
COUNT_FIELD: Final = b"n"

GROUP_EVENTS_MIN: Final = 4  # Appending costs the server 10 to 15 µs for a group, and 7 for a single event.
GROUP_EVENTS_MAX: Final = 500
# Readers and scripts ask for a number of entries, whatever their size: the server keeps an answer in memory until it is
# sent, and does nothing else while a script runs. With four times as many bytes, a search for a user took it 16 to 32 ms a
# call instead of 2 to 5, and a projection could ask for a quarter as many entries, of whatever kind (`READ_ENTRIES_MAX`):
# events that stay alone took the worker 10 µs to read instead of 4.
GROUP_BYTES_MAX: Final = 2**14

BLOCK: Final = 2**20  # Far more numbers than the server gives to single events in a millisecond.

_encode: Final = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_decode: Final = msgspec.msgpack.Decoder(list[bytes]).decode
# An encoded event is a map with short names; these bytes are before a user's id in it. They are not valid UTF-8, so no text
# contains them; an id may, by chance.
USER_KEY: Final = _encode({SHORT_NAMES["user_id"]: UUID(int=0)})[1:-16]


class EventGroup(msgspec.Struct, frozen=True):
    """A group to append: the number of its events, and the events, encoded."""

    count: int
    packed: bytes


class GroupIds:
    """Chooses the ids of groups by the server's time, in one of several processes that append to the same stream.

    The server takes an id only if it is greater than all ids before, but of a group it knows only the last number. So a
    group gets the end of a block of numbers, and uses the last few of it: the ids that the server has given to other
    entries in that millisecond are before the block, or at its beginning. If two processes choose the same block, the
    server refuses one of them. If its clock is set back, it refuses all until the time of its newest entry is past.
    """

    def __init__(self) -> None:
        self._ahead: float | None = None  # By how many seconds the server's clock is ahead of ours.
        self._last = (0, 0)  # The millisecond of the last id, and the first number of the next block in it.
        self._used = -1  # The last millisecond in which the script has appended.

    def note_time(self, seconds: float, *, at: float) -> None:
        """Note the server's time, as it was just before `at`; that is a time of any monotonic clock."""
        self._ahead = seconds - at

    def note_used(self, millis: int) -> None:
        """Note a millisecond in which the script has appended: no id is chosen in it, nor before it.

        While the server's clock is set back, all events get ids in one millisecond, without a bound on their number. If
        the newest one is just below the end of a block, the server accepts a group whose first events have its number.
        """
        self._used = max(self._used, millis)

    def choose(self, count: int, *, at: float) -> list[str] | None:
        """Return the ids of so many groups; None if the server's time is not known, or was set back."""
        if self._ahead is None:
            return None
        millis = int((at + self._ahead) * 1000)
        if millis < self._last[0] or millis <= self._used:
            return None
        first = self._last[1] if millis == self._last[0] else 0
        self._last = millis, first + count * BLOCK
        return [f"{millis}-{first + number * BLOCK - 1}" for number in range(1, count + 1)]


def group_events(events: Sequence[bytes]) -> tuple[Sequence[bytes], list[EventGroup]]:
    """Divide the events of an append: return those that become entries of their own, and groups of the others.

    Groups are appended first. So the order is kept among the events in groups, and among the others, but not between
    the two. Nothing relies on that: two delivery processes append the events of one offer in any order.
    """
    if len(events) < GROUP_EVENTS_MIN:
        return events, []
    alone, others = [], events
    if USER_KEY in b"".join(events):  # Mostly it is not, and one search for all takes half of the time.
        alone = [event for event in events if USER_KEY in event]
        if len(alone) == len(events):  # To search them again would double what this takes.
            return alone, []
        others = [event for event in events if USER_KEY not in event]
    groups: list[EventGroup] = []
    for part in _split(others):
        if len(part) < GROUP_EVENTS_MIN:
            alone.extend(part)
        else:
            groups.append(pack_group(part))
    return alone, groups


def pack_group(events: Sequence[bytes]) -> EventGroup:
    return EventGroup(len(events), _encode(events))


def unpack_group(packed: bytes) -> list[bytes]:
    """Return the events of a group; none if it cannot be decoded."""
    try:
        return _decode(packed)
    except msgspec.DecodeError:
        return []


def unpack_entry(entry_id: str, field: bytes, value: bytes) -> list[LogEntry]:
    """Return the events of an entry of the stream; a group that cannot be decoded is returned as one unreadable event."""
    if field == GROUP_FIELD and (events := unpack_group(value)):
        millis, _, last = entry_id.partition("-")
        return [
            LogEntry(f"{millis}-{sequence}", event)
            for sequence, event in enumerate(events, int(last) - len(events) + 1)
        ]
    return [LogEntry(entry_id, value)]


def drop_before(entries: list[LogEntry], first: tuple[int, int]) -> list[LogEntry]:
    """Return the entries from an id on: the server sends whole groups, and the first may begin before it."""
    for place, entry in enumerate(entries):
        if parse_entry_id(entry.id) >= first:
            return entries[place:] if place else entries
    return []


def _split(events: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Split events into parts that are small enough for a group."""
    if len(events) <= GROUP_EVENTS_MAX and sum(map(len, events)) <= GROUP_BYTES_MAX:
        return [events]
    parts: list[Sequence[bytes]] = []
    part, size = list[bytes](), 0
    for event in events:
        if part and (len(part) == GROUP_EVENTS_MAX or size + len(event) > GROUP_BYTES_MAX):
            parts.append(part)
            part, size = [], 0
        part.append(event)
        size += len(event)
    return [*parts, part] if part else parts
