"""Crawls in PostgreSQL: the truth about what is found, done and still to do."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec
from asyncpg import UniqueViolationError

from adloom.core.ids import SiteId
from adloom.pages.crawl.frontier import FoundUrl
from adloom.pages.crawl.model import (
    REASON_CHARACTERS_MAX,
    Crawl,
    CrawledUrl,
    CrawlId,
    CrawlPlan,
    CrawlRunningError,
    CrawlState,
    Progress,
    UrlOutcome,
    UrlState,
    WaitingUrl,
    describe_canonical,
)
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_structs
from adloom.runtime.postgres import Connection, reset_after_use

CRAWLS_KEPT: Final = 50  # Of a site: the latest.

CREATE: Final = """
    INSERT INTO site_crawls (public_id, site_id, state, created_at)
    SELECT $1, id, 'queued', $3 FROM sites WHERE public_id = $2
"""
PRUNE: Final = """
    DELETE FROM site_crawls WHERE id IN (
        SELECT crawl.id FROM site_crawls AS crawl JOIN sites AS site ON site.id = crawl.site_id
         WHERE site.public_id = $1 AND crawl.state IN ('finished', 'failed')
         ORDER BY crawl.created_at DESC, crawl.id DESC OFFSET $2)
"""
LISTED: Final = RowSource(
    columns="it.public_id AS id, it.state, it.created_at, it.started_at, it.finished_at, it.pages_fetched, "
    "it.pages_classified, it.pages_unchanged, it.pages_failed, it.pages_without_text, it.reason",
    tables="site_crawls AS it JOIN sites AS site ON site.id = it.site_id",
    tiebreak="it.id",
)
LISTED_URLS: Final = RowSource(
    columns="it.url, it.depth, it.state, it.reason",
    tables="crawl_urls AS it JOIN site_crawls AS crawl ON crawl.id = it.crawl_id JOIN sites AS site ON site.id = crawl.site_id",
    tiebreak="it.position",
)
CANCEL: Final = """
    UPDATE site_crawls AS crawl SET is_cancelled = true,
           state = CASE state WHEN 'queued' THEN 'failed' ELSE state END,
           reason = CASE state WHEN 'queued' THEN 'It was cancelled.' ELSE reason END,
           finished_at = CASE state WHEN 'queued' THEN $3 ELSE finished_at END
      FROM sites AS site
     WHERE site.id = crawl.site_id AND site.public_id = $1 AND crawl.public_id = $2
       AND crawl.state IN ('queued', 'running')
"""
OPEN_CRAWLS: Final = (
    "SELECT public_id FROM site_crawls WHERE state IN ('queued', 'running') ORDER BY created_at LIMIT $1"
)
PLAN: Final = """
    SELECT crawl.id AS key, crawl.public_id AS id, site.id AS site_key, site.public_id AS site_id, crawl.state,
           crawl.started_at, site.domain, site.seed_url, site.host_pattern, site.max_depth, site.max_pages,
           site.crawl_concurrency
      FROM site_crawls AS crawl JOIN sites AS site ON site.id = crawl.site_id
     WHERE crawl.public_id = $1
"""
START: Final = """
    UPDATE site_crawls SET state = 'running', started_at = coalesce(started_at, $2)
     WHERE id = $1 AND state IN ('queued', 'running') RETURNING started_at
"""
FINISH: Final = """
    UPDATE site_crawls SET state = $2, reason = $3, finished_at = $4, pages_classified = $5
     WHERE id = $1 AND state IN ('queued', 'running')
"""
# Only the last crawl's addresses are needed, to know the links of pages that have not changed.
FORGET_OLDER: Final = """
    DELETE FROM crawl_urls WHERE crawl_id IN (
        SELECT id FROM site_crawls WHERE site_id = $1 AND state IN ('finished', 'failed')
           AND id <> coalesce($2, 0))
"""
LAST_FINISHED: Final = """
    SELECT id FROM site_crawls WHERE site_id = $1 AND state = 'finished' ORDER BY finished_at DESC LIMIT 1
"""
KNOWN: Final = """
    SELECT url, position, state = 'failed' OR (state = 'skipped' AND starts_with(reason, $2)) AS is_left
      FROM crawl_urls WHERE crawl_id = $1
"""
TAKE_BACK: Final = """
    UPDATE crawl_urls SET state = 'waiting', reason = NULL
     WHERE crawl_id = $1 AND state = 'skipped' AND reason = $2 RETURNING url
"""
INSERT_URLS: Final = """
    INSERT INTO crawl_urls (crawl_id, position, url, address, depth)
    SELECT $1, $2 + number - 1, url, address, $5
      FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS found (url, address, number)
    ON CONFLICT (crawl_id, url) DO NOTHING
"""
WAITING: Final = """
    SELECT it.url, it.address, it.depth, page.content_hash, page.classified_at,
           CASE WHEN it.depth >= $5 OR prior.links IS NOT NULL THEN page.etag END AS etag,
           CASE WHEN it.depth >= $5 OR prior.links IS NOT NULL THEN page.last_modified END AS last_modified
      FROM crawl_urls AS it
      LEFT JOIN site_pages AS page ON page.site_id = $2 AND page.url = it.url
       AND page.classified_at IS NOT NULL AND page.source = 'crawl'
      LEFT JOIN crawl_urls AS prior ON prior.crawl_id = $3 AND prior.url = it.url
     WHERE it.crawl_id = $1 AND it.state = 'waiting' AND it.url <> ALL($6::text[])
     ORDER BY it.depth, it.position LIMIT $4
"""
# The state is the key: an address that was recorded before a crash is not counted again.
RECORD: Final = """
    WITH done AS (
        UPDATE crawl_urls SET state = $3, reason = $4, content_hash = $5
         WHERE crawl_id = $1 AND url = $2 AND state = 'waiting' RETURNING 1)
    UPDATE site_crawls
       SET pages_fetched = pages_fetched + $6, pages_unchanged = pages_unchanged + $7,
           pages_failed = pages_failed + $8, pages_without_text = pages_without_text + $9
      FROM done WHERE id = $1
"""
KEEP_LINKS: Final = """
    UPDATE crawl_urls SET links = ARRAY(
               SELECT position FROM crawl_urls WHERE crawl_id = $1 AND url = ANY($3::text[]))
     WHERE crawl_id = $1 AND url = $2
"""
PRIOR_LINKS: Final = """
    SELECT it.url, it.address FROM crawl_urls AS it
     WHERE it.crawl_id = $1 AND it.position = ANY(
           SELECT unnest(links) FROM crawl_urls WHERE crawl_id = $1 AND url = $2)
     ORDER BY it.position
"""
PROGRESS: Final = """
    SELECT crawl.is_cancelled, crawl.pages_fetched AS fetched,
           crawl.pages_failed AS failed, crawl.pages_without_text AS without_text,
           (SELECT count(*) FROM crawl_urls WHERE crawl_id = crawl.id) AS addresses,
           (SELECT count(*) FROM crawl_urls WHERE crawl_id = crawl.id AND content_hash IS NOT NULL) AS submitted,
           (SELECT count(*) FROM crawl_urls AS it
              JOIN site_pages AS page ON page.site_id = crawl.site_id AND page.url = it.url
               AND (page.content_hash = it.content_hash AND page.classified_at >= crawl.started_at
                    OR page.source = 'given' AND page.updated_at >= crawl.started_at)
             WHERE it.crawl_id = crawl.id AND it.content_hash IS NOT NULL) AS classified
      FROM site_crawls AS crawl WHERE crawl.id = $1
"""
TELL_CLASSIFIED: Final = (
    "UPDATE site_crawls SET pages_classified = $2 WHERE id = $1 AND pages_classified <> $2"
)
FIRST_FAILURE: Final = """
    SELECT reason FROM crawl_urls WHERE crawl_id = $1 AND reason IS NOT NULL ORDER BY depth, position LIMIT 1
"""
EXTEND: Final = """
    UPDATE site_pages SET expires_at = greatest(expires_at, $3), fetched_at = $4, updated_at = $4,
           etag = $5, last_modified = $6
     WHERE site_id = $1 AND url = $2 AND classified_at IS NOT NULL RETURNING version
"""
LOCK: Final = "SELECT pg_try_advisory_lock('site_crawls'::regclass::oid::integer, $1)"
UNLOCK: Final = "SELECT pg_advisory_unlock('site_crawls'::regclass::oid::integer, $1)"


async def create_crawl(connection: Connection, crawl_id: CrawlId, site_id: SiteId, *, now: datetime) -> None:
    """Queue a crawl, unless the site has one that waits or runs."""
    try:
        async with connection.transaction():
            await connection.execute(CREATE, crawl_id, site_id, now)
    except UniqueViolationError as error:
        raise CrawlRunningError("This site is being crawled, or waits for it.") from error
    await connection.execute(PRUNE, site_id, CRAWLS_KEPT)


async def list_crawls(
    connection: Connection, site_id: SiteId, page: PageRequest, *, crawl_id: UUID | None = None
) -> Listed[Crawl]:
    filters = Filters()
    filters.add("site.public_id = {}", site_id)
    filters.add_given("it.public_id = {}", crawl_id)
    return await fetch_structs(connection, LISTED, filters, page, Crawl)


async def list_urls(
    connection: Connection, site_id: SiteId, crawl_id: UUID, page: PageRequest, *, state: UrlState | None
) -> Listed[CrawledUrl]:
    filters = Filters()
    filters.add("site.public_id = {}", site_id)
    filters.add("crawl.public_id = {}", crawl_id)
    filters.add_given("it.state = {}", state)
    return await fetch_structs(connection, LISTED_URLS, filters, page, CrawledUrl)


async def cancel_crawl(connection: Connection, site_id: SiteId, crawl_id: UUID, *, now: datetime) -> bool:
    """Cancel a crawl; one that runs ends within seconds. False if it has ended."""
    return await connection.execute(CANCEL, site_id, crawl_id, now) != "UPDATE 0"


async def list_open(connection: Connection, *, count_max: int) -> list[CrawlId]:
    return [CrawlId(row["public_id"]) for row in await connection.fetch(OPEN_CRAWLS, count_max)]


async def read_plan(connection: Connection, crawl_id: CrawlId) -> CrawlPlan | None:
    row = await connection.fetchrow(PLAN, crawl_id)
    return None if row is None else msgspec.convert(dict(row), CrawlPlan)


async def try_lock(connection: Connection, crawl_key: int) -> bool:
    """Take the lock of a crawl for as long as this connection lives; False if another process has it."""
    reset_after_use(connection)
    return bool(await connection.fetchval(LOCK, crawl_key % 2**31))


async def unlock(connection: Connection, crawl_key: int) -> None:
    await connection.execute(UNLOCK, crawl_key % 2**31)


async def start_crawl(connection: Connection, plan: CrawlPlan, *, now: datetime) -> datetime | None:
    """Mark a crawl as running; return when it began first, or None if it has ended."""
    return await connection.fetchval(START, plan.key, now)


async def finish_crawl(  # noqa: PLR0913 - what is known at the end
    connection: Connection, key: int, state: CrawlState, reason: str | None, *, classified: int, now: datetime
) -> None:
    await connection.execute(FINISH, key, state, reason, now, classified)


async def forget_older(connection: Connection, plan: CrawlPlan) -> int | None:
    """Delete the addresses of all earlier crawls but the last that finished; return that one's key."""
    last = await connection.fetchval(LAST_FINISHED, plan.site_key)
    await connection.execute(FORGET_OLDER, plan.site_key, last)
    return last


async def read_known(connection: Connection, key: int) -> list[tuple[str, int, bool]]:
    """Read all addresses that a crawl has taken up, their positions, and whether they failed or were left for another."""
    rows = await connection.fetch(KNOWN, key, describe_canonical("").rstrip("."))
    return [(row["url"], row["position"], bool(row["is_left"])) for row in rows]


async def take_back(connection: Connection, key: int, url: str) -> list[str]:
    """Let pages wait again that were left for one that failed; return their addresses."""
    rows = await connection.fetch(TAKE_BACK, key, describe_canonical(url)[:REASON_CHARACTERS_MAX])
    return [row["url"] for row in rows]


async def add_urls(
    connection: Connection, key: int, found: Sequence[FoundUrl], *, depth: int, position: int
) -> None:
    """Add addresses that are not there yet, the first at a position."""
    if found:
        urls, addresses = [one.url for one in found], [one.address for one in found]
        await connection.execute(INSERT_URLS, key, position, urls, addresses, depth)


async def read_waiting(
    connection: Connection, plan: CrawlPlan, prior: int | None, *, but: Sequence[str], count_max: int
) -> list[WaitingUrl]:
    """Read the next addresses, breadth first, without those that are being fetched."""
    rows = await connection.fetch(
        WAITING, plan.key, plan.site_key, prior, count_max, plan.max_depth, list(but)
    )
    return [msgspec.convert(dict(row), WaitingUrl) for row in rows]


async def record_outcome(connection: Connection, key: int, url: str, outcome: UrlOutcome) -> None:
    """Write what came of an address; one that was written before stays as it is."""
    await connection.execute(
        RECORD,
        key,
        url,
        outcome.state,
        (outcome.reason or "")[:REASON_CHARACTERS_MAX] or None,
        outcome.content_hash,
        int(outcome.is_page),
        int(outcome.state is UrlState.UNCHANGED),
        int(outcome.state is UrlState.FAILED),
        int(not outcome.has_text),
    )
    if outcome.are_links_kept:
        await connection.execute(KEEP_LINKS, key, url, [one.url for one in outcome.links])


async def read_prior_links(connection: Connection, prior: int | None, url: str) -> list[FoundUrl]:
    """Read where a page led to when it was last fetched."""
    rows = await connection.fetch(PRIOR_LINKS, prior, url)
    return [FoundUrl(row["url"], row["address"]) for row in rows]


async def read_progress(connection: Connection, key: int) -> Progress | None:
    row = await connection.fetchrow(PROGRESS, key)
    if row is None:
        return None
    progress = msgspec.convert(dict(row), Progress)
    await connection.execute(TELL_CLASSIFIED, key, progress.classified)
    return progress


async def read_first_failure(connection: Connection, key: int) -> str | None:
    return await connection.fetchval(FIRST_FAILURE, key)


async def extend_page(  # noqa: PLR0913 - what is known of the page
    connection: Connection,
    site_key: int,
    url: str,
    *,
    expires_at: datetime,
    now: datetime,
    etag: str | None,
    last_modified: str | None,
) -> int | None:
    """Keep a page that has not changed; return its new version, or None if it is gone."""
    return await connection.fetchval(EXTEND, site_key, url, expires_at, now, etag, last_modified)
