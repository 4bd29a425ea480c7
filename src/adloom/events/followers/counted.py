"""What the event tables made of entries: which of them counted, and with which marks.

A projection that follows the tables does not decide again: of the entries with one correlation id, the
one that the row was made from is the event, and what the row says of it is what is known.
"""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from adloom.events.log.event import LogEvent
from adloom.events.ports import DecodedEntry


class CountedEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry that counted; the user is None where none was given, or was erased since."""

    entry_id: str
    happening: LogEvent
    user_id: UUID | None
    marks: tuple[str, ...] = ()
    is_valid: bool = True


class CountedLookup(Protocol):
    """Who knows what became of entries."""

    async def find_counted(self, records: Sequence[DecodedEntry]) -> list[CountedEntry]:
        """Give those that counted, in their order; UnavailableError when that is not known."""
        ...
