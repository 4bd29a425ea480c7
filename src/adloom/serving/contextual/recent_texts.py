"""Pages whose text was just taken: while it is being classified, no other reader is asked for it."""

# pure

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

from adloom.core.ids import SiteId

PAGES_MAX: Final = 10_000
WAIT: Final = timedelta(seconds=30)  # A page that is not classified by then may be asked for again.


class RecentTexts:
    """Bounded memory of pages by site and URL: of too many the first is forgotten."""

    def __init__(self, *, pages_max: int = PAGES_MAX) -> None:
        self._pages_max = pages_max
        self._taken: OrderedDict[tuple[SiteId, str], datetime] = OrderedDict()

    def __len__(self) -> int:
        return len(self._taken)

    def add(self, site_id: SiteId, url: str, now: datetime) -> None:
        self._taken[site_id, url] = now + WAIT
        self._taken.move_to_end((site_id, url))
        if len(self._taken) > self._pages_max:
            self._taken.popitem(last=False)

    def find_wait(self, site_id: SiteId, url: str, now: datetime) -> timedelta | None:
        """Return how long a page's classification may still take, or None if no text of it was taken lately."""
        until = self._taken.get((site_id, url))
        if until is None:
            return None
        if until <= now:
            del self._taken[site_id, url]
            return None
        return until - now
