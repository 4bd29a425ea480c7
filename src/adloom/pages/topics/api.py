"""What a site is about over HTTP: for the publisher that owns it, and for staff."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from pydantic import Field

from adloom.catalog.site.resource import sites
from adloom.pages.topics.store import CategoryCount, count_categories, count_pages
from adloom.resource.api import CurrentCatalog, PublisherReads, catalog_router
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.shapes import Answer
from adloom.taxonomy.iab import content

router = catalog_router("/admin/sites/{site_id}/topics", tag="pages")


class TopicAnswer(Answer):
    """A category, and how many pages of the site have it."""

    id: str
    name: str
    path: Annotated[Sequence[str], Field(description="The names from the root down to its own.")]
    pages: int
    confidence: Annotated[float, Field(description="The mean confidence of these pages.")]


class TopicsAnswer(Answer):
    """What a site is about; a page with two categories counts for both."""

    pages: Annotated[int, Field(description="How many pages are known.")]
    classified: int
    fresh: Annotated[int, Field(description="How many were classified lately enough to get ads.")]
    failed: Annotated[int, Field(description="How many could not be read.")]
    items: Annotated[Sequence[TopicAnswer], Field(description="Most pages first.")]


@router.get("")
async def read_site_topics(
    site_id: UUID, scope: PublisherReads, catalog: CurrentCatalog, now: Now
) -> TopicsAnswer:
    """Count the pages of a site by what they are about."""
    async with catalog.read() as connection:
        await sites.table.find(connection, scope, site_id)
        counts = await count_pages(connection, site_id, now=now)
        categories = await count_categories(connection, site_id)
    return TopicsAnswer(
        pages=counts.pages,
        classified=counts.classified,
        fresh=counts.fresh,
        failed=counts.failed,
        items=[_answer(one) for one in categories],
    )


def _answer(category: CategoryCount) -> TopicAnswer:
    path = content().path(category.id) or (category.id,)
    return TopicAnswer(
        id=category.id, name=path[-1], path=path, pages=category.pages, confidence=category.confidence
    )
