"""Links and assignments over HTTP, under the campaign that they belong to."""

from typing import Annotated, Any, ClassVar
from uuid import UUID

from fastapi import Depends, Query, status

from adloom.catalog.assignment.resource import (
    assignments,
    delete_link,
    insert_assignment,
    insert_link,
    links,
    lock_link,
)
from adloom.catalog.campaign.resource import campaigns
from adloom.resource.account_bounds import keep_bounds
from adloom.resource.api import (
    AdvertiserReads,
    AdvertiserWrites,
    CurrentCatalog,
    make_catalog_router,
    set_body_type,
)
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
