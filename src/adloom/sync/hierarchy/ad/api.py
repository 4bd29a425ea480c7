"""Ads over HTTP."""

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
from adloom.sync.hierarchy.ad import store
from adloom.sync.hierarchy.adset.store import adsets
from adloom.sync.hierarchy.model import Ad, AdId
from adloom.sync.words import EntityStatus


class AdFields(Body):
    """What an ad can be told."""

    name: Name
    adset_id: UUID
    status: EntityStatus = EntityStatus.ACTIVE
    external_ad_id: Text255 | None = None


class AdBody(AdFields, SellerBody):
    """A new ad."""


class AdPatch(SellerPatch, AdFields):
    """Changes of an ad."""


class AdAnswer(Answer):
    """An ad."""

    id: UUID
    advertiser_id: Annotated[UUID, Field(alias="sellerId")]
    adset_id: UUID
    name: str
    status: EntityStatus
    external_ad_id: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class AdQuery(SellerListQuery):
    """What a list of ads may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    status: EntityStatus | None = None
    adset_id: UUID | None = None
    search: Text255 | None = None


router = catalog_router(f"{PREFIX}/ads", tag="ads manager")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_ad(
    body: AdBody, asker: SellerWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> AdAnswer:
    """Make an ad of an ad set."""
    scope = asker.scope_of(body.seller_id)
    ad = Ad(
        **body.fields(but="seller_id"),
        id=AdId(ids.new()),
        advertiser_id=asker.seller_id(body.seller_id),
        created_at=now,
        updated_at=now,
        deleted_at=None,
    )
    async with catalog.write() as write:
        await adsets.find_parent_locked(write, scope, ad.adset_id)
        await store.ads.insert(write, ad)
    return AdAnswer.model_validate(ad)


@router.get("")
async def list_ads(
    query: Annotated[AdQuery, Query()], scope: SellerReads, catalog: CurrentCatalog
) -> Page[AdAnswer]:
    """List ads."""
    filters = store.matching(status=query.status, adset_id=query.adset_id, search=query.search)
    async with catalog.read() as connection:
        listed = await store.ads.page(connection, scope, filters, query.page_request)
    return page_of(AdAnswer, listed, query)


@router.get("/{ad_id}")
async def read_ad(ad_id: UUID, scope: SellerReads, catalog: CurrentCatalog) -> AdAnswer:
    """Read an ad."""
    async with catalog.read() as connection:
        return AdAnswer.model_validate(await store.ads.find(connection, scope, ad_id))


@router.patch("/{ad_id}")
async def change_ad(
    ad_id: UUID, body: AdPatch, asker: SellerWrites, catalog: CurrentCatalog, now: Now
) -> AdAnswer:
    """Change an ad, field by field."""
    scope = asker.scope_of(body.named_seller)
    async with catalog.write() as write:
        before = await store.ads.find_locked(write, scope, ad_id)
        after = body.applied_to(before, updated_at=now)
        if after.adset_id != before.adset_id:
            await adsets.find_parent_locked(write, scope, after.adset_id)
        after = await store.ads.update(write, before, after)
    return AdAnswer.model_validate(after)


@router.delete("/{ad_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_ad(ad_id: UUID, scope: SellerActs, catalog: CurrentCatalog, now: Now) -> None:
    """Delete an ad; what it has cost stays in the reports."""
    async with catalog.write() as write:
        ad = await store.ads.find_locked(write, scope, ad_id)
        await store.ads.remove(write, ad, now=now)
