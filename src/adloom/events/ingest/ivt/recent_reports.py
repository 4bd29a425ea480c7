"""Which reports of offers came before, in bounded memory: a repeated one counts for no bound of its address.

Only addresses that have come to a part of a bound are looked up, so that most events cost nothing here.
"""

# pure

from array import array
from typing import Final

from adloom.events.ingest.token import OfferToken

PLACES: Final = 1 << 15  # 256 KB: a report is forgotten when another one takes its place.
_MASK: Final = PLACES - 1


class RecentReports:
    """Remembers the last reports, so that nobody fills the bounds of an address with one token."""

    def __init__(self) -> None:
        self._reports = array("q", bytes(8 * PLACES))

    def count(self, offer: OfferToken, is_click: bool, address: bytes) -> int:  # noqa: FBT001 - on the path of every event
        """Remember a report of an address, and return by how many it counts: one, or none if it is repeated."""
        report = hash((offer.request, offer.slot, is_click, address))
        place = report & _MASK
        if self._reports[place] == report:
            return 0
        self._reports[place] = report
        return 1
