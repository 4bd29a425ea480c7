"""What is shown where, over HTTP."""

from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from fastapi import Query

from adloom.catalog.assigned.store import AssignedBanner, read_page
from adloom.resource.api import AdvertiserReads, CurrentCatalog, catalog_router
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.pages import ListQuery, Page, page_of
from adloom.runtime.listing import PageRequest


class AssignedQuery(ListQuery):
    """What the list may be narrowed to; its order is that in which placements are filled."""

    SORTABLE: ClassVar = frozenset({"placement"})

    sort: Literal["placement"] = "placement"  # pyright: ignore[reportIncompatibleVariableOverride] - there is one order
    campaign_id: UUID | None = None
    placement_id: UUID | None = None
    banner_id: UUID | None = None

    @property
    def page_request(self) -> PageRequest:
        """The part of the list that is asked for."""
        return PageRequest(number=self.page, size=self.page_size, sort=self.sort)


ANSWER = build_answer(
    "AssignedAnswer",
    "A banner, in a campaign, on a placement; where nothing is assigned to a link, its banner is null.",
    AssignedBanner,
    {},
)

router = catalog_router("/admin/assignments", tag="assignments")


@router.get("", response_model=Page[ANSWER])
async def list_assigned(
    query: Annotated[AssignedQuery, Query()], scope: AdvertiserReads, catalog: CurrentCatalog
) -> Page[Any]:
    """List which banners are on which placements, over campaigns, in the order in which placements are filled."""
    async with catalog.read() as connection:
        listed = await read_page(
            connection,
            scope,
            query.page_request,
            campaign_id=query.campaign_id,
            placement_id=query.placement_id,
            banner_id=query.banner_id,
        )
    return page_of(ANSWER, listed, query)
