"""Ad sets over HTTP."""

from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from fastapi import Query, status
from pydantic import Field

from adloom.resource.api import CurrentCatalog, catalog_router
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Name, Text255
from adloom.sync.api import (
    PREFIX,
    SellerActs,
    SellerBody,
    SellerListQuery,
    SellerPatch,
    SellerReads,
    SellerWrites,
)
from adloom.sync.hierarchy.adset import store
from adloom.sync.hierarchy.campaign.store import campaigns
from adloom.sync.hierarchy.model import Adset, AdsetId
from adloom.sync.words import EntityStatus


class AdsetFields(Body):
    """What an ad set can be told."""

    name: Name
    campaign_id: UUID
    status: EntityStatus = EntityStatus.ACTIVE
    external_adset_id: Text255 | None = None


class AdsetBody(AdsetFields, SellerBody):
    """A new ad set."""


class AdsetPatch(SellerPatch, AdsetFields):
    """Changes of an ad set."""


class AdsetAnswer(Answer):
    """An ad set."""

    id: UUID
    advertiser_id: Annotated[UUID, Field(alias="sellerId")]
    campaign_id: UUID
    name: str
    status: EntityStatus
    external_adset_id: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class AdsetQuery(SellerListQuery):
    """What a list of ad sets may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    status: EntityStatus | None = None
    campaign_id: UUID | None = None
    search: Text255 | None = None


router = catalog_router(f"{PREFIX}/adsets", tag="ads manager")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_adset(
    body: AdsetBody, asker: SellerWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> AdsetAnswer:
    """Make an ad set of a campaign."""
    scope = asker.scope_of(body.seller_id)
    adset = Adset(
        **body.fields(but="seller_id"),
        id=AdsetId(ids.new()),
        advertiser_id=asker.seller_id(body.seller_id),
        created_at=now,
        updated_at=now,
        deleted_at=None,
    )
    async with catalog.write() as write:
        await campaigns.find_parent_locked(write, scope, adset.campaign_id)
        await store.adsets.insert(write, adset)
    return AdsetAnswer.model_validate(adset)


@router.get("")
async def list_adsets(
    query: Annotated[AdsetQuery, Query()], scope: SellerReads, catalog: CurrentCatalog
) -> Page[AdsetAnswer]:
    """List ad sets."""
    filters = store.matching(status=query.status, campaign_id=query.campaign_id, search=query.search)
    async with catalog.read() as connection:
        listed = await store.adsets.page(connection, scope, filters, query.page_request)
    return page_of(AdsetAnswer, listed, query)


@router.get("/{adset_id}")
async def read_adset(adset_id: UUID, scope: SellerReads, catalog: CurrentCatalog) -> AdsetAnswer:
    """Read an ad set."""
    async with catalog.read() as connection:
        return AdsetAnswer.model_validate(await store.adsets.find(connection, scope, adset_id))


@router.patch("/{adset_id}")
async def change_adset(
    adset_id: UUID, body: AdsetPatch, asker: SellerWrites, catalog: CurrentCatalog, now: Now
) -> AdsetAnswer:
    """Change an ad set, field by field."""
    scope = asker.scope_of(body.named_seller)
    async with catalog.write() as write:
        before = await store.adsets.find_locked(write, scope, adset_id)
        after = body.applied_to(before, updated_at=now)
        if after.campaign_id != before.campaign_id:
            await campaigns.find_parent_locked(write, scope, after.campaign_id)
        after = await store.adsets.update(write, before, after)
    return AdsetAnswer.model_validate(after)


@router.delete("/{adset_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_adset(adset_id: UUID, scope: SellerActs, catalog: CurrentCatalog, now: Now) -> None:
    """Delete an ad set that has no ads any more; what it has cost stays in the reports."""
    async with catalog.write() as write:
        adset = await store.adsets.find_locked(write, scope, adset_id)
        await store.adsets.remove(write, adset, now=now)
