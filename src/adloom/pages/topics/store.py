"""Counts of a site's pages, by state and by category."""

from datetime import datetime
from uuid import UUID

import msgspec

from adloom.runtime.postgres import Connection

COUNT_PAGES = """
    SELECT count(*) AS pages,
           count(page.classified_at) AS classified,
           count(*) FILTER (WHERE page.expires_at > $2) AS fresh,
           count(page.failure) AS failed
      FROM site_pages AS page JOIN sites AS site ON site.id = page.site_id
     WHERE site.public_id = $1
"""
COUNT_CATEGORIES = """
    SELECT category.value ->> 'id' AS id,
           count(*) AS pages,
           avg((category.value ->> 'confidence')::float8) AS confidence
      FROM site_pages AS page
      JOIN sites AS site ON site.id = page.site_id
      CROSS JOIN LATERAL jsonb_array_elements(page.categories) AS category
     WHERE site.public_id = $1 AND page.classified_at IS NOT NULL
     GROUP BY 1
     ORDER BY 2 DESC, 1
"""


class PageCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many pages of a site are known, and in which state."""

    pages: int
    classified: int
    fresh: int
    failed: int


class CategoryCount(msgspec.Struct, frozen=True, kw_only=True):
    """A category that pages have; `confidence` is their mean."""

    id: str
    pages: int
    confidence: float


async def count_pages(connection: Connection, site_id: UUID, *, now: datetime) -> PageCounts:
    row = await connection.fetchrow(COUNT_PAGES, site_id, now)
    assert row is not None
    return PageCounts(**dict(row))


async def count_categories(connection: Connection, site_id: UUID) -> list[CategoryCount]:
    """Count the pages of each category, most first. A page with two categories counts for both."""
    return [CategoryCount(**dict(row)) for row in await connection.fetch(COUNT_CATEGORIES, site_id)]
