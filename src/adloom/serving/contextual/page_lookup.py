"""What a delivery process knows of the page that asks: its categories, its shortlists, and whether its text is wanted."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from http import HTTPStatus
from typing import Final, Protocol

import msgspec

from adloom.core.ids import SiteId
from adloom.events.ingest.token import SLOT_MAX
from adloom.market.shortlist.table import NO_SHORTLISTS, ListedPage, ShortlistTable
from adloom.pages.follow.page_table import PageEntry, PageState, PageTable
from adloom.pages.url import NormalizedUrl
from adloom.runtime.http.fast.fast_routes import FastAnswer, encode_head
from adloom.serving.contextual.prepare import PreparedSlot
from adloom.serving.contextual.recent_texts import RecentTexts
from adloom.serving.index.index import Index
from adloom.serving.index.site import IndexedSite

ALL_NUMBERS: Final = tuple(range(SLOT_MAX + 1))  # Of slots in a request where none is missing.
ASK_AGAIN: Final = timedelta(hours=1)  # Where no text would be taken now.

PAGE_UNKNOWN: Final = "page_unknown"
PAGE_STALE: Final = "page_stale"
SITE_SUSPENDED: Final = "site_suspended"
WARMUP: Final = "warmup"


class PageTables(Protocol):
    """The pages of sites that are in memory."""

    def find(self, site_id: SiteId) -> PageTable | None: ...


class ShortlistTables(Protocol):
    """The shortlists of sites that are in memory."""

    def find(self, site_id: SiteId) -> ShortlistTable | None: ...


class FoundPage(msgspec.Struct, frozen=True, gc=False):
    """What is known of the page that asks; no shortlist that has expired."""

    url: NormalizedUrl
    state: PageState
    entry: PageEntry | None = None
    listed: ListedPage | None = None


class PlannedSlots(msgspec.Struct, frozen=True, gc=False):
    """Slots of a page that may have ads, with their numbers in a request."""

    slots: Sequence[PreparedSlot]
    numbers: Sequence[int]
    auctions: int  # So many have candidates,
    offers: int  # and so many have some that page, site and catalog allow.


class PreparedPage(PlannedSlots, frozen=True, gc=False):
    """Slots of a page that is known, as long as nothing that they were made from is replaced or expires."""

    site: IndexedSite
    look: FoundPage
    pages: PageTable
    shortlists: ShortlistTable
    until: datetime


class KnownPages:
    """Looks pages up in what is in memory."""

    def __init__(self, pages: PageTables, shortlists: ShortlistTables, recent: RecentTexts) -> None:
        self._find_pages = pages.find
        self._find_shortlists = shortlists.find
        self._recent = recent

    def find_page(self, site: IndexedSite, url: NormalizedUrl, now: datetime) -> FoundPage:
        table = self._find_pages(site.id)
        entry = None if table is None else table.entries.get(url.text)
        if entry is None or entry.classified_at is None:
            return FoundPage(url, PageState.UNKNOWN, entry)
        if not entry.is_fresh(now):
            return FoundPage(url, PageState.STALE, entry)
        listed = self.find_shortlists(site).pages.get(url.text)
        # What has expired is never served.
        return FoundPage(
            url, PageState.KNOWN, entry, listed if listed is not None and listed.expires_at > now else None
        )

    def prepare(self, planned: PlannedSlots, site: IndexedSite, look: FoundPage) -> PreparedPage | None:
        """Remember slots of a page that may have ads."""
        pages, shortlists = self._find_pages(site.id), self._find_shortlists(site.id)
        entry, listed = look.entry, look.listed
        if pages is None or shortlists is None or entry is None or entry.expires_at is None:
            return None
        until = entry.expires_at if listed is None else min(entry.expires_at, listed.expires_at)
        return PreparedPage(
            planned.slots,
            planned.numbers,
            planned.auctions,
            planned.offers,
            site,
            look,
            pages,
            shortlists,
            until,
        )

    def holds(self, known: PreparedPage, index: Index, now: datetime) -> bool:
        """Whether nothing has changed since; it also says that the tables are in use."""
        site_id = known.site.id
        if (
            self._find_pages(site_id) is not known.pages
            or self._find_shortlists(site_id) is not known.shortlists
            or now >= known.until
        ):
            return False
        for one in known.slots:  # noqa: SIM110 - in a third of the time
            if one.index is not index:
                return False
        return True

    def find_shortlists(self, site: IndexedSite) -> ShortlistTable:
        return self._find_shortlists(site.id) or NO_SHORTLISTS

    def find_wait(self, site: IndexedSite | None, look: FoundPage, now: datetime) -> timedelta:
        """Return when a page's text is wanted: now, if that is not after zero."""
        if site is None:
            return ASK_AGAIN
        entry = look.entry
        expires_in = timedelta(0) if entry is None or entry.expires_at is None else entry.expires_at - now
        if look.state is PageState.KNOWN:
            return expires_in
        if not site.is_verified:
            return ASK_AGAIN
        return self._recent.find_wait(site.id, look.url.text, now) or min(expires_in, timedelta(0))


def plan_slots(plans: Sequence[object]) -> PlannedSlots:
    """Return the slots among plans that may have ads."""
    found = [(number, plan) for number, plan in enumerate(plans) if isinstance(plan, PreparedSlot)]
    numbers = ALL_NUMBERS if len(found) == len(plans) else tuple(number for number, _ in found)
    return PlannedSlots(
        tuple(plan for _, plan in found),
        numbers,
        sum(bool(plan.shortlist.candidates) for _, plan in found),
        sum(bool(plan.shortlist.ready) for _, plan in found),
    )


def find_obstacle(site: IndexedSite, state: PageState) -> str | None:
    """Return what keeps all ads from a page."""
    if site.is_suspended:
        return SITE_SUSPENDED
    if state is PageState.UNKNOWN:
        return PAGE_UNKNOWN
    if state is PageState.STALE:
        return PAGE_STALE
    return WARMUP if site.is_warming_up else None


@lru_cache(100)
def answer_no_ad(state: PageState, reason: str) -> FastAnswer:
    """Answer for one slot that it has no ad."""
    return FastAnswer(
        encode_head(
            HTTPStatus.NO_CONTENT,
            None,
            (b"cache-control", b"no-store"),
            (b"adloom-page", state.value.encode()),
            (b"adloom-reason", reason.encode()),
            (b"access-control-expose-headers", b"adloom-page, adloom-reason"),
        )
    )
