"""The laws, checked from outside: what visitors know against what the system reports.

The simulation and the tests that kill real processes use these same functions.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Final, NamedTuple, TypeAlias

import msgspec

from adloom.events.log.event import HARMLESS_MARKS, Mark

KINDS: Final = ("impression", "click")
SHOWN_MAX: Final = 5  # Of one kind of violation.
ENTRY_BYTES_SHOWN_MAX: Final = 40
TRIES_MIN: Final = 5  # Before an entry is given up.
_SECOND: Final = {"impression": Mark.SECOND_IMPRESSION, "click": Mark.SECOND_CLICK}
# What a good event may be marked with, for what other events of its offer there are.
_SET_BY_OTHERS: Final = HARMLESS_MARKS | {*_SECOND.values(), Mark.CLICK_WITHOUT_IMPRESSION}


class EventKey(NamedTuple):
    """What makes two reports the same event."""

    kind: str
    correlation_id: str


class Witness:
    """What visitors know: what they sent, and what was accepted."""

    def __init__(self) -> None:
        self.sent: set[EventKey] = set()
        self.accepted: set[EventKey] = set()
        # On which day of UTC an event happened, where the reader said so and every clock was right.
        self.days: dict[EventKey, date] = {}


class Row(NamedTuple):
    """An event as a table has it: its UTC day, its offer, and its marks."""

    key: EventKey
    day: date
    offer: tuple[str, int] | None
    marks: frozenset[str]

    @property
    def is_valid(self) -> bool:
        return HARMLESS_MARKS.issuperset(self.marks)


class Letter(NamedTuple):
    """A quarantined entry: its projection, its data, and how often it was tried."""

    projection: str
    data: bytes
    tries: int


Counts: TypeAlias = Mapping[tuple[date, str], int]  # By UTC day and kind.


class StoredEvents(msgspec.Struct, frozen=True, kw_only=True):
    """What the system reports, by each of its ways of reporting."""

    rows: Sequence[Row]
    counts: Mapping[str, Counts]  # By where they stand: live counters, a rollup, an answer of the API.
    invalid_counts: Counts
    topic: Sequence[EventKey]


def find_violations(witness: Witness, stored: StoredEvents) -> list[str]:
    """Return which laws are broken, and by what."""
    return [
        *_check_counting(witness, [row.key for row in stored.rows]),
        *_check_dating(witness, stored.rows),
        *_check_agreement(stored),
        *_check_publishing(stored),
        *_check_marking(stored.rows),
    ]


def find_id_violations(repeated: Iterable[str]) -> list[str]:
    """Every event of the log has an id of its own, in a group or not."""
    return _keep_some(f"the id {entry_id} was given to several events" for entry_id in repeated)


def find_quarantine_violations(spoiled: Collection[bytes], letters: Collection[Letter]) -> list[str]:
    """Entries that cannot be applied are quarantined, once, after retries; nothing else is."""
    quarantined = Counter(letter.data for letter in letters)
    return [
        *_keep_some(
            f"{_describe_entry(entry)} was never quarantined"
            for entry in sorted(set(spoiled) - quarantined.keys())
        ),
        *_keep_some(
            f"{_describe_entry(entry)} was quarantined, and is good"
            for entry in sorted(quarantined.keys() - set(spoiled))
        ),
        *_keep_some(
            f"{_describe_entry(entry)} was quarantined {count} times"
            for entry, count in quarantined.items()
            if count > 1
        ),
        *_keep_some(
            f"{_describe_entry(letter.data)} was quarantined after {letter.tries} tries"
            for letter in letters
            if letter.tries < TRIES_MIN
        ),
    ]


def _check_counting(witness: Witness, rows: Sequence[EventKey]) -> list[str]:
    """Law 1: an accepted event is counted exactly once, and nothing that was never sent is counted."""
    known = set(rows)
    return [
        *_keep_some(f"{key} was accepted and is not counted" for key in sorted(witness.accepted - known)),
        *_keep_some(f"{key} is counted and was never sent" for key in sorted(known - witness.sent)),
        *_keep_some(f"{key} has {count} rows" for key, count in sorted(Counter(rows).items()) if count > 1),
    ]


def _check_dating(witness: Witness, rows: Iterable[Row]) -> list[str]:
    """Check that an event counts on the UTC day on which it happened, whenever it arrives."""
    return _keep_some(
        f"{row.key} happened on {witness.days[row.key]} and is counted on {row.day}"
        for row in rows
        if witness.days.get(row.key, row.day) != row.day
    )


def _check_agreement(stored: StoredEvents) -> list[str]:
    """Every figure agrees with the rows."""
    expected = Counter((row.day, row.key.kind) for row in stored.rows)
    invalid = Counter((row.day, row.key.kind) for row in stored.rows if not row.is_valid)
    found = [
        line
        for name, counts in stored.counts.items()
        for line in _describe_difference(name, expected, counts)
    ]
    return found + _describe_difference("what is not valid", invalid, stored.invalid_counts)


def _describe_difference(name: str, expected: Counts, counted: Counts) -> list[str]:
    days = sorted(expected.keys() | counted.keys())
    return _keep_some(
        f"{name}: {expected.get(day, 0)} {day[1]}s of {day[0]} are counted as {counted.get(day, 0)}"
        for day in days
        if expected.get(day, 0) != counted.get(day, 0)
    )


def _check_publishing(stored: StoredEvents) -> list[str]:
    """Every counted event is published once."""
    rows, published = Counter(row.key for row in stored.rows), Counter(stored.topic)
    return _keep_some(
        f"{key} is counted {rows[key]} times and published {published[key]} times"
        for key in sorted(rows.keys() | published.keys())
        if rows[key] != published[key]
    )


def _check_marking(rows: Iterable[Row]) -> list[str]:
    """In any order: one event of a kind is an offer's first, and clicks know their impression."""
    found: list[str] = []
    of_offers: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        if row.offer is not None:
            of_offers[row.offer].append(row)
    for offer, events in of_offers.items():
        for kind in KINDS:
            of_kind = [row for row in events if row.key.kind == kind]
            good = [row for row in of_kind if row.marks <= _SET_BY_OTHERS]
            firsts = sum(_SECOND[kind] not in row.marks for row in of_kind)
            good_firsts = sum(_SECOND[kind] not in row.marks for row in good)
            # A bad one before the first good one is no second one either.
            if good_firsts != bool(good) or not bool(of_kind) <= firsts <= good_firsts + 1:
                found.append(
                    f"offer {offer} has {firsts} first {kind}s of {len(of_kind)}, {good_firsts} good"
                )
        is_seen = any(row.key.kind == "impression" for row in events)
        found += [
            f"{row.key} is {'' if is_seen else 'not '}marked as a click without its impression"
            for row in events
            if row.key.kind == "click" and (Mark.CLICK_WITHOUT_IMPRESSION in row.marks) == is_seen
        ]
    return _keep_some(found)


def _keep_some(found: Iterable[str]) -> list[str]:
    lines = list(found)
    left = len(lines) - SHOWN_MAX
    return [*lines[:SHOWN_MAX], f"… and {left} more like that"] if left > 0 else lines


def _describe_entry(entry: bytes) -> str:
    return repr(entry[:ENTRY_BYTES_SHOWN_MAX])
