"""The classified pages of one site: an immutable table, which a newer one replaces whole.

Messages about pages may come twice or late: a page that is older than the one in the table changes nothing.
"""

# pure

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import Final

import msgspec

from adloom.pages.model import PAGES_HELD_MAX, PageCategory

NEVER: Final = datetime.min.replace(tzinfo=UTC)
# A number is taken before its page is committed, so pages are read again for longer than that takes.
COMMITTED_SECONDS: Final = 10.0
AGAIN_SECONDS: Final = 30.0  # Whatever was missed, such as a site that is gone.


class PageState(StrEnum):
    """What is known of a page: what it is about, what it was about, or nothing."""

    KNOWN = "known"
    STALE = "stale"
    UNKNOWN = "unknown"


class PageEntry(msgspec.Struct, frozen=True, gc=False):
    """What a page is about, under its normalised URL; one without `classified_at` waits for its classification."""

    url: str
    version: int
    categories: tuple[PageCategory, ...] = ()
    classified_at: datetime | None = None
    expires_at: datetime | None = None

    def is_fresh(self, now: datetime) -> bool:
        return self.expires_at is not None and now < self.expires_at


class PageTable(msgspec.Struct, frozen=True, kw_only=True):
    """The pages of a site by URL, the oldest first, and the version up to which all changes are in it.

    `read_at_version` is the version at which all pages were read: what is not newer was seen then, or is gone.
    """

    version: int = 0
    read_at_version: int = 0
    entries: Mapping[str, PageEntry] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def find_state(self, url: str, now: datetime) -> PageState:
        entry = self.entries.get(url)
        if entry is None or entry.classified_at is None:
            return PageState.UNKNOWN
        return PageState.KNOWN if entry.is_fresh(now) else PageState.STALE

    def with_changes(self, changes: Iterable[PageEntry], *, pages_max: int = PAGES_HELD_MAX) -> "PageTable":
        """Return a table with changed pages, whichever of them are news; the oldest are evicted beyond the bound."""
        entries, version = dict(self.entries), self.version
        newest = make_age_key(next(reversed(entries.values()))) if entries else None
        is_sorted = True
        for change in changes:
            known = entries.get(change.url)
            if change.version <= (self.read_at_version if known is None else known.version):
                continue
            version = max(version, change.version)
            entries.pop(change.url, None)
            entries[change.url] = change
            age = make_age_key(change)
            is_sorted &= newest is None or age >= newest
            newest = age
        if not is_sorted:
            entries = _sort_by_age(entries)
        _evict_oldest(entries, pages_max)
        return PageTable(version=version, read_at_version=self.read_at_version, entries=entries)


NO_PAGES: Final = PageTable()


def build_table(entries: Iterable[PageEntry], *, version: int, pages_max: int = PAGES_HELD_MAX) -> PageTable:
    """Build the table of a site whose pages were all read, at a version."""
    by_url = _sort_by_age({entry.url: entry for entry in entries})
    _evict_oldest(by_url, pages_max)
    return PageTable(version=version, read_at_version=version, entries=by_url)


def make_age_key(entry: PageEntry) -> tuple[datetime, int]:
    """Sort key: the oldest first."""
    return entry.classified_at or NEVER, entry.version


def _sort_by_age(entries: dict[str, PageEntry]) -> dict[str, PageEntry]:
    return {entry.url: entry for entry in sorted(entries.values(), key=make_age_key)}


def _evict_oldest(entries: dict[str, PageEntry], pages_max: int) -> None:
    for url in list(islice(entries, max(0, len(entries) - pages_max))):
        del entries[url]


class PageMark:
    """When pages were last read, and as of which number; times are in seconds of any steady clock."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._moved_at = self._read_at = -math.inf

    def is_due(self, number: int, *, at: float) -> bool:
        """Whether to read pages now; the reader notes when it has."""
        if number != self._number:
            self._number, self._moved_at = number, at
        return self._read_at < self._moved_at + COMMITTED_SECONDS or at >= self._read_at + AGAIN_SECONDS

    def note_read(self, *, at: float) -> None:
        self._read_at = at
