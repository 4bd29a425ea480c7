"""The pages of a site over HTTP: what they are about, and why."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

import msgspec
from fastapi import Query, status
from pydantic import Field

from adloom.catalog.site import Site, sites
from adloom.catalog.taxonomy.fields import ContentCategory
from adloom.core.errors import BadRequestError, FieldProblem, RateLimitedError, make_field_error
from adloom.core.ids import PageId
from adloom.pages.audit import record_given, record_removed
from adloom.pages.classify.queue import ClassifyQueue
from adloom.pages.classify.request import make_request
from adloom.pages.model import CATEGORIES_MAX, PageCategory, PageSource, SitePage, compute_expiry
from adloom.pages.notice import PageNotice, publish_written
from adloom.pages.slots import ListedCandidate, PageSlots, find_slots
from adloom.pages.store import (
    TITLE_CHARACTERS_MAX,
    PageClassification,
    PageFilter,
    count_categories,
    count_pages,
    delete_page,
    find_known_page,
    find_page,
    find_page_by_url,
    list_pages,
    write_classification,
    write_waiting,
)
from adloom.pages.url import NORMALIZED_CHARACTERS_MAX, URL_CHARACTERS_MAX, normalize_url
from adloom.resource.access import Scope
from adloom.resource.api import CurrentCatalog, PublisherReads, PublisherWrites
from adloom.resource.shapes import PriceShown
from adloom.runtime.http.api.dependencies import CurrentValkey, Database, Ids, Now, depend_on, make_router
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Text, Text100, Text255
from adloom.runtime.listing import Listed
from adloom.taxonomy.iab import load_content

TEXT_LENGTH_MAX: Final = 200_000
RETRY_SECONDS: Final = 5

PageTitle = Annotated[Text, Field(max_length=TITLE_CHARACTERS_MAX)]
Confidence = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class GivenCategory(Body):
    """A category, and the probability that the page is about it."""

    id: ContentCategory
    confidence: Confidence


class PageBody(Body):
    """A page, with its text or with its categories; where both are given, the categories count."""

    url: Annotated[Text, Field(max_length=URL_CHARACTERS_MAX, description="An address on the site's domain.")]
    title: PageTitle | None = None
    text: Annotated[
        Text | None, Field(min_length=1, max_length=TEXT_LENGTH_MAX, description="To be classified.")
    ] = None
    categories: Annotated[
        Sequence[GivenCategory] | None,
        Field(min_length=1, max_length=CATEGORIES_MAX, description="Taken as given."),
    ] = None


class PageQuery(ListQuery):
    """How a list of pages is filtered, sorted and paged."""

    SORTABLE: ClassVar = frozenset(
        {"created_at", "updated_at", "url", "title", "classified_at", "expires_at"}
    )

    search: Annotated[Text255 | None, Field(description="A part of the address or the title.")] = None
    category: Annotated[Text100 | None, Field(description="Pages about this node or one below it.")] = None
    is_fresh: bool | None = None
    has_candidates: Annotated[bool | None, Field(description="Whether an ad wants one of its slots.")] = None
    source: PageSource | None = None


class PageCategoryAnswer(Answer):
    """What a page is about; `path` are the names from the taxonomy's root."""

    id: str
    name: str
    path: Sequence[str]
    confidence: float


class EvidenceAnswer(Answer):
    """A phrase that spoke for a category, and the part of the text that it resembles."""

    category: str
    phrase: str
    excerpt: str
    similarity: float


class SitePageAnswer(Answer):
    """A page. Without `classifiedAt` it waits for its first classification, or has failed."""

    id: UUID
    url: Annotated[str, Field(description="Normalised: without scheme, `www.`, tracking parameters.")]
    title: str | None
    language: str | None
    categories: Sequence[PageCategoryAnswer]
    classified_at: datetime | None
    expires_at: datetime | None
    is_fresh: bool
    source: PageSource
    classifier: str | None
    classifier_version: str | None
    failure: Annotated[str | None, Field(description="Why it could not be read the last time.")]
    created_at: datetime
    updated_at: datetime


class SlotCandidateAnswer(Answer):
    """A banner that competes for a slot on a page."""

    banner_id: UUID
    campaign_id: UUID
    advertiser_id: UUID | None
    banner_title: str | None
    campaign_name: str | None
    advertiser_name: str | None
    category: str | None
    category_score: float
    max_cpm: Annotated[
        PriceShown | None, Field(description="Null for a publisher: bids are the advertisers'.")
    ]
    state: str


class PageSlotAnswer(Answer):
    """What competes for a slot on a page."""

    slot: str
    version: int
    updated_at: datetime
    candidates: Sequence[SlotCandidateAnswer]


class SitePageDetail(SitePageAnswer):
    """A page, why it has its categories, and what competes for its slots."""

    evidence: Annotated[
        Sequence[EvidenceAnswer], Field(description="Why these categories: the phrases that decided.")
    ]
    slots: Sequence[PageSlotAnswer]


class SiteTopicAnswer(Answer):
    """A category of a site's pages."""

    id: str
    name: str
    path: Sequence[str]
    pages: int
    weight: Annotated[float, Field(description="The sum of the pages' confidences.")]


class SiteTopics(Answer):
    """What a site is about, the weightiest first; a page with two categories counts for both."""

    pages: Annotated[int, Field(description="How many pages are known.")]
    classified: int
    fresh: Annotated[int, Field(description="How many were classified lately enough to get ads.")]
    failed: Annotated[int, Field(description="How many could not be read the last time.")]
    items: Sequence[SiteTopicAnswer]


FreshHours = Annotated[int, depend_on("page_fresh_hours")]

router = make_router("/admin/sites/{site_id}", "pages", 400, 401, 403, 404, 413, 503)


@router.get("/pages")
async def list_site_pages(
    site_id: UUID, query: Annotated[PageQuery, Query()], scope: PublisherReads, pool: Database, now: Now
) -> Page[SitePageAnswer]:
    """List the pages of a site."""
    wanted = PageFilter(
        search=query.search,
        categories=None if query.category is None else _with_descendants(query.category),
        is_fresh=query.is_fresh,
        has_candidates=query.has_candidates,
        source=query.source,
    )
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        listed = await list_pages(connection, site.id, wanted, query.page_request, now=now)
    answers = [SitePageAnswer(**_describe(page, now)) for page in listed.items]
    return build_page(SitePageAnswer, Listed(items=answers, total_count=listed.total_count), query)


@router.get("/pages/{page_id}")
async def read_site_page(
    site_id: UUID, page_id: UUID, scope: PublisherReads, pool: Database, now: Now
) -> SitePageDetail:
    """Read a page, with the evidence for its categories."""
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        page = await find_page(connection, site.id, PageId(page_id))
        slots = await find_slots(connection, site.id, page.url)
    return _build_detail(page, slots, now, scope)


@router.post("/pages")
async def write_site_page(  # noqa: PLR0913, PLR0917 - what a handler asks for
    site_id: UUID,
    body: PageBody,
    scope: PublisherWrites,
    catalog: CurrentCatalog,
    pool: Database,
    valkey: CurrentValkey,
    ids: Ids,
    now: Now,
    fresh_hours: FreshHours,
) -> SitePageDetail:
    """Say what a page is about, or send its text.

    Categories count at once. A text is classified within seconds: until then the page has no `classifiedAt`, or
    what it had before.
    """
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
    url = _find_url_of_site(body.url, site)
    page_id = PageId(ids.make())
    if body.categories is not None:
        given = _take_categories(body, now, fresh_hours=fresh_hours)
        async with catalog.write() as write:
            before = await find_known_page(write.connection, site.id, url)
            written = await write_classification(write.connection, site.id, url, given, page_id=page_id)
            record_given(write, site, url, before, written.id if written else page_id, given.categories)
        version = written.version if written else None
    elif body.text is not None:
        # The queue first: a page that waits for a request that was never put would wait for ever.
        request = make_request(
            site_id=site.id, url=url, source=PageSource.API, now=now, title=body.title, text=body.text
        )
        if not request.text:
            raise make_field_error("text", "must have more than spaces")
        if not await ClassifyQueue(valkey).put(request):
            raise RateLimitedError(
                "Too many texts wait to be classified. Send this one later.",
                retry_after_seconds=RETRY_SECONDS,
            )
        async with catalog.write() as write:
            before = await find_known_page(write.connection, site.id, url)
            version = await write_waiting(
                write.connection,
                site.id,
                url,
                title=body.title,
                source=PageSource.API,
                page_id=page_id,
                now=now,
            )
            record_given(write, site, url, before, page_id, None)
    else:
        raise make_field_error("categories", "or text is required")
    if version is not None:
        await publish_written(valkey, [PageNotice(site.id, version)])
    async with pool.acquire() as connection:
        page = await find_page_by_url(connection, site.id, url)
        return _build_detail(page, await find_slots(connection, site.id, url), now, scope)


@router.delete("/pages/{page_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_site_page(
    site_id: UUID, page_id: UUID, scope: PublisherWrites, catalog: CurrentCatalog, valkey: CurrentValkey
) -> None:
    """Forget a page. The next crawl, or the next reader, may bring it back."""
    async with catalog.write() as write:
        site = await sites.table.find(write.connection, scope, site_id)
        page = await find_page(write.connection, site.id, PageId(page_id))
        notice = await delete_page(write.connection, site.id, PageId(page_id))
        record_removed(write, site, page)
    await publish_written(valkey, [notice])


@router.get("/topics")
async def list_site_topics(site_id: UUID, scope: PublisherReads, pool: Database, now: Now) -> SiteTopics:
    """Sum up what the pages of a site are about."""
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
        counts = await count_pages(connection, site.id, now=now)
        counted = await count_categories(connection, site.id)
    return SiteTopics(
        **msgspec.structs.asdict(counts),
        items=[SiteTopicAnswer.model_validate(one) for one in counted],
    )


def _with_descendants(category: str) -> frozenset[str]:
    if category not in load_content():
        raise make_field_error("category", "names no category: GET /admin/taxonomy/content lists them")
    return load_content().list_descendants(category) | {category}


def _find_url_of_site(text: str, site: Site) -> str:
    url = normalize_url(text)
    if url is None:
        raise make_field_error(
            "url",
            "must begin with http:// or https://, name a host, and have at most"
            f" {NORMALIZED_CHARACTERS_MAX} characters without tracking parameters",
        )
    if not site.hosts.has(url.host):
        also = " and match its hostPattern" if site.host_pattern else ""
        message = f"must be on {site.domain} or below it{also}"
        raise BadRequestError(
            f"url {message}.", code="PAGE_NOT_OF_SITE", errors=[FieldProblem("url", message)]
        )
    return url.text


def _take_categories(body: PageBody, now: datetime, *, fresh_hours: int) -> PageClassification:
    given = body.categories or ()
    if len({one.id for one in given}) < len(given):
        raise make_field_error("categories", "must not name a category twice")
    return PageClassification(
        title=body.title,
        categories=tuple(PageCategory(one.id, one.confidence) for one in given),
        source=PageSource.GIVEN,
        classified_at=now,
        expires_at=compute_expiry(now, fresh_hours=fresh_hours),
    )


def _build_detail(page: SitePage, slots: PageSlots | None, now: datetime, scope: Scope) -> SitePageDetail:
    evidence = [EvidenceAnswer.model_validate(one) for one in page.evidence]
    return SitePageDetail(**_describe(page, now), evidence=evidence, slots=_describe_slots(slots, scope))


def _describe_slots(listed: PageSlots | None, scope: Scope) -> list[PageSlotAnswer]:
    if listed is None:
        return []
    return [
        PageSlotAnswer(
            slot=one.slot,
            version=listed.version,
            updated_at=listed.updated_at,
            candidates=[_build_candidate(candidate, scope) for candidate in one.candidates],
        )
        for one in listed.slots
    ]


def _build_candidate(candidate: ListedCandidate, scope: Scope) -> SlotCandidateAnswer:
    shown = msgspec.structs.replace(candidate, category_score=round(candidate.category_score, 4))
    state = "pending" if candidate.is_pending else "serving"
    max_cpm = candidate.cpm if scope.account_id is None else None
    return SlotCandidateAnswer(max_cpm=max_cpm, state=state, **msgspec.structs.asdict(shown))


def _describe(page: SitePage, now: datetime) -> dict[str, Any]:
    fields: dict[str, Any] = {
        name: getattr(page, name) for name in SitePageAnswer.model_fields if hasattr(page, name)
    }
    return {**fields, "is_fresh": page.is_fresh(now)}
