"""Crawls of a site over HTTP: started and cancelled by hand, and followed."""

from datetime import datetime
from typing import Annotated, ClassVar, Literal
from uuid import UUID

import structlog
from fastapi import Query, status
from pydantic import Field

from adloom.catalog.site import sites
from adloom.core.ids import SiteId
from adloom.pages.crawl import store
from adloom.pages.crawl.model import (
    Crawl,
    CrawlEndedError,
    CrawlId,
    CrawlNotFoundError,
    CrawlState,
    UrlState,
)
from adloom.pages.crawl.schedule import put_crawl
from adloom.resource.api import PublisherReads, PublisherWrites
from adloom.runtime.http.api.dependencies import Database, Ids, Now, depend_on, make_router
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer
from adloom.runtime.jobs.queue import JobQueue
from adloom.runtime.listing import PageRequest
from adloom.runtime.postgres import Connection
from adloom.runtime.valkey import VALKEY_AWAY

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class StartedCrawl(Answer):
    """A crawl that waits for the crawler."""

    crawl_id: UUID


class CrawlAnswer(Answer):
    """A crawl. `pagesFetched` counts pages that have not changed, too; `reason` is what a person should know."""

    id: UUID
    state: CrawlState
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    pages_fetched: int
    pages_classified: int
    pages_unchanged: int
    pages_failed: int
    pages_without_text: Annotated[
        int,
        Field(description="Pages that are empty without scripts; the tag sends their text from browsers."),
    ]
    reason: str | None


class CrawledUrlAnswer(Answer):
    """An address that a crawl has found, and what came of it."""

    url: str
    depth: int
    state: UrlState
    reason: str | None


class CrawlQuery(ListQuery):
    """How a list of crawls is sorted and paged."""

    SORTABLE: ClassVar = frozenset({"created_at"})


class CrawledUrlQuery(ListQuery):
    """Which addresses of a crawl are listed, in the order in which they were found."""

    SORTABLE: ClassVar = frozenset({"position"})

    sort: Literal["position"] = "position"  # pyright: ignore[reportIncompatibleVariableOverride] - there is one order
    state: UrlState | None = None


CrawlQueue = Annotated[JobQueue, depend_on("crawl_queue")]

router = make_router("/admin/sites/{site_id}", "crawls", 400, 401, 403, 404, 409, 503)


@router.post("/crawl", status_code=status.HTTP_202_ACCEPTED)
async def start_crawl(  # noqa: PLR0913, PLR0917 - what a handler asks for
    site_id: UUID, scope: PublisherWrites, pool: Database, queue: CrawlQueue, ids: Ids, now: Now
) -> StartedCrawl:
    """Crawl a site now."""
    crawl_id = CrawlId(ids.make())
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        await store.create_crawl(connection, crawl_id, site.id, now=now)
    try:
        await put_crawl(queue, crawl_id)
    except VALKEY_AWAY as error:
        # The crawler looks for crawls without a job every few seconds.
        log.warning("crawl_not_put", error=repr(error))
    return StartedCrawl(crawl_id=crawl_id)


@router.get("/crawls")
async def list_crawls(
    site_id: UUID, query: Annotated[CrawlQuery, Query()], scope: PublisherReads, pool: Database
) -> Page[CrawlAnswer]:
    """List the crawls of a site, the last first; the last 50 are kept."""
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        listed = await store.list_crawls(connection, site.id, query.page_request)
    return build_page(CrawlAnswer, listed, query)


@router.get("/crawls/{crawl_id}")
async def read_crawl(site_id: UUID, crawl_id: UUID, scope: PublisherReads, pool: Database) -> CrawlAnswer:
    """Read how far a crawl is."""
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        return CrawlAnswer.model_validate(await _find(connection, site.id, crawl_id))


@router.get("/crawls/{crawl_id}/urls")
async def list_crawled_urls(
    site_id: UUID,
    crawl_id: UUID,
    query: Annotated[CrawledUrlQuery, Query()],
    scope: PublisherReads,
    pool: Database,
) -> Page[CrawledUrlAnswer]:
    """List what a crawl has found, and why something was skipped or failed; kept for the last crawl that finished."""
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        await _find(connection, site.id, crawl_id)
        listed = await store.list_urls(connection, site.id, crawl_id, query.page_request, state=query.state)
    return build_page(CrawledUrlAnswer, listed, query)


@router.post("/crawls/{crawl_id}/cancel")
async def cancel_crawl(
    site_id: UUID, crawl_id: UUID, scope: PublisherWrites, pool: Database, now: Now
) -> CrawlAnswer:
    """End a crawl that waits or runs; what it has found stays. One that runs ends within seconds."""
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        await _find(connection, site.id, crawl_id)
        if not await store.cancel_crawl(connection, site.id, crawl_id, now=now):
            raise CrawlEndedError("This crawl has ended already.")
        return CrawlAnswer.model_validate(await _find(connection, site.id, crawl_id))


async def _find(connection: Connection, site_id: SiteId, crawl_id: UUID) -> Crawl:
    listed = await store.list_crawls(
        connection, site_id, PageRequest(size=1, sort="created_at"), crawl_id=crawl_id
    )
    if not listed.items:
        raise CrawlNotFoundError("This site has no such crawl.")
    return listed.items[0]
