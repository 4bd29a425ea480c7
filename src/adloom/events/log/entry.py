"""An entry of the event log, and the order of entries."""

# pure

from typing import Final

import msgspec

BEGINNING: Final = "0-0"


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """One entry of the event log; its id begins with the millisecond in which it was appended."""

    id: str
    data: bytes


def parse_entry_id(entry_id: str) -> tuple[int, int]:
    """Return a sort key: ids do not sort as texts."""
    millis, _, sequence = entry_id.partition("-")
    return int(millis), int(sequence or 0)
