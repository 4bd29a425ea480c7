"""Classifying again, over HTTP."""

from typing import Annotated
from uuid import UUID

from fastapi import Request, status
from pydantic import Field

from adloom.catalog.site import sites
from adloom.pages.classify.queue import ClassifyQueue
from adloom.pages.reclassify.job import Reclassification, request_reclassification
from adloom.resource.api import PublisherWrites
from adloom.runtime.http.api.dependencies import CurrentValkey, Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer

router = make_router("/admin/sites/{site_id}", "pages", 400, 401, 403, 404, 503)


class AgainAnswer(Answer):
    """Which pages are looked at; a page that has today's classifier version stays as it is."""

    from_text: Annotated[
        int, Field(description="Pages whose text is kept: they are classified again from it.")
    ]
    at_next_crawl: Annotated[int, Field(description="Pages that have to be read again first.")]


@router.post("/classify-again", status_code=status.HTTP_202_ACCEPTED)
async def classify_site_again(  # noqa: PLR0913, PLR0917 - what a handler asks for
    site_id: UUID, scope: PublisherWrites, pool: Database, valkey: CurrentValkey, now: Now, request: Request
) -> AgainAnswer:
    """Classify the pages of a site again that an earlier version of the classifier has classified.

    The first 500 at once, others as the classifier has time. Categories that were given stay.
    """
    async with pool.acquire() as connection, connection.transaction():
        site = await sites.table.find(connection, scope, site_id)
        count = await request_reclassification(connection, site.id, now=now)
    await Reclassification(pool, ClassifyQueue(valkey), request.app.state.clock).run()
    return AgainAnswer.model_validate(count)
