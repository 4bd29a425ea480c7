"""A copy of a campaign: a draft with the same fields, placements, banners, creatives and targeting rules."""

from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from adloom.catalog.assignment.creative import creatives, insert_creative
from adloom.catalog.assignment.resource import assignments, insert_assignment, insert_link, links
from adloom.catalog.campaign.model import Campaign, CampaignStatus
from adloom.catalog.campaign.resource import campaigns
from adloom.catalog.targeting_rule import targeting_rules
from adloom.core.errors import BannerNotFoundError, PlacementNotFoundError
from adloom.core.ids import CampaignId, IdSource, TargetingRuleId
from adloom.resource.access import Scope
from adloom.resource.account_bounds import keep_bounds
from adloom.resource.changes import CatalogWrite, find_creator
from adloom.resource.resource import Resource
from adloom.runtime.http.api.shapes import Body, Moment, Name
from adloom.runtime.listing import Filters

COPY: Final = " (copy)"
NAME_LENGTH_MAX: Final = 255

T = TypeVar("T", bound=msgspec.Struct)


class DuplicateBody(Body):
    """What the copy is called, and when it runs; without dates, as the original, unless those are over."""

    name: Name | None = None
    starts_at: Moment | None = None
    ends_at: Moment | None = None


async def duplicate(  # noqa: PLR0913 - a campaign, what its copy is to have, and who asks when
    write: CatalogWrite,
    scope: Scope,
    campaign_id: UUID,
    wanted: DuplicateBody,
    *,
    ids: IdSource,
    now: datetime,
) -> Campaign:
    """Copy a campaign with all that hangs on it, in one transaction; the copy is a draft.

    The copy of an account asks for its placements anew, and leaves out what it could not ask for now: placements that
    are switched off, banners that are deleted.
    """
    original = (await campaigns.table.lock(write, scope, campaign_id)).require_present()
    dates = (wanted.starts_at, wanted.ends_at)
    if dates == (None, None) and (original.ends_at is None or original.ends_at > now):
        dates = (original.starts_at, original.ends_at)
    copy = msgspec.structs.replace(
        original,
        id=CampaignId(ids.make()),
        name=wanted.name or original.name[: NAME_LENGTH_MAX - len(COPY)] + COPY,
        status=CampaignStatus.DRAFT,
        starts_at=dates[0],
        ends_at=dates[1],
        created_by=await find_creator(write),
        created_at=now,
        updated_at=now,
    )
    copy = keep_bounds(campaigns.account_bounds, None, copy.with_dates_checked(), scope)
    await campaigns.insert(write, copy)
    await _copy_links(write, scope, original, copy)
    for creative in await _load(write, creatives, original):
        try:
            await insert_creative(
                write, scope, msgspec.structs.replace(creative, campaign_id=copy.id, created_at=now)
            )
        except BannerNotFoundError:
            continue
    for rule in await _load(write, targeting_rules, original):
        own = {
            "id": TargetingRuleId(ids.make()),
            "campaign_id": copy.id,
            "created_at": now,
            "updated_at": now,
        }
        await targeting_rules.insert(write, msgspec.structs.replace(rule, **own))
    return copy


async def _copy_links(write: CatalogWrite, scope: Scope, original: Campaign, copy: Campaign) -> None:
    own = {"campaign_id": copy.id, "created_at": copy.created_at, "updated_at": copy.updated_at}
    linked: set[UUID] = set()
    for link in await _load(write, links, original):
        try:
            await insert_link(write, scope, msgspec.structs.replace(link, **own))
        except PlacementNotFoundError:
            continue
        linked.add(link.placement_id)
    for assignment in await _load(write, assignments, original):
        if assignment.placement_id not in linked:
            continue
        assigned = msgspec.structs.replace(assignment, **own)
        try:
            await insert_assignment(
                write, scope, keep_bounds(assignments.account_bounds, None, assigned, scope)
            )
        except BannerNotFoundError:
            continue


async def _load(write: CatalogWrite, resource: Resource[T], campaign: Campaign) -> list[T]:
    filters = Filters()
    filters.add("campaign_id_row.public_id = {}", campaign.id)
    return await resource.table.load_where(write.connection, filters, "")
