"""Pages of a site, and what they are about."""

# pure

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from adloom.core.ids import PageId, SiteId
from adloom.taxonomy.iab import OfContentNode

CATEGORIES_MAX: Final = 3
FRESH_HOURS: Final = 48  # As the setting is by default.
PAGES_PER_SITE_MAX: Final = 10_000  # The oldest are removed beyond this.
# What is held in memory: between two cleanings a site may get more, and its oldest pages must not go for that.
PAGES_HELD_MAX: Final = 13_000


class PageSource(StrEnum):
    """Where a page's text or categories came from: the crawler, a reader's browser, control, or given as they are."""

    CRAWL = "crawl"
    TAG = "tag"
    API = "api"
    GIVEN = "given"


class PageCategory(OfContentNode, frozen=True):
    """A node of the content taxonomy, and the probability that the page is about it."""

    confidence: float


class Evidence(msgspec.Struct, frozen=True):
    """A phrase that spoke for a category, the part of the text that it resembles, and how much."""

    category: str
    phrase: str
    excerpt: str
    similarity: float


class SitePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page under its normalised URL; without `classified_at` it waits for its first classification."""

    id: PageId
    site_id: SiteId
    url: str
    title: str | None = None
    language: str | None = None
    categories: tuple[PageCategory, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    source: PageSource
    classifier: str | None = None
    classifier_version: str | None = None
    failure: str | None = None
    classified_at: datetime | None = None
    expires_at: datetime | None = None
    version: int
    created_at: datetime
    updated_at: datetime

    def is_fresh(self, now: datetime) -> bool:
        return self.expires_at is not None and now < self.expires_at


def compute_expiry(classified_at: datetime, *, fresh_hours: int = FRESH_HOURS) -> datetime:
    return classified_at + timedelta(hours=fresh_hours)
