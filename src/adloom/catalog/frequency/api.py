"""Frequency caps over HTTP; what the catalog calls a banner is an ad here."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Query, status
from pydantic import Field

from adloom.catalog.banner.store import banners
from adloom.catalog.frequency import store
from adloom.catalog.frequency.model import CapWindow, FrequencyCap
from adloom.core.ids import BannerId, FrequencyCapId
from adloom.resource.api import AdvertiserReads, AdvertiserWrites, CurrentCatalog, catalog_router
from adloom.runtime.http.api.dependencies import Ids, Now
from adloom.runtime.http.api.shapes import Answer, Body, Patch, Positive


class FrequencyCapFields(Body):
    """What a cap can be told."""

    max_impressions_per_user: Positive
    window: CapWindow = CapWindow.DAY


class FrequencyCapBody(FrequencyCapFields):
    """A new cap of a banner."""

    banner_id: Annotated[UUID, Field(alias="adId")]


class FrequencyCapPatch(Patch, FrequencyCapFields):
    """Changes of a cap, as an import has them: no route changes one."""


class FrequencyCapAnswer(Answer):
    """A cap."""

    id: UUID
    banner_id: Annotated[UUID, Field(alias="adId")]
    max_impressions_per_user: int
    window: CapWindow
    created_at: datetime
    updated_at: datetime
    # A cap is removed for good; the field is there because every resource has it.
    deleted_at: None = None


class FrequencyCapQuery(Body):
    """What the list may be narrowed to."""

    banner_id: Annotated[UUID | None, Field(alias="adId")] = None


router = catalog_router("/api/v1/admin/frequency/caps", tag="frequency caps")


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_cap(
    body: FrequencyCapBody, scope: AdvertiserWrites, catalog: CurrentCatalog, ids: Ids, now: Now
) -> FrequencyCapAnswer:
    """Add a cap to an ad; it may have several, one for each window."""
    cap = FrequencyCap(
        id=FrequencyCapId(ids.new()),
        banner_id=BannerId(body.banner_id),
        max_impressions_per_user=body.max_impressions_per_user,
        window=body.window,
        created_at=now,
        updated_at=now,
    )
    async with catalog.write() as write:
        banner = (await banners.find_parent_locked(write, scope, body.banner_id)).present()
        await store.insert(write, banner, cap)
    return FrequencyCapAnswer.model_validate(cap)


@router.get("")
async def list_caps(
    query: Annotated[FrequencyCapQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> list[FrequencyCapAnswer]:
    """List caps, those of one ad or of all, the oldest first; at most 10,000."""
    async with catalog.read() as connection:
        caps = await store.listed(connection, scope, query.banner_id)
    return [FrequencyCapAnswer.model_validate(cap) for cap in caps]


@router.get("/{cap_id}")
async def read_cap(cap_id: UUID, scope: AdvertiserReads, catalog: CurrentCatalog) -> FrequencyCapAnswer:
    """Read a cap."""
    async with catalog.read() as connection:
        return FrequencyCapAnswer.model_validate(await store.find(connection, scope, cap_id))


@router.delete("/{cap_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_cap(cap_id: UUID, scope: AdvertiserWrites, catalog: CurrentCatalog) -> None:
    """Remove a cap."""
    async with catalog.write() as write:
        await store.delete(write, await store.find_locked(write, scope, cap_id))
