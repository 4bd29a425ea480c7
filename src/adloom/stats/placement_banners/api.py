"""The banners that run on a placement over HTTP: what visitors see, and how often they saw and clicked it."""

from datetime import timedelta
from typing import Annotated, Any, ClassVar, Final
from uuid import UUID

import msgspec
from fastapi import Query
from pydantic import Field

from adloom.catalog.consent.publisher_view import PlacedBanner, read_banners
from adloom.catalog.placement import placements
from adloom.core.money import Micros, paisa_from_micros
from adloom.resource.api import CurrentCatalog, PublisherReads, make_catalog_router
from adloom.resource.forms import build_answer
from adloom.runtime.http.api.dependencies import Database, Now
from adloom.runtime.http.api.pages import ListQuery, Page, build_page
from adloom.runtime.listing import Listed
from adloom.stats.model import Counts, Grouping, StatsQuestion
from adloom.stats.store import read_statistics

DAYS: Final = 30
ROWS_MAX: Final = 100_000
NOTHING: Final = Counts()

Counted = Annotated[int, Field(description=f"In the last {DAYS} days, today included.")]


class CountedBanner(PlacedBanner, frozen=True, kw_only=True):
    """A banner on a placement, with its numbers there."""

    impressions: Counted
    clicks: Counted
    spend_paisa: Counted


class PlacedBannersQuery(ListQuery):
    """How a list of the banners of a placement is sorted and paged."""

    SORTABLE: ClassVar = frozenset({"created_at", "updated_at", "display_order"})


COUNTED_ANSWER: Final = build_answer(
    "CountedBannerAnswer", "A banner that a campaign shows on a placement, with its numbers.", CountedBanner
)
router = make_catalog_router("/admin/placements/{placement_id}/banners", tag="consent")


@router.get("", response_model=Page[COUNTED_ANSWER])
async def list_placed_banners(  # noqa: PLR0913, PLR0917 - a placement, a query, and who asks when
    placement_id: UUID,
    query: Annotated[PlacedBannersQuery, Query()],
    scope: PublisherReads,
    catalog: CurrentCatalog,
    pool: Database,
    now: Now,
) -> Page[Any]:
    """List every banner that is on a placement, whoever's it is."""
    async with catalog.read() as connection:
        await placements.table.find(connection, scope, placement_id)
        listed = await read_banners(connection, placement_id, query.page_request)
    today = now.date()
    question = StatsQuestion(
        first=today - timedelta(days=DAYS - 1),
        last=today,
        placement_id=placement_id,
        publisher_id=scope.account_id,
        groupings=(Grouping.BANNER, Grouping.CAMPAIGN),
    )
    rows = await read_statistics(pool, question, today=today, rows_max=ROWS_MAX)
    counts = {row.key: row.counts for row in rows}
    items = [_count(one, counts.get((one.banner_id, one.campaign_id), NOTHING)) for one in listed.items]
    return build_page(COUNTED_ANSWER, Listed(items=items, total_count=listed.total_count), query)


def _count(banner: PlacedBanner, counts: Counts) -> CountedBanner:
    return CountedBanner(
        **msgspec.structs.asdict(banner),
        impressions=counts.impressions,
        clicks=counts.clicks,
        spend_paisa=paisa_from_micros(counts.spend or Micros(0)),
    )
