"""The events of a site over HTTP."""

from typing import Annotated
from uuid import UUID

import msgspec

from adloom.catalog.site import sites
from adloom.pages.live.feed import PageEvent, RemovalEvent, SiteFeed, SiteListener
from adloom.pages.live.store import EVENT_NAMES, ApprovalEvent, CrawlEvent
from adloom.resource.api import PublisherReads
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, depend_on, make_router
from adloom.runtime.http.api.event_stream import EventStream, describe_events

router = make_router("/admin/sites/{site_id}", "pages", 400, 401, 403, 404, 503)


def _describe_data() -> dict[str, object]:
    kinds = (CrawlEvent, PageEvent, RemovalEvent, ApprovalEvent)
    parts = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")[1]
    topic = parts["PageTopic"]
    parts["PageEvent"]["properties"]["categories"]["items"] = topic
    return {"oneOf": [parts[kind.__name__] for kind in kinds]}


@router.get(
    "/events",
    response_class=EventStream,
    responses=describe_events(_describe_data(), "crawl", "page", *EVENT_NAMES),
)
async def follow_site(
    site_id: UUID,
    scope: PublisherReads,
    caller: CurrentCaller,
    pool: Database,
    feed: Annotated[SiteFeed, depend_on("site_feed")],
) -> EventStream:
    """Follow a site as server-sent events.

    `listening` means that from here on nothing is left out: read now what you want to follow. `crawl` has the
    state of the latest crawl, `page` a page that is new or has changed; with `isRemoved` some pages are gone.
    `pending` has a banner that waits for a decision, `approved`, `rejected`, `flagged` and `revoked` one about which
    somebody has decided. A comment every 30 seconds shows that the stream is alive. It ends after 15 minutes, when
    the site or the server goes, within seconds of the end of its token, or when too much waits for a slow client; then
    connect again.
    """
    async with pool.acquire() as connection:
        site = await sites.table.find(connection, scope, site_id)
    key = caller.subject if scope.account_id is None else str(scope.account_id)
    feed.check_room(key)
    return EventStream(feed, SiteListener(site.id, caller=key))
