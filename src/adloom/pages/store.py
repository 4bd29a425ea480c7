"""Pages in PostgreSQL. A page keeps its id whoever writes it; its version is given by the database."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import msgspec

from adloom.core.errors import NotFoundError
from adloom.core.ids import PageId, SiteId
from adloom.pages.model import Evidence, PageCategory, PageSource, SitePage
from adloom.pages.notice import PageNotice
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection
from adloom.taxonomy.iab import OfContentNode

TEXT_START_CHARACTERS_MAX: Final = 2_000
FAILURE_CHARACTERS_MAX: Final = 500
TITLE_CHARACTERS_MAX: Final = 500

SOURCE: Final = RowSource(
    columns=(
        "it.public_id AS id, site.public_id AS site_id, it.url, it.title, it.language, it.categories, it.evidence,"
        " it.source, it.classifier, it.classifier_version, it.failure, it.classified_at, it.expires_at, it.version,"
        " it.created_at, it.updated_at"
    ),
    tables="site_pages AS it JOIN sites AS site ON site.id = it.site_id",
    tiebreak="it.id",
)
# Where a text was not fetched, what the server said about the page before is no longer true.
WRITE: Final = """
    INSERT INTO site_pages AS it (
        public_id, site_id, url, title, language, categories, evidence, source, classifier, classifier_version,
        content_hash, text_start, etag, last_modified, fetched_at, classified_at, expires_at, created_at, updated_at)
    SELECT $1, site.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18
      FROM sites AS site WHERE site.public_id = $2
    ON CONFLICT (site_id, url) DO UPDATE
       SET title = coalesce(excluded.title, it.title), language = coalesce(excluded.language, it.language),
           categories = excluded.categories, evidence = excluded.evidence, source = excluded.source,
           classifier = excluded.classifier, classifier_version = excluded.classifier_version,
           content_hash = excluded.content_hash, text_start = excluded.text_start, etag = excluded.etag,
           last_modified = excluded.last_modified, fetched_at = excluded.fetched_at, failure = NULL,
           classified_at = excluded.classified_at, expires_at = excluded.expires_at,
           updated_at = greatest(excluded.updated_at, it.updated_at + interval '1 microsecond')
    RETURNING it.public_id, it.version
"""
WAIT: Final = """
    INSERT INTO site_pages AS it (public_id, site_id, url, title, source, created_at, updated_at)
    SELECT $1, site.id, $3, $4, $5, $6, $6 FROM sites AS site WHERE site.public_id = $2
    ON CONFLICT (site_id, url) DO NOTHING
    RETURNING it.version
"""
# What is known of a page that fails now stays as it is, until it expires.
FAIL: Final = """
    INSERT INTO site_pages AS it (public_id, site_id, url, source, failure, fetched_at, created_at, updated_at)
    SELECT $1, site.id, $3, $4, $5, $6, $6, $6 FROM sites AS site WHERE site.public_id = $2
    ON CONFLICT (site_id, url) DO UPDATE
       SET failure = excluded.failure, fetched_at = excluded.fetched_at,
           updated_at = greatest(excluded.updated_at, it.updated_at + interval '1 microsecond')
    RETURNING it.public_id, it.version
"""
DELETE: Final = """
    DELETE FROM site_pages AS it USING sites AS site
     WHERE site.id = it.site_id AND site.public_id = $1 AND it.public_id = $2
    RETURNING it.id
"""
REMOVED_AT: Final = """
    SELECT site.public_id, removal.version FROM site_page_removals AS removal JOIN sites AS site ON site.id = removal.site_id
     WHERE site.public_id = ANY ($1::uuid[])
"""
# An address that no crawl finds any more, and that no reader asked for, is not read about again.
REMOVE_EXPIRED: Final = """
    DELETE FROM site_pages AS it USING sites AS site
     WHERE site.id = it.site_id AND it.id IN (
           SELECT id FROM site_pages WHERE coalesce(expires_at, updated_at) < $1 LIMIT $2)
    RETURNING site.public_id
"""
# After a change of the domain, which takes the place of the old one.
REMOVE_FOREIGN: Final = """
    DELETE FROM site_pages AS it USING sites AS site
     WHERE site.id = it.site_id AND it.id IN (
           SELECT page.id FROM sites AS changed
             JOIN site_pages AS page ON page.site_id = changed.id
             CROSS JOIN LATERAL (
                  SELECT substring(page.url FROM '^[^/?:]*') AS host,
                         regexp_replace(changed.domain, '^www[.]', '') AS domain
             ) AS compared
            WHERE changed.updated_at >= $1 AND compared.host <> compared.domain
              AND NOT starts_with(reverse(compared.host), reverse('.' || compared.domain))
            LIMIT $2)
    RETURNING site.public_id
"""
# Any program can send texts: those of browsers make room first, and push out no page that was crawled or given.
EVICT_OLDEST: Final = """
    DELETE FROM site_pages AS it USING sites AS site
     WHERE site.id = it.site_id AND it.id IN (
           SELECT page.id FROM (
                  SELECT site_id FROM site_pages GROUP BY site_id HAVING count(*) > $1
           ) AS full_site
           CROSS JOIN LATERAL (
                  SELECT id FROM site_pages WHERE site_id = full_site.site_id
                   ORDER BY source = 'tag', classified_at DESC NULLS LAST, version DESC OFFSET $1 LIMIT $2
           ) AS page)
    RETURNING site.public_id
"""
# The market has found an ad for one of the page's slots, approved or not.
HAS_CANDIDATES: Final = """
    EXISTS (SELECT FROM shortlists AS listed
             WHERE listed.site_id = it.site_id AND listed.url = it.url AND listed.expires_at > {}
               AND jsonb_path_exists(listed.slots, '$[*].candidates[*]'))
"""
COUNT_PAGES: Final = """
    SELECT count(*) AS pages, count(it.classified_at) AS classified,
           count(*) FILTER (WHERE it.expires_at > $2) AS fresh, count(it.failure) AS failed
      FROM site_pages AS it JOIN sites AS site ON site.id = it.site_id
     WHERE site.public_id = $1
"""
COUNT_CATEGORIES: Final = """
    SELECT category ->> 'id' AS id, count(*) AS pages, sum((category ->> 'confidence')::double precision) AS weight
      FROM site_pages AS it JOIN sites AS site ON site.id = it.site_id
     CROSS JOIN LATERAL jsonb_array_elements(it.categories) AS category
     WHERE site.public_id = $1
     GROUP BY 1 ORDER BY weight DESC, id
"""


class PageClassification(msgspec.Struct, frozen=True, kw_only=True):
    """What is found out about a page; `text_start` is kept to classify it again, the hash is of the whole text."""

    title: str | None = None
    language: str | None = None
    categories: tuple[PageCategory, ...]
    evidence: tuple[Evidence, ...] = ()
    source: PageSource
    classifier: str | None = None
    classifier_version: str | None = None
    content_hash: bytes | None = None
    text_start: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    fetched_at: datetime | None = None
    classified_at: datetime
    expires_at: datetime


class PageFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of pages is narrowed to: a text, categories, whether it is fresh, wanted by an ad, and its source."""

    search: str | None = None
    categories: Collection[str] | None = None
    is_fresh: bool | None = None
    has_candidates: bool | None = None
    source: PageSource | None = None


class PageCounts(msgspec.Struct, frozen=True):
    """How many pages of a site are known, classified, still fresh, and could not be read the last time."""

    pages: int
    classified: int
    fresh: int
    failed: int


class CategoryCount(OfContentNode, frozen=True):
    """How many pages of a site are about a category, and the sum of their confidences."""

    pages: int
    weight: float


class WrittenPage(msgspec.Struct, frozen=True):
    """A page as it was written."""

    id: PageId
    version: int


async def write_classification(
    connection: Connection, site_id: SiteId, url: str, found: PageClassification, *, page_id: PageId
) -> WrittenPage | None:
    """Add or replace what is known of a page; None where the site is gone. A new page gets the id."""
    row = await connection.fetchrow(
        WRITE,
        page_id,
        site_id,
        url,
        found.title and found.title[:TITLE_CHARACTERS_MAX],
        found.language,
        msgspec.to_builtins(found.categories),
        msgspec.to_builtins(found.evidence),
        found.source,
        found.classifier,
        found.classifier_version,
        found.content_hash,
        found.text_start and found.text_start[:TEXT_START_CHARACTERS_MAX],
        found.etag,
        found.last_modified,
        found.fetched_at,
        found.classified_at,
        found.expires_at,
        found.classified_at,
    )
    return None if row is None else WrittenPage(PageId(row[0]), row[1])


async def write_waiting(  # noqa: PLR0913 - a page
    connection: Connection,
    site_id: SiteId,
    url: str,
    *,
    title: str | None,
    source: PageSource,
    page_id: PageId,
    now: datetime,
) -> int | None:
    """Add a page whose text is to be classified, and return its version; a page that is there stays as it is."""
    return await connection.fetchval(WAIT, page_id, site_id, url, title, source, now)


async def write_failure(  # noqa: PLR0913 - a page
    connection: Connection,
    site_id: SiteId,
    url: str,
    *,
    reason: str,
    source: PageSource,
    page_id: PageId,
    now: datetime,
) -> WrittenPage | None:
    """Note why a page could not be read; None where the site is gone."""
    row = await connection.fetchrow(FAIL, page_id, site_id, url, source, reason[:FAILURE_CHARACTERS_MAX], now)
    return None if row is None else WrittenPage(PageId(row[0]), row[1])


async def find_page(connection: Connection, site_id: SiteId, page_id: PageId) -> SitePage:
    """Read a page of a site, or raise."""
    return await _find(connection, "it.public_id", site_id, page_id)


async def find_page_by_url(connection: Connection, site_id: SiteId, url: str) -> SitePage:
    return await _find(connection, "it.url", site_id, url)


async def find_known_page(connection: Connection, site_id: SiteId, url: str) -> SitePage | None:
    """Read a page by its address, where it is known."""
    try:
        return await find_page_by_url(connection, site_id, url)
    except NotFoundError:
        return None


async def list_pages(
    connection: Connection, site_id: SiteId, wanted: PageFilter, page: PageRequest, *, now: datetime
) -> Listed[SitePage]:
    filters = Filters()
    filters.add("site.public_id = {}", site_id)
    filters.add_search(("it.url", "it.title"), wanted.search)
    filters.add_given("it.source = {}", wanted.source)
    if wanted.categories is not None:
        filters.add(
            "EXISTS (SELECT FROM jsonb_array_elements(it.categories) AS category"
            " WHERE category ->> 'id' = ANY ({}::text[]))",
            list(wanted.categories),
        )
    if wanted.is_fresh is not None:
        fresh = "coalesce(it.expires_at > {}, false)"
        filters.add(fresh if wanted.is_fresh else f"NOT {fresh}", now)
    if wanted.has_candidates is not None:
        filters.add(HAS_CANDIDATES if wanted.has_candidates else f"NOT {HAS_CANDIDATES}", now)
    return await fetch_structs(connection, SOURCE, filters, page, SitePage)


async def count_pages(connection: Connection, site_id: SiteId, *, now: datetime) -> PageCounts:
    row = await connection.fetchrow(COUNT_PAGES, site_id, now)
    assert row is not None, "a count has a row"
    return PageCounts(*row)


async def count_categories(connection: Connection, site_id: SiteId) -> list[CategoryCount]:
    """Count the pages of a site by category, the weightiest first."""
    rows = await connection.fetch(COUNT_CATEGORIES, site_id)
    return [CategoryCount(*row) for row in rows]


async def delete_page(connection: Connection, site_id: SiteId, page_id: PageId) -> PageNotice:
    """Remove a page, or raise where it is not there; returns what to publish after the commit."""
    if await connection.fetchval(DELETE, site_id, page_id) is None:
        raise _make_missing_error()
    (notice,) = await _read_removals(connection, [site_id])
    return notice


async def remove_expired(connection: Connection, before: datetime, *, rows_max: int) -> list[PageNotice]:
    """Remove pages that expired before a moment; returns what to publish after the commit."""
    rows = await connection.fetch(REMOVE_EXPIRED, before, rows_max)
    return await _read_removals(connection, [row[0] for row in rows])


async def remove_foreign(
    connection: Connection, changed_since: datetime, *, rows_max: int
) -> list[PageNotice]:
    """Remove pages that are not of their site's domain, of sites changed since; returns what to publish."""
    rows = await connection.fetch(REMOVE_FOREIGN, changed_since, rows_max)
    return await _read_removals(connection, [row[0] for row in rows])


async def evict_oldest(connection: Connection, *, pages_max: int, rows_max: int) -> list[PageNotice]:
    """Remove the oldest pages of sites that have more than they may, those of tags first; returns what to publish after the commit."""
    rows = await connection.fetch(EVICT_OLDEST, pages_max, rows_max)
    return await _read_removals(connection, [row[0] for row in rows])


async def _read_removals(connection: Connection, site_ids: Sequence[SiteId]) -> list[PageNotice]:
    if not site_ids:
        return []
    rows = await connection.fetch(REMOVED_AT, list(set(site_ids)))
    return [PageNotice(SiteId(site_id), version) for site_id, version in rows]


async def _find(connection: Connection, column: str, site_id: SiteId, value: object) -> SitePage:
    statement = f"SELECT {SOURCE.columns} FROM {SOURCE.tables} WHERE site.public_id = $1 AND {column} = $2"  # noqa: S608 - our own names
    row = await connection.fetchrow(statement, site_id, value)
    if row is None:
        raise _make_missing_error()
    return msgspec.convert(dict(row), SitePage)


def _make_missing_error() -> NotFoundError:
    return NotFoundError("There is no page with this id on this site.", code="PAGE_NOT_FOUND")
