"""What a publisher decides over HTTP: which campaigns use its placements, and which banners they show there."""

from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

from fastapi import Query

from adloom.catalog.assignment.model import Decision, LinkState, Reason
from adloom.catalog.assignment.resource import LOCKED, assignments, links
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.consent.publisher_view import PlacedCampaign, read_campaigns
from adloom.catalog.placement import placements
from adloom.resource.access import EVERYTHING, Scope
from adloom.resource.api import CurrentCatalog, PublisherReads, PublisherWrites, make_catalog_router
from adloom.resource.changes import Catalog, CatalogWrite
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.listing import Filters


class LinkStateQuery(ListQuery):
    """Which links of a placement to list."""

    SORTABLE: ClassVar = frozenset({"created_at", "updated_at"})

    state: LinkState | None = None


class PlacedLinksQuery(LinkStateQuery):
    """Which links to list, over placements."""

    placement_id: UUID | None = None


class DecisionBody(Body):
    """What a publisher says, and why; the advertiser reads it."""

    decision: Decision
    reason: Reason | None = None


PLACED_ANSWER: Final = build_answer(
    "PlacedCampaignAnswer", "A campaign that uses a placement, or asks for it.", PlacedCampaign
)
router = make_catalog_router("/admin/placements/{placement_id}/links", tag="consent")
inbox_router = make_catalog_router("/admin/links", tag="consent")


@inbox_router.get("", response_model=Page[PLACED_ANSWER])
async def list_placed_links(
    query: Annotated[PlacedLinksQuery, Query()], scope: PublisherReads, catalog: CurrentCatalog
) -> Page[Any]:
    """List which campaigns use placements or ask for them, over placements: a publisher's inbox."""
    return await _list(catalog, scope, query, query.placement_id)


@router.get("", response_model=Page[PLACED_ANSWER])
async def list_placement_links(
    placement_id: UUID,
    query: Annotated[LinkStateQuery, Query()],
    scope: PublisherReads,
    catalog: CurrentCatalog,
) -> Page[Any]:
    """List which campaigns use a placement or ask for it."""
    async with catalog.read() as connection:
        await placements.table.find(connection, scope, placement_id)
    return await _list(catalog, scope, query, placement_id)


@router.post("/{campaign_id}", response_model=links.answer)
async def decide_link(  # noqa: PLR0913, PLR0917 - two ids, a body and who decides when
    placement_id: UUID,
    campaign_id: UUID,
    body: DecisionBody,
    scope: PublisherWrites,
    catalog: CurrentCatalog,
    now: Now,
) -> Answer:
    """Accept or refuse a campaign; within two seconds it begins or stops to serve there."""
    async with catalog.write() as write:
        await _lock_campaign(write, scope, placement_id, campaign_id)
        before = await links.table.find(write.connection, EVERYTHING, campaign_id, placement_id, lock=LOCKED)
        write.precondition.check(before)
        after = await links.table.update(write, before, before.decided(body.decision, body.reason, now=now))
    return links.answer.model_validate(after)


@router.post("/{campaign_id}/banners/{banner_id}", response_model=assignments.answer)
async def decide_banner(  # noqa: PLR0913, PLR0917 - three ids, a body and who decides when
    placement_id: UUID,
    campaign_id: UUID,
    banner_id: UUID,
    body: DecisionBody,
    scope: PublisherWrites,
    catalog: CurrentCatalog,
    now: Now,
) -> Answer:
    """Refuse a banner that a campaign shows on a placement, or accept it again."""
    async with catalog.write() as write:
        await _lock_campaign(write, scope, placement_id, campaign_id)
        before = await assignments.table.find_locked(write, EVERYTHING, campaign_id, placement_id, banner_id)
        after = before.decided(body.decision, body.reason, now=now)
        decided = await assignments.table.update(write, before, after)
    return assignments.answer.model_validate(decided)


async def _lock_campaign(write: CatalogWrite, scope: Scope, placement_id: UUID, campaign_id: UUID) -> None:
    """Lock the campaign of a link to a placement of the scope; a campaign is locked first, as every write does."""
    await placements.table.find(write.connection, scope, placement_id)
    # A publisher does not learn of campaigns that have nothing to do with it.
    await links.table.find(write.connection, EVERYTHING, campaign_id, placement_id)
    await campaigns.table.lock(write, EVERYTHING, campaign_id)


async def _list(
    catalog: Catalog, scope: Scope, query: LinkStateQuery, placement_id: UUID | None
) -> Page[Any]:
    filters = Filters()
    filters.add_given("owner.public_id = {}", scope.account_id)
    filters.add_given("placement.public_id = {}", placement_id)
    filters.add_given("it.state = {}", query.state)
    async with catalog.read() as connection:
        listed = await read_campaigns(connection, filters, query.page_request)
    return build_page(PLACED_ANSWER, listed, query)
