"""Links and assignments over HTTP, under the campaign that they belong to."""

from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from fastapi import Depends, Query, status

from adloom.catalog.assignment import store
from adloom.catalog.assignment.model import WEIGHT_DEFAULT, Assignment, Link, LinkNotFoundError
from adloom.catalog.campaign.model import Campaign
from adloom.catalog.campaign.store import campaigns
from adloom.core.ids import BannerId, PlacementId
from adloom.resource.access import Scope
from adloom.resource.api import AdvertiserReads, AdvertiserWrites, CurrentCatalog, catalog_router
from adloom.resource.changes import CatalogWrite
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Flag, Natural, Patch, Text100, Text255, WebAddress


class LinkFields(Body):
    """How a campaign uses a placement."""

    is_active: Flag = True


class LinkBody(LinkFields):
    """A placement for a campaign to use."""

    placement_id: UUID


class LinkPatch(Patch, LinkFields):
    """Changes of a link."""


class LinkAnswer(Answer):
    """A placement that a campaign uses."""

    campaign_id: UUID
    placement_id: UUID
    is_active: bool
    created_at: datetime
    updated_at: datetime


class LinkQuery(ListQuery):
    """How a list of links is sorted and paged."""

    SORTABLE: ClassVar = store.LINK_SORTABLE

    sort: Text255 = "createdAt"


class AssignmentFields(Body):
    """How a banner is shown on a placement."""

    display_order: Natural = 0
    weight: Natural = WEIGHT_DEFAULT
    is_fallback: Flag = False
    fallback_priority: Natural | None = None
    is_active: Flag = True
    override_cta_label: Text100 | None = None
    override_cta_url: WebAddress | None = None
    override_headline: Text255 | None = None
    override_subheadline: Text255 | None = None
    transition_duration_ms: Natural | None = None


class AssignmentBody(AssignmentFields):
    """A banner for a campaign to show on a placement."""

    banner_id: UUID


class AssignmentPatch(Patch, AssignmentFields):
    """Changes of an assignment."""


class AssignmentAnswer(Answer):
    """This banner, in this campaign, on this placement."""

    campaign_id: UUID
    placement_id: UUID
    banner_id: UUID
    display_order: int
    weight: int
    is_fallback: bool
    fallback_priority: int | None
    is_active: bool
    override_cta_label: str | None
    override_cta_url: str | None
    override_headline: str | None
    override_subheadline: str | None
    transition_duration_ms: int | None
    created_at: datetime
    updated_at: datetime


class AssignmentQuery(ListQuery):
    """How a list of assignments is sorted and paged."""

    SORTABLE: ClassVar = store.ASSIGNMENT_SORTABLE

    sort: Text255 = "displayOrder"


class LinkPath(msgspec.Struct, frozen=True):
    """Which link an address names."""

    campaign_id: UUID
    placement_id: UUID


def _link_path(campaign_id: UUID, placement_id: UUID) -> LinkPath:
    return LinkPath(campaign_id, placement_id)


LinkOfThePath = Annotated[LinkPath, Depends(_link_path)]

router = catalog_router("/admin/campaigns/{campaign_id}/placements", tag="assignments")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_link(
    campaign_id: UUID, body: LinkBody, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> LinkAnswer:
    """Let a campaign use a placement."""
    async with catalog.write() as write:
        campaign = await _campaign(write, scope, campaign_id)
        link = Link(
            campaign_id=campaign.id,
            placement_id=PlacementId(body.placement_id),
            is_active=body.is_active,
            created_at=now,
            updated_at=now,
        )
        await store.insert_link(write, scope, campaign, link)
    return LinkAnswer.model_validate(link)


@router.get("")
async def list_links(
    campaign_id: UUID,
    query: Annotated[LinkQuery, Query()],
    scope: AdvertiserReads,
    catalog: CurrentCatalog,
) -> Page[LinkAnswer]:
    """List the placements that a campaign uses."""
    async with catalog.read() as connection:
        campaign = await campaigns.find(connection, scope, campaign_id)
        return page_of(LinkAnswer, await store.links_of(connection, campaign, query.page_request), query)


@router.patch("/{placement_id}")
async def change_link(
    path: LinkOfThePath, body: LinkPatch, scope: AdvertiserWrites, catalog: CurrentCatalog, now: Now
) -> LinkAnswer:
    """Switch the use of a placement on or off."""
    async with catalog.write() as write:
        locked = await _link(write, scope, path)
        write.precondition.check(locked.link)
        link = await store.update_link(write, locked, body.apply_to(locked.link, updated_at=now))
    return LinkAnswer.model_validate(link)


@router.delete("/{placement_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_link(path: LinkOfThePath, scope: AdvertiserWrites, catalog: CurrentCatalog) -> None:
    """Take a placement from a campaign, with the banners assigned there."""
    async with catalog.write() as write:
        locked = await _link(write, scope, path)
        write.precondition.check(locked.link)
        await store.delete_link(write, locked)


@router.post("/{placement_id}/banners", status_code=status.HTTP_201_CREATED)
async def create_assignment(
    path: LinkOfThePath,
    body: AssignmentBody,
    scope: AdvertiserWrites,
    catalog: CurrentCatalog,
    now: Now,
) -> AssignmentAnswer:
    """Assign a banner to a placement that the campaign uses."""
    async with catalog.write() as write:
        locked = await _link(write, scope, path)
        assignment = Assignment(
            **body.fields(but="banner_id"),
            campaign_id=locked.link.campaign_id,
            placement_id=locked.link.placement_id,
            banner_id=BannerId(body.banner_id),
            created_at=now,
            updated_at=now,
        )
        await store.insert_assignment(write, scope, locked, assignment)
    return AssignmentAnswer.model_validate(assignment)


@router.get("/{placement_id}/banners")
async def list_assignments(
    path: LinkOfThePath,
    query: Annotated[AssignmentQuery, Query()],
    scope: AdvertiserReads,
    catalog: CurrentCatalog,
) -> Page[AssignmentAnswer]:
    """List the banners that are assigned to a placement of a campaign."""
    async with catalog.read() as connection:
        campaign = await campaigns.find(connection, scope, path.campaign_id)
        if not await store.has_link(connection, campaign, path.placement_id):
            raise LinkNotFoundError("The campaign does not use this placement.")
        listed = await store.assignments_of(connection, campaign, path.placement_id, query.page_request)
    return page_of(AssignmentAnswer, listed, query)


@router.patch("/{placement_id}/banners/{banner_id}")
async def change_assignment(  # noqa: PLR0913, PLR0917 - a link, a banner, a body and who asks when
    path: LinkOfThePath,
    banner_id: UUID,
    body: AssignmentPatch,
    scope: AdvertiserWrites,
    catalog: CurrentCatalog,
    now: Now,
) -> AssignmentAnswer:
    """Change how a banner is shown on a placement."""
    async with catalog.write() as write:
        locked = await _link(write, scope, path)
        before = await store.find_assignment_locked(write, locked, banner_id)
        after = await store.update_assignment(write, locked, before, body.apply_to(before, updated_at=now))
    return AssignmentAnswer.model_validate(after)


@router.delete("/{placement_id}/banners/{banner_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_assignment(
    path: LinkOfThePath,
    banner_id: UUID,
    scope: AdvertiserWrites,
    catalog: CurrentCatalog,
) -> None:
    """Take a banner from a placement of a campaign."""
    async with catalog.write() as write:
        locked = await _link(write, scope, path)
        await store.delete_assignment(
            write, locked, await store.find_assignment_locked(write, locked, banner_id)
        )


async def _campaign(write: CatalogWrite, scope: Scope, campaign_id: UUID) -> Campaign:
    return (await campaigns.find_parent_locked(write, scope, campaign_id)).present()


async def _link(write: CatalogWrite, scope: Scope, path: LinkPath) -> store.LockedLink:
    campaign = await _campaign(write, scope, path.campaign_id)
    return await store.find_link_locked(write, campaign, path.placement_id)
