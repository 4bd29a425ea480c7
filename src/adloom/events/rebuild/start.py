"""Where in the ledger a replay begins, as somebody writes it."""

import re
from datetime import UTC, date, datetime, time
from typing import Final

from adloom.events.log.entry import BEGINNING

FROM_THE_BEGINNING: Final = "beginning"
_ENTRY_ID: Final = re.compile(r"\d{10,}-\d+", re.ASCII)


class UnknownStartError(Exception):
    """What was written names no place in the ledger."""


def parse_start(text: str) -> str:
    """Give the least id that an entry from there on can have."""
    if text == FROM_THE_BEGINNING:
        return BEGINNING
    if _ENTRY_ID.fullmatch(text):
        return text
    moment = _moment(text)
    if moment is None:
        raise UnknownStartError(
            f"{text!r} is no place in the ledger. Expected the id of an entry (1794700800000-0), a time with"
            f" its zone (2026-11-15T00:00:00Z), a day of UTC (2026-11-15), or `{FROM_THE_BEGINNING}`."
        )
    return f"{max(0, int(moment.timestamp() * 1000))}-0"


def _moment(text: str) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
