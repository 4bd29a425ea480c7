"""Frequency caps over HTTP; what the catalog calls a banner is an ad here. Caps are replaced, not changed."""

from typing import Annotated, Final
from uuid import UUID

from fastapi import Query
from pydantic import Field

from adloom.catalog.frequency.resource import frequency_caps
from adloom.resource.api import AdvertiserReads, CurrentCatalog, build_router
from adloom.runtime.http.api.shapes import Answer, Body
from adloom.runtime.listing import Filters, PageRequest

# A bare list has an end too; whoever has more asks banner by banner.
LISTED_MAX: Final = 10_000


class FrequencyCapQuery(Body):
    """What the list may be narrowed to."""

    banner_id: Annotated[UUID | None, Field(alias="adId")] = None


router = build_router(frequency_caps, but=("list", "change"))


@router.get("", response_model=list[frequency_caps.answer])
async def list_caps(
    query: Annotated[FrequencyCapQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> list[Answer]:
    """List caps, those of one ad or of all, the oldest first; at most 10,000."""
    filters = Filters()
    filters.add_given(f"{frequency_caps.table.outside('banner_id')} = {{}}", query.banner_id)
    page = PageRequest(size=LISTED_MAX, sort="id")
    async with catalog.read() as connection:
        caps = await frequency_caps.table.page(connection, scope, filters, page)
    return [frequency_caps.answer.model_validate(cap) for cap in caps.items]
