"""Optimistic concurrency: a write names the state that its client saw, and is refused if that is gone.

A thing's state is named by `updatedAt`, so every write must move it forward, be it by a microsecond.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import msgspec

from adloom.core.errors import StaleWriteError, make_field_error

MICROSECOND: Final = timedelta(microseconds=1)
ANY: Final = "*"
MALFORMED: Final = 'must be * or the ETag of an answer, in its quotes: "2026-11-15T12:00:00Z"'
# RFC 9110, section 8.8.3: the characters of an entity tag; commas within its quotes do not part the list.
TAG: Final = re.compile(r'\s*(?P<weak>W/)?"(?P<opaque>[\x21\x23-\x7e\x80-\xff]*)"\s*')
# The same for the API's description: * or some entity tags, with blanks around them.
IF_MATCH_PATTERN: Final = r'^\s*(\*|(W/)?"[!#-~\u0080-\u00ff]*"(\s*,\s*(W/)?"[!#-~\u0080-\u00ff]*")*)\s*$'

V = TypeVar("V", bound=msgspec.Struct)


class Precondition(msgspec.Struct, frozen=True):
    """The states of which a client says that the thing is in one; None for whatever state it is in."""

    moments: frozenset[datetime] | None = None

    def check(self, thing: msgspec.Struct) -> None:
        """Raise unless the client knows the thing as it is; a thing without `updated_at` has no known state."""
        if self.moments is not None and getattr(thing, "updated_at", None) not in self.moments:
            raise StaleWriteError


UNCONDITIONAL: Final = Precondition()


def parse_if_match(if_match: str | None) -> Precondition:
    if if_match is None or if_match.strip() == ANY:
        return UNCONDITIONAL
    moments: set[datetime] = set()
    position = 0
    while True:
        tag = TAG.match(if_match, position)
        if tag is None:
            raise make_field_error("If-Match", MALFORMED)
        # A weak tag never matches here, and one that is no moment was never ours.
        moment = None if tag["weak"] else _parse_moment(tag["opaque"])
        moments |= set() if moment is None else {moment}
        position = tag.end()
        if position == len(if_match):
            return Precondition(frozenset(moments))
        if if_match[position] != ",":
            position = len(if_match)
        position += 1


def format_etag(updated_at: datetime) -> str:
    """Name a state, as the ETag of an answer: the same text as its `updatedAt`."""
    return f'"{updated_at.astimezone(UTC).isoformat().replace("+00:00", "Z")}"'


def move_forward(before: V, after: V) -> V:
    """Return a changed thing with a later moment than it had, also within the same microsecond."""
    moment: datetime | None = getattr(before, "updated_at", None)
    if moment is None or getattr(after, "updated_at") > moment:  # noqa: B009 - both are of one struct
        return after
    return msgspec.structs.replace(after, updated_at=moment + MICROSECOND)


def _parse_moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo is not None else None
