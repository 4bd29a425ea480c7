"""Groups of events: several events of one append are one entry of the stream.

For an entry the server needs 5 to 10 µs to append it, and 5 to 8 to hand it to a reader, whether it has one event or
sixty. Each event of a group has its own id all the same: the group's is that of its last event, and the others have the
sequence numbers before it, in the same millisecond. So what the server does by ids (read after one, trim before one)
fits the events. Only a cursor inside of a group is for its readers: they leave out what is before it.

An event that names a user is never in a group: to erase a user, entries are removed.
"""

# pure

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from adloom.events.log.event import SHORT_NAMES, LogEntry, parse_entry_id

FIELD: Final = b"e"  # Of an entry with one event.
# Of a group: its events, each as MessagePack's bytes, and their number, for scripts.
GROUP_FIELD: Final = b"g"
COUNT_FIELD: Final = b"n"

GROUP_EVENTS_MIN: Final = 4  # The server takes 10 to 15 µs for a group, and 7 for an event of its own.
GROUP_EVENTS_MAX: Final = 500
# A reader asks for a number of entries, and the server has the answer in memory until it is sent.
GROUP_BYTES_MAX: Final = 2**16

BLOCK: Final = 2**20  # Far more numbers than the server gives to single events in a millisecond.

_encode: Final = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_decode: Final = msgspec.msgpack.Decoder(list[bytes]).decode
# Every entry is a map with short names, so this is what each with a user has in it. No text can have it: it is no UTF-8.
USER_KEY: Final = _encode({SHORT_NAMES["user_id"]: UUID(int=0)})[1:-16]


class EventGroup(msgspec.Struct, frozen=True):
    """Events that are appended as one entry."""

    count: int
    packed: bytes


class GroupIds:
    """Chooses the ids of groups by the server's time, for one process of several that append to the same stream.

    The server takes an id only if it is beyond all that there were, but knows only the last number of a group. So a group
    gets the end of a block of numbers, of which it uses the last few: whatever the server has given to others in that
    millisecond is before the block, or at its beginning. Other processes may choose the same block: then the server
    refuses one of them. If the server's clock is set back it refuses all, until its newest entry is over.
    """

    def __init__(self) -> None:
        self._ahead: float | None = None  # By how many seconds the server's clock is ahead of ours.
        self._last = (0, 0)  # The millisecond of the last group, and where the next block begins in it.
        self._used = -1  # The last millisecond in which the script has appended.

    def note_time(self, seconds: float, *, at: float) -> None:
        """Note the server's time, as it was a moment before `at`, a time of any steady clock."""
        self._ahead = seconds - at

    def note_used(self, millis: int) -> None:
        """Note a millisecond that may have any number of events: while a clock is set back, all go into the same one.

        If their number were just below the end of a block, the server would take a group with numbers of theirs.
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


def names_user(event: bytes) -> bool:
    """Return whether an event names a user; now and then, by its ids, also of one that does not."""
    return USER_KEY in event


def group_events(events: Sequence[bytes]) -> tuple[Sequence[bytes], list[EventGroup]]:
    """Return the events of an append that stay alone, and the groups of the others.

    Groups come first in the log, so the order is kept among them and among those that stay alone only. Nothing relies on
    more: two delivery processes append the events of one offer in any order.
    """
    if len(events) < GROUP_EVENTS_MIN:
        return events, []
    alone = [event for event in events if USER_KEY in event]
    others = [event for event in events if USER_KEY not in event] if alone else events
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
    """Return the events of a group; none where it is no group."""
    try:
        return _decode(packed)
    except msgspec.DecodeError:
        return []


def unpack_entry(entry_id: str, field: bytes, value: bytes) -> list[LogEntry]:
    """Return the events of an entry of the stream; a group that cannot be read is one event, which cannot be either."""
    if field == GROUP_FIELD and (events := unpack_group(value)):
        millis, _, last = entry_id.partition("-")
        return [
            LogEntry(f"{millis}-{sequence}", event)
            for sequence, event in enumerate(events, int(last) - len(events) + 1)
        ]
    return [LogEntry(entry_id, value)]


def drop_before(entries: list[LogEntry], first: tuple[int, int]) -> list[LogEntry]:
    """Drop what a reader has got of a group besides: its events before an id."""
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
