"""What campaigns show where, over HTTP: links, assignments and creatives under their campaign, and what publishers decide."""

from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID

from fastapi import Depends, Query, status

from adloom.catalog.assignment.creative import creatives, insert_creative
from adloom.catalog.assignment.lists import AssignedBanner, PlacedCampaign, read_assigned, read_campaigns
from adloom.catalog.assignment.model import Decision, LinkState, Reason
from adloom.catalog.assignment.resource import (
    SHARE_PLACEMENT,
    assignments,
    delete_link,
    insert_assignment,
    insert_link,
    links,
    lock_link,
)
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.placement import placements
from adloom.resource.access import EVERYTHING, Scope
from adloom.resource.account_bounds import keep_bounds
from adloom.resource.api import (
    AdvertiserReads,
    AdvertiserWrites,
    CurrentCatalog,
    PublisherReads,
    PublisherWrites,
    make_catalog_router,
    set_body_type,
)
from adloom.resource.changes import Catalog, CatalogWrite
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Patch, Text255
from adloom.runtime.listing import Filters


class LinkQuery(ListQuery):
    """How a list of links is sorted and paged."""

    SORTABLE: ClassVar = frozenset({"created_at", "updated_at", "is_active"})

    sort: Text255 = "createdAt"


class AssignmentQuery(ListQuery):
    """How a list of assignments is sorted and paged."""

    SORTABLE: ClassVar = frozenset({"created_at", "updated_at", "display_order", "weight", "is_active"})

    sort: Text255 = "displayOrder"


async def _pair_link_ids(campaign_id: UUID, placement_id: UUID) -> tuple[UUID, UUID]:
    return campaign_id, placement_id


LinkIds = Annotated[tuple[UUID, UUID], Depends(_pair_link_ids)]

router = make_catalog_router("/admin/campaigns/{campaign_id}/placements", tag="assignments")


@router.post("", status_code=status.HTTP_201_CREATED, response_model=links.answer)
@set_body_type(links.body)
async def create_link(
    campaign_id: UUID, body: Body, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> Answer:
    """Let a campaign use a placement; an account asks for one that is not its own."""
    async with catalog.write() as write:
        (await campaigns.table.lock(write, scope, campaign_id)).require_present()
        link = links.build(body, campaign_id=campaign_id, created_at=now, updated_at=now)
        link = await insert_link(write, scope, link)
    return links.answer.model_validate(link)


@router.get("", response_model=Page[links.answer])
async def list_links(
    campaign_id: UUID, query: Annotated[LinkQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> Page[Any]:
    """List the placements that a campaign uses."""
    filters = Filters()
    filters.add("campaign_id_row.public_id = {}", campaign_id)
    async with catalog.read() as connection:
        await campaigns.table.find(connection, scope, campaign_id)
        listed = await links.table.read_page(connection, scope, filters, query.page_request)
    return build_page(links.answer, listed, query)


@router.patch("/{placement_id}", response_model=links.answer)
@set_body_type(links.patch)
async def change_link(
    link_ids: LinkIds, body: Patch, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> Answer:
    """Switch the use of a placement on or off."""
    async with catalog.write() as write:
        before = await lock_link(write, scope, *link_ids)
        write.precondition.check(before)
        link = await links.update(write, scope, before, links.apply(body, before, now))
    return links.answer.model_validate(link)


@router.delete("/{placement_id}", status_code=status.HTTP_204_NO_CONTENT, name="delete_link")
async def remove_link(link_ids: LinkIds, scope: AdvertiserWrites, catalog: CurrentCatalog) -> None:
    """Take a placement from a campaign, with the banners assigned there."""
    async with catalog.write() as write:
        link = await lock_link(write, scope, *link_ids)
        write.precondition.check(link)
        await delete_link(write, scope, link)


@router.post(
    "/{placement_id}/banners", status_code=status.HTTP_201_CREATED, response_model=assignments.answer
)
@set_body_type(assignments.body)
async def create_assignment(
    link_ids: LinkIds, body: Body, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> Answer:
    """Assign a banner to a placement that the campaign uses."""
    async with catalog.write() as write:
        link = await lock_link(write, scope, *link_ids)
        assignment = assignments.build(
            body, campaign_id=link.campaign_id, placement_id=link.placement_id, created_at=now, updated_at=now
        )
        assignment = keep_bounds(
            assignments.account_bounds, None, assignment, scope, given=body.model_fields_set
        )
        await insert_assignment(write, scope, assignment)
    return assignments.answer.model_validate(assignment)


@router.get("/{placement_id}/banners", response_model=Page[assignments.answer])
async def list_assignments(
    link_ids: LinkIds,
    query: Annotated[AssignmentQuery, Query()],
    scope: AdvertiserReads,
    catalog: CurrentCatalog,
) -> Page[Any]:
    """List the banners that are assigned to a placement of a campaign."""
    filters = Filters()
    filters.add("campaign_id_row.public_id = {}", link_ids[0])
    filters.add("placement_id_row.public_id = {}", link_ids[1])
    async with catalog.read() as connection:
        await campaigns.table.find(connection, scope, link_ids[0])
        await links.table.find(connection, scope, *link_ids)
        listed = await assignments.table.read_page(connection, scope, filters, query.page_request)
    return build_page(assignments.answer, listed, query)


@router.patch("/{placement_id}/banners/{banner_id}", response_model=assignments.answer)
@set_body_type(assignments.patch)
async def change_assignment(  # noqa: PLR0913, PLR0917 - a link, a banner, a body and who asks when
    link_ids: LinkIds,
    banner_id: UUID,
    body: Patch,
    scope: AdvertiserWrites,
    catalog: CurrentCatalog,
    now: Now,
) -> Answer:
    """Change how a banner is shown on a placement."""
    async with catalog.write() as write:
        await lock_link(write, scope, *link_ids)
        before = await assignments.table.find_locked(write, scope, *link_ids, banner_id)
        after = await assignments.update(write, scope, before, assignments.apply(body, before, now))
    return assignments.answer.model_validate(after)


@router.delete("/{placement_id}/banners/{banner_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_assignment(
    link_ids: LinkIds, banner_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog
) -> None:
    """Take a banner from a placement of a campaign."""
    async with catalog.write() as write:
        await lock_link(write, scope, *link_ids)
        assignment = await assignments.table.find_locked(write, scope, *link_ids, banner_id)
        assignment.check_removal(scope.account_id)
        await assignments.table.delete(write, assignment)


class CreativeQuery(ListQuery):
    """How a list of creatives is sorted and paged."""

    SORTABLE: ClassVar = frozenset({"created_at"})

    sort: Text255 = "createdAt"


creatives_router = make_catalog_router("/admin/campaigns/{campaign_id}/creatives", tag="creatives")


@creatives_router.post("", status_code=status.HTTP_201_CREATED, response_model=creatives.answer)
@set_body_type(creatives.body)
async def create_creative(
    campaign_id: UUID, body: Body, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> Answer:
    """Let a campaign show a banner in contextual slots; its size decides in which."""
    async with catalog.write() as write:
        campaign = (await campaigns.table.lock(write, scope, campaign_id)).require_present()
        creative = creatives.build(body, campaign_id=campaign.id, created_at=now)
        await insert_creative(write, scope, creative)
    return creatives.answer.model_validate(creative)


@creatives_router.get("", response_model=Page[creatives.answer])
async def list_creatives(
    campaign_id: UUID,
    query: Annotated[CreativeQuery, Query()],
    scope: AdvertiserReads,
    catalog: CurrentCatalog,
) -> Page[Any]:
    """List the banners that a campaign shows in contextual slots."""
    filters = Filters()
    filters.add("campaign_id_row.public_id = {}", campaign_id)
    async with catalog.read() as connection:
        await campaigns.table.find(connection, scope, campaign_id)
        listed = await creatives.table.read_page(connection, scope, filters, query.page_request)
    return build_page(creatives.answer, listed, query)


@creatives_router.delete("/{banner_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_creative(
    campaign_id: UUID, banner_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog
) -> None:
    """Take a banner out of the contextual slots of a campaign."""
    async with catalog.write() as write:
        (await campaigns.table.lock(write, scope, campaign_id)).require_present()
        creative = await creatives.table.find_locked(write, scope, campaign_id, banner_id)
        await creatives.table.delete(write, creative)


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
decisions_router = make_catalog_router("/admin/placements/{placement_id}/links", tag="consent")
inbox_router = make_catalog_router("/admin/links", tag="consent")


@inbox_router.get("", response_model=Page[PLACED_ANSWER])
async def list_placed_links(
    query: Annotated[PlacedLinksQuery, Query()], scope: PublisherReads, catalog: CurrentCatalog
) -> Page[Any]:
    """List which campaigns use placements or ask for them, over placements: a publisher's inbox."""
    return await _list_placed(catalog, scope, query, query.placement_id)


@decisions_router.get("", response_model=Page[PLACED_ANSWER])
async def list_placement_links(
    placement_id: UUID,
    query: Annotated[LinkStateQuery, Query()],
    scope: PublisherReads,
    catalog: CurrentCatalog,
) -> Page[Any]:
    """List which campaigns use a placement or ask for it."""
    async with catalog.read() as connection:
        await placements.table.find(connection, scope, placement_id)
    return await _list_placed(catalog, scope, query, placement_id)


@decisions_router.post("/{campaign_id}", response_model=links.answer)
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
        await write.connection.execute(SHARE_PLACEMENT, placement_id)
        before = await links.table.find_locked(write, EVERYTHING, campaign_id, placement_id)
        after = await links.table.update(write, before, before.decided(body.decision, body.reason, now=now))
    return links.answer.model_validate(after)


@decisions_router.post("/{campaign_id}/banners/{banner_id}", response_model=assignments.answer)
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


async def _list_placed(
    catalog: Catalog, scope: Scope, query: LinkStateQuery, placement_id: UUID | None
) -> Page[Any]:
    filters = Filters()
    filters.add_given("owner.public_id = {}", scope.account_id)
    filters.add_given("placement.public_id = {}", placement_id)
    filters.add_given("it.state = {}", query.state)
    async with catalog.read() as connection:
        listed = await read_campaigns(connection, filters, query.page_request)
    return build_page(PLACED_ANSWER, listed, query)


class AssignedQuery(ListQuery):
    """What the list may be narrowed to; its order is that in which placements are filled."""

    SORTABLE: ClassVar = frozenset({"placement"})

    sort: Literal["placement"] = "placement"  # pyright: ignore[reportIncompatibleVariableOverride] - there is one order
    campaign_id: UUID | None = None
    placement_id: UUID | None = None
    banner_id: UUID | None = None


ASSIGNED_ANSWER: Final = build_answer(
    "AssignedAnswer",
    "A banner, in a campaign, on a placement; where nothing is assigned to a link, its banner is null.",
    AssignedBanner,
)
assigned_router = make_catalog_router("/admin/assignments", tag="assignments")


@assigned_router.get("", response_model=Page[ASSIGNED_ANSWER])
async def list_assigned(
    query: Annotated[AssignedQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> Page[Any]:
    """List which banners are on which placements, over campaigns, in the order in which placements are filled."""
    filters = Filters()
    filters.add_given("campaign.public_id = {}", query.campaign_id)
    filters.add_given("placement.public_id = {}", query.placement_id)
    filters.add_given("banner.public_id = {}", query.banner_id)
    filters.add_given("owner.public_id = {}", scope.account_id)
    async with catalog.read() as connection:
        listed = await read_assigned(connection, filters, query.page_request)
    return build_page(ASSIGNED_ANSWER, listed, query)
