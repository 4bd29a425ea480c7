"""Sell pages over HTTP."""

from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

from fastapi import Query, status
from pydantic import Field

from adloom.resource.api import CurrentCatalog, catalog_router
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Name, Text255, WebAddress
from adloom.sync.api import (
    PREFIX,
    SellerActs,
    SellerBody,
    SellerListQuery,
    SellerPatch,
    SellerReads,
    SellerWrites,
)
from adloom.sync.hierarchy.model import Sellpage, SellpageId
from adloom.sync.hierarchy.sellpage import store


class SellpageFields(Body):
    """What a sell page can be told."""

    name: Name
    url: WebAddress | None = None


class SellpageBody(SellpageFields, SellerBody):
    """A new sell page."""


class SellpagePatch(SellerPatch, SellpageFields):
    """Changes of a sell page."""


class SellpageAnswer(Answer):
    """A sell page."""

    id: UUID
    advertiser_id: Annotated[UUID, Field(alias="sellerId")]
    name: str
    url: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class SellpageQuery(SellerListQuery):
    """What a list of sell pages may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    search: Text255 | None = None


router = catalog_router(f"{PREFIX}/sellpages", tag="ads manager")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_sellpage(
    body: SellpageBody, asker: SellerWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> SellpageAnswer:
    """Make a sell page."""
    sellpage = Sellpage(
        **body.fields(but="seller_id"),
        id=SellpageId(ids.new()),
        advertiser_id=asker.seller_id(body.seller_id),
        created_at=now,
        updated_at=now,
        deleted_at=None,
    )
    async with catalog.write() as write:
        await store.sellpages.insert(write, sellpage)
    return SellpageAnswer.model_validate(sellpage)


@router.get("")
async def list_sellpages(
    query: Annotated[SellpageQuery, Query()], scope: SellerReads, catalog: CurrentCatalog
) -> Page[SellpageAnswer]:
    """List sell pages."""
    async with catalog.read() as connection:
        filters = store.matching(search=query.search)
        listed = await store.sellpages.page(connection, scope, filters, query.page_request)
    return page_of(SellpageAnswer, listed, query)


@router.get("/{sellpage_id}")
async def read_sellpage(sellpage_id: UUID, scope: SellerReads, catalog: CurrentCatalog) -> SellpageAnswer:
    """Read a sell page."""
    async with catalog.read() as connection:
        return SellpageAnswer.model_validate(await store.sellpages.find(connection, scope, sellpage_id))


@router.patch("/{sellpage_id}")
async def change_sellpage(
    sellpage_id: UUID, body: SellpagePatch, asker: SellerWrites, catalog: CurrentCatalog, now: Now
) -> SellpageAnswer:
    """Change a sell page, field by field."""
    scope = asker.scope_of(body.named_seller)
    async with catalog.write() as write:
        before = await store.sellpages.find_locked(write, scope, sellpage_id)
        after = await store.sellpages.update(write, before, body.applied_to(before, updated_at=now))
    return SellpageAnswer.model_validate(after)


@router.delete("/{sellpage_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_sellpage(sellpage_id: UUID, scope: SellerActs, catalog: CurrentCatalog, now: Now) -> None:
    """Delete a sell page to which no campaign leads any more."""
    async with catalog.write() as write:
        sellpage = await store.sellpages.find_locked(write, scope, sellpage_id)
        await store.sellpages.remove(write, sellpage, now=now)
