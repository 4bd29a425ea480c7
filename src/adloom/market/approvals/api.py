"""Approvals over HTTP: a publisher's inbox of banners, and its decisions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, ClassVar, Final
from uuid import UUID

from fastapi import Query
from pydantic import Field

from adloom.catalog.site.resource import sites
from adloom.core.errors import NotFoundError
from adloom.market.approval import ApprovalState
from adloom.market.approvals.store import (
    Approval,
    ApprovalDecision,
    Places,
    count_places,
    decide,
    list_approvals,
)
from adloom.resource.api import CurrentCatalog, PublisherReads, PublisherWrites, catalog_router
from adloom.runtime.http.api.dependencies import Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Text, Text255
from adloom.runtime.listing import Listed
from adloom.targeting.values import find_landing_domain

BANNERS_MAX: Final = 100


class ApprovalQuery(ListQuery):
    """Which banners to list."""

    SORTABLE: ClassVar = frozenset({"first_seen_at", "decided_at"})

    sort: Text255 = "-firstSeenAt"
    state: ApprovalState | None = None


class ApprovalBody(Body):
    """A decision about banners; it holds for the whole site. The advertiser reads the reason."""

    decision: ApprovalDecision
    banner_ids: Annotated[Sequence[UUID], Field(min_length=1, max_length=BANNERS_MAX)]
    reason: Annotated[Text | None, Field(max_length=500)] = None


class ApprovalAnswer(Answer):
    """A banner that wants to be shown on a site; `pages` and `slots` are where it is a candidate now."""

    banner_id: UUID
    campaign_id: UUID
    campaign_name: str
    advertiser_id: UUID | None
    advertiser_name: str | None
    title: str
    headline: str | None
    description: str | None
    primary_image_url: str
    cta_label: str | None
    landing_domain: str | None
    ad_product_category: str | None
    width: int | None
    height: int | None
    state: ApprovalState
    reason: str | None
    pages: int
    slots: int
    first_seen_at: datetime
    decided_at: datetime | None
    decided_by: str | None


class ChangedAnswer(Answer):
    """How many banners the decision changed."""

    changed: int


router = catalog_router("/admin/sites/{site_id}/approvals", tag="approvals")


@router.get("")
async def list_site_approvals(
    site_id: UUID,
    query: Annotated[ApprovalQuery, Query()],
    scope: PublisherReads,
    catalog: CurrentCatalog,
    now: Now,
) -> Page[ApprovalAnswer]:
    """List the banners that want to be shown on a site, or were decided about."""
    async with catalog.read() as connection:
        site = await sites.table.find(connection, scope, site_id)
        listed = await list_approvals(connection, site.id, query.state, query.page_request)
        places = await count_places(connection, site.id, [one.banner_id for one in listed.items], now=now)
    answers = [_describe(one, places.get(one.banner_id, Places())) for one in listed.items]
    return page_of(ApprovalAnswer, Listed(items=answers, total_count=listed.total_count), query)


@router.post("")
async def decide_site_approvals(
    site_id: UUID, body: ApprovalBody, scope: PublisherWrites, catalog: CurrentCatalog
) -> ChangedAnswer:
    """Approve, reject, revoke, flag or unflag banners; within a second it holds for all slots of the site."""
    async with catalog.write() as write:
        site = await sites.table.find(write.connection, scope, site_id)
        changed, unknown = await decide(
            write,
            site,
            list(dict.fromkeys(body.banner_ids)),
            body.decision,
            body.reason,
        )
        if unknown:
            raise NotFoundError(
                f"The banner {unknown[0]} was never a candidate on this site.", code="BANNER_NOT_FOUND"
            )
    return ChangedAnswer(changed=changed)


def _describe(one: Approval, places: Places) -> ApprovalAnswer:
    fields = {name: getattr(one, name) for name in ApprovalAnswer.model_fields if hasattr(one, name)}
    return ApprovalAnswer(
        **fields, landing_domain=find_landing_domain(one.cta_url), pages=places.pages, slots=places.slots
    )
