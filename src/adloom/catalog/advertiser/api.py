"""Advertisers over HTTP: admins manage them, and an advertiser reads its own record."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from fastapi import Query, status
from pydantic import Field

from adloom.catalog.advertiser import store
from adloom.catalog.advertiser.model import BLOCKED_SITES_MAX, Advertiser
from adloom.core.ids import AdvertiserId
from adloom.resource.access import Scope
from adloom.resource.api import AdminWrites, AdvertiserReads, CurrentCatalog, catalog_router
from adloom.resource.changes import Catalog
from adloom.resource.shapes import Domain, Paisa, TimeZone
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.http.api.shapes import Answer, Body, Name, Patch, Text255


class AdvertiserBody(Body):
    """What an advertiser can be told."""

    name: Name
    daily_budget_paisa: Paisa | None = None
    timezone: TimeZone = "UTC"
    blocked_sites: Annotated[tuple[Domain, ...], Field(max_length=BLOCKED_SITES_MAX)] = ()


class AdvertiserPatch(Patch, AdvertiserBody):
    """Changes of an advertiser."""


class BudgetBody(Body):
    """What an advertiser spends a day at most; null for no limit."""

    daily_budget_paisa: Paisa | None


class AdvertiserAnswer(Answer):
    """An advertiser; its id is the account of its tokens."""

    id: UUID
    name: str
    daily_budget_paisa: int | None
    timezone: str
    blocked_sites: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class AdvertiserQuery(ListQuery):
    """What a list of advertisers may be narrowed to."""

    SORTABLE: ClassVar = store.SORTABLE

    include_deleted: bool = False
    search: Text255 | None = None


router = catalog_router("/admin/advertisers", tag="advertisers")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_advertiser(
    body: AdvertiserBody, _scope: AdminWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> AdvertiserAnswer:
    """Make an advertiser."""
    advertiser = Advertiser(
        **body.fields(), id=AdvertiserId(ids.new()), created_at=now, updated_at=now, deleted_at=None
    )
    async with catalog.write() as write:
        await store.advertisers.insert(write, advertiser)
    return AdvertiserAnswer.model_validate(advertiser)


@router.get("")
async def list_advertisers(
    query: Annotated[AdvertiserQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> Page[AdvertiserAnswer]:
    """List advertisers; one that asks sees itself."""
    filters = store.matching(search=query.search, includes_deleted=query.include_deleted)
    async with catalog.read() as connection:
        listed = await store.advertisers.page(connection, scope, filters, query.page_request)
    return page_of(AdvertiserAnswer, listed, query)


@router.get("/{advertiser_id}")
async def read_advertiser(
    advertiser_id: UUID, scope: AdvertiserReads, catalog: CurrentCatalog
) -> AdvertiserAnswer:
    """Read an advertiser, also one that is deleted."""
    async with catalog.read() as connection:
        found = await store.advertisers.find(connection, scope, advertiser_id)
    return AdvertiserAnswer.model_validate(found)


@router.patch("/{advertiser_id}")
async def change_advertiser(
    advertiser_id: UUID, body: AdvertiserPatch, scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> AdvertiserAnswer:
    """Change an advertiser, field by field."""
    return await _changed(
        catalog, scope, advertiser_id, lambda before: body.apply_to(before.present(), updated_at=now)
    )


@router.put("/{advertiser_id}/budget")
async def set_budget(
    advertiser_id: UUID, body: BudgetBody, scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> AdvertiserAnswer:
    """Set what an advertiser spends a day at most."""
    return await _changed(
        catalog,
        scope,
        advertiser_id,
        lambda before: msgspec.structs.replace(
            before.present(), daily_budget_paisa=body.daily_budget_paisa, updated_at=now
        ),
    )


@router.delete("/{advertiser_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_advertiser(
    advertiser_id: UUID, scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> None:
    """Delete an advertiser: its tokens are refused and nothing of it is served, until it is restored."""
    await _changed(catalog, scope, advertiser_id, lambda before: before.deleted(now))


@router.post("/{advertiser_id}/restore")
async def restore_advertiser(
    advertiser_id: UUID, scope: AdminWrites, catalog: CurrentCatalog, now: Now
) -> AdvertiserAnswer:
    """Bring a deleted advertiser back, with all that it owns."""
    return await _changed(catalog, scope, advertiser_id, lambda before: before.restored(now))


async def _changed(
    catalog: Catalog, scope: Scope, advertiser_id: UUID, rule: Callable[[Advertiser], Advertiser]
) -> AdvertiserAnswer:
    async with catalog.write() as write:
        before = await store.advertisers.find_locked(write, scope, advertiser_id)
        after = await store.update(write, before, rule(before))
    return AdvertiserAnswer.model_validate(after)
