"""The shortlists of one site in memory: an immutable table, which a newer one replaces whole."""

# pure

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from adloom.market.shortlist.model import ShortlistCandidate

Candidates = tuple[ShortlistCandidate, ...]


class ListedPage(msgspec.Struct, frozen=True, gc=False):
    """What may fill the slots of a page, by slug; a page that is gone has none."""

    url: str
    version: int
    slots: Mapping[str, Candidates]
    expires_at: datetime


class ShortlistTable(msgspec.Struct, frozen=True, kw_only=True):
    """The shortlists of a site by URL, and the version up to which all changes are in it."""

    version: int = 0
    pages: Mapping[str, ListedPage] = {}

    def __len__(self) -> int:
        return len(self.pages)

    def find(self, url: str, slot: str, now: datetime) -> Candidates:
        """Return the candidates of a slot; what has expired is never served."""
        page = self.pages.get(url)
        return () if page is None or page.expires_at <= now else page.slots.get(slot, ())

    def with_changes(self, changes: Iterable[ListedPage]) -> "ShortlistTable":
        """Return a table with newer shortlists; an older one changes nothing."""
        pages, version = dict(self.pages), self.version
        for change in changes:
            known = pages.get(change.url)
            version = max(version, change.version)
            if known is not None and known.version >= change.version:
                continue
            if change.slots:
                pages[change.url] = change
            else:
                pages.pop(change.url, None)
        return ShortlistTable(version=version, pages=pages)


NO_SHORTLISTS: Final = ShortlistTable()
