"""Approvals over HTTP: a publisher's inbox of banners, and its decisions."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

from fastapi import Query
from pydantic import Field

from adloom.catalog.site import sites
from adloom.core.errors import NotFoundError, make_field_error
from adloom.market.approval import ApprovalState
from adloom.market.approvals.store import (
    Approval,
    ApprovalDecision,
    SiteDecisions,
    decide,
    list_approvals,
    list_sites,
)
from adloom.resource.api import CurrentCatalog, PublisherReads, PublisherWrites, make_catalog_router
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import CurrentCaller, Now
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.http.api.shapes import Answer, Body, Moment, Text, Text255

BANNERS_MAX: Final = 100


class ApprovalQuery(ListQuery):
    """Which banners to list."""

    SORTABLE: ClassVar = frozenset({"first_seen_at", "decided_at"})

    sort: Text255 = "-firstSeenAt"
    state: ApprovalState | None = None


class SiteDecisionsQuery(ListQuery):
    """How sites are sorted and paged."""

    SORTABLE: ClassVar = frozenset({"pending", "name"})

    sort: Text255 = "-pending"
    site_id: UUID | None = None


class ApprovalBody(Body):
    """A decision about banners; it holds for the whole site. The advertiser reads the reason.

    With `updatedAt`, the `bannerUpdatedAt` of banners by their ids, it is refused if one has changed since.
    """

    decision: ApprovalDecision
    banner_ids: Annotated[Sequence[UUID], Field(min_length=1, max_length=BANNERS_MAX)]
    updated_at: Annotated[Mapping[UUID, Moment], Field(max_length=BANNERS_MAX)] = {}
    reason: Annotated[Text | None, Field(max_length=500)] = None


ApprovalAnswer: Final = build_answer(
    "ApprovalAnswer",
    "A banner that bids for a site; `pages`, `slots` and `layoutType` are where it is a candidate now.",
    Approval,
    landing_domain=(str | None, ...),
)


SiteDecisionsAnswer: Final = build_answer(
    "SiteDecisionsAnswer", "A site, and how many banners wait there or were decided about.", SiteDecisions
)


class ChangedAnswer(Answer):
    """How many banners the decision changed."""

    changed: int


router = make_catalog_router("/admin/sites/{site_id}/approvals", tag="approvals")
inbox_router = make_catalog_router("/admin/approvals", tag="approvals")


@inbox_router.get("", response_model=Page[SiteDecisionsAnswer])
async def list_sites_with_approvals(
    query: Annotated[SiteDecisionsQuery, Query()], scope: PublisherReads, catalog: CurrentCatalog
) -> Page[Any]:
    """List sites with how many banners wait there for a decision: where to begin."""
    async with catalog.read() as connection:
        listed = await list_sites(connection, scope.account_id, query.site_id, query.page_request)
    return build_page(SiteDecisionsAnswer, listed, query)


@router.get("", response_model=Page[ApprovalAnswer])
async def list_site_approvals(  # noqa: PLR0913, PLR0917 - what the framework hands in
    site_id: UUID,
    query: Annotated[ApprovalQuery, Query()],
    scope: PublisherReads,
    catalog: CurrentCatalog,
    caller: CurrentCaller,
    now: Now,
) -> Page[Any]:
    """List the banners that bid for a site, or were decided about."""
    async with catalog.read() as connection:
        site = await sites.table.find(connection, scope, site_id)
        listed = await list_approvals(
            connection, site.id, query.state, query.page_request, caller=caller, now=now
        )
    return build_page(ApprovalAnswer, listed, query)


@router.post("")
async def decide_site_approvals(
    site_id: UUID, body: ApprovalBody, scope: PublisherWrites, catalog: CurrentCatalog
) -> ChangedAnswer:
    """Approve, reject, revoke, flag or unflag banners; within a second it holds for all slots of the site."""
    if not body.updated_at.keys() <= set(body.banner_ids):
        raise make_field_error("updatedAt", "names a banner that is not among bannerIds")
    async with catalog.write() as write:
        site = await sites.table.find(write.connection, scope, site_id)
        changed, unknown = await decide(
            write,
            site,
            list(dict.fromkeys(body.banner_ids)),
            body.decision,
            body.reason,
            updated_at=body.updated_at,
        )
        if unknown:
            raise NotFoundError(
                f"The banner {unknown[0]} was never a candidate on this site.", code="BANNER_NOT_FOUND"
            )
    return ChangedAnswer(changed=changed)
