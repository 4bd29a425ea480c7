"""A crawl of a site: its state, its counts, and what one page of it came to."""

# pure

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NewType
from uuid import UUID

import msgspec

from adloom.core.errors import ConflictError, NotFoundError
from adloom.core.ids import SiteId
from adloom.pages.crawl.frontier import FoundUrl
from adloom.targeting.site_hosts import SiteHosts

CrawlId = NewType("CrawlId", UUID)

DURATION_MAX: Final = timedelta(minutes=30)
REASON_CHARACTERS_MAX: Final = 500


class CrawlRunningError(ConflictError):
    """A site is crawled once at a time."""

    code = "CRAWL_RUNNING"


class CrawlNotFoundError(NotFoundError):
    """No such crawl of this site."""

    code = "CRAWL_NOT_FOUND"


class CrawlEndedError(ConflictError):
    """Only a crawl that waits or runs can be cancelled."""

    code = "CRAWL_ENDED"


class CrawlState(StrEnum):
    """Where a crawl is."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


class UrlState(StrEnum):
    """What came of an address."""

    WAITING = "waiting"
    FETCHED = "fetched"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"


class Crawl(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl, as it is listed."""

    id: CrawlId
    state: CrawlState
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    pages_fetched: int
    pages_classified: int
    pages_unchanged: int
    pages_failed: int
    pages_without_text: int
    reason: str | None


class CrawledUrl(msgspec.Struct, frozen=True, kw_only=True):
    """An address of a crawl, and what came of it."""

    url: str
    depth: int
    state: UrlState
    reason: str | None


class CrawlPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl that is to be run, and how its site wants it; `key` and `site_key` are of the database."""

    key: int
    id: CrawlId
    site_key: int
    site_id: SiteId
    state: CrawlState
    started_at: datetime | None
    domain: str
    seed_url: str | None
    host_pattern: str | None
    max_depth: int
    max_pages: int
    crawl_concurrency: int

    @property
    def seed(self) -> str:
        return self.seed_url or f"https://{self.domain}/"

    @property
    def hosts(self) -> SiteHosts:
        return SiteHosts(self.domain, self.host_pattern)


class CrawlInterruptedError(Exception):
    """The process stops, or another one has the crawl: it goes on later from where it is."""


class WaitingUrl(msgspec.Struct, frozen=True, kw_only=True):
    """An address to fetch, and what is known of its page from before.

    `etag` and `last_modified` are there only if the page's links are known, too: an answer that it has not changed has none.
    """

    url: str
    address: str
    depth: int
    content_hash: bytes | None = None
    classified_at: datetime | None = None
    etag: str | None = None
    last_modified: str | None = None


class UrlOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an address, to be written in one transaction."""

    state: UrlState
    reason: str | None = None
    content_hash: bytes | None = None
    has_text: bool = True
    links: Sequence[FoundUrl] = ()
    links_depth: int = 0
    instead: FoundUrl | None = None  # The page that this one redirects to, or names as its canonical address.
    # Whether the links are kept for the next crawl, which may ask for this page by its ETag.
    are_links_kept: bool = False

    @property
    def is_page(self) -> bool:
        return self.state in {UrlState.FETCHED, UrlState.UNCHANGED} or not self.has_text


def describe_canonical(url: str) -> str:
    """Say why a page was left for another; the reason is how pages find back where that one fails."""
    return f"Its canonical address is {url}."


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a crawl is."""

    is_cancelled: bool
    fetched: int
    submitted: int
    classified: int
    failed: int
    without_text: int
    addresses: int


def describe_end(
    progress: Progress, *, stopped_by: str | None, first_failure: str | None
) -> tuple[CrawlState, str | None]:
    """Return the state in which a crawl ends, and what a person should know about it."""
    if progress.is_cancelled:
        return CrawlState.FAILED, "It was cancelled."
    if not progress.fetched:
        return CrawlState.FAILED, _cut(first_failure or stopped_by or "No page could be fetched.")
    notes = [stopped_by] if stopped_by else []
    if progress.failed:
        notes.append(f"{_count_pages(progress.failed)} could not be fetched.")
    if progress.without_text:
        notes.append(
            f"{_count_pages(progress.without_text)} had no text without scripts: the tag sends their text from browsers."
        )
    if waiting := progress.submitted - progress.classified:
        verb = "waits" if waiting == 1 else "wait"
        notes.append(f"{_count_pages(waiting)} still {verb} for the classifier.")
    return CrawlState.FINISHED, _cut(" ".join(notes)) if notes else None


def _count_pages(count: int) -> str:
    return "1 page" if count == 1 else f"{count} pages"


def _cut(text: str) -> str:
    return text if len(text) <= REASON_CHARACTERS_MAX else f"{text[: REASON_CHARACTERS_MAX - 1]}…"
