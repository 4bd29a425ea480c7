"""Pages and going rates of categories over HTTP: whoever is logged in may see what there is to buy."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

import msgspec
from pydantic import Field

from adloom.budgets.campaign.demand import FILLER
from adloom.core.ids import AdvertiserId
from adloom.core.money import Micros
from adloom.market.rates.rates import ADVERTISERS_MIN, CategoryBid, CategoryRate, PageCount, rate_categories
from adloom.resource.shapes import PriceShown
from adloom.runtime.http.api.dependencies import CurrentCaller, Database, Now, make_router
from adloom.runtime.http.api.shapes import Answer
from adloom.runtime.postgres import Connection
from adloom.taxonomy.iab import load_content

PAGES: Final = """
    SELECT page.site_id, ARRAY(
               SELECT category ->> 'id' FROM jsonb_array_elements(page.categories) AS category ORDER BY 1
           ) AS categories, count(*)
      FROM site_pages AS page JOIN sites AS site ON site.id = page.site_id
     WHERE page.expires_at > $1 AND NOT site.is_suspended AND page.categories <> '[]'
     GROUP BY 1, 2
"""
BIDS: Final = """
    SELECT (demand #>> '{demand,advertiser_id}')::uuid, (demand #>> '{demand,max_cpm}')::bigint,
           ARRAY(SELECT jsonb_array_elements_text(demand -> 'wanted')),
           ARRAY(SELECT jsonb_array_elements_text(demand #> '{demand,excluded_categories}'))
      FROM contextual_demand WHERE demand IS NOT NULL
"""


async def read_rates(connection: Connection, *, now: datetime) -> list[CategoryRate]:
    """Read what every category with pages or bids has, those with most pages first."""
    counts = [
        PageCount(site_key, tuple(categories), pages)
        for site_key, categories, pages in await connection.fetch(PAGES, now)
    ]
    bids = [
        CategoryBid(
            None if advertiser_id is None else AdvertiserId(advertiser_id),
            Micros(cpm),
            tuple(one for one in wanted if one != FILLER),
            tuple(excluded),
        )
        for advertiser_id, cpm, wanted, excluded in await connection.fetch(BIDS)
    ]
    return rate_categories(counts, bids, load_content().list_ancestors)


class CategoryRateAnswer(Answer):
    """A category, the fresh pages about it or what is below it, and a band of what is bid for them."""

    id: str
    name: str
    path: Sequence[str]
    pages: int
    sites: int
    campaigns: Annotated[int, Field(description="Those that bid on it, or on a category above it.")]
    low_cpm: Annotated[
        PriceShown | None,
        Field(description=f"Null with fewer than {ADVERTISERS_MIN} advertisers: it would tell a price."),
    ]
    high_cpm: Annotated[PriceShown | None, Field(description="A quarter of the bids is above it.")]


class CategoryRatesAnswer(Answer):
    """All categories that have pages or bids, those with most pages first."""

    items: Sequence[CategoryRateAnswer]


router = make_router("/admin/market", "market", 401, 403, 503)


@router.get("/categories")
async def list_category_rates(_caller: CurrentCaller, pool: Database, now: Now) -> CategoryRatesAnswer:
    """List what pages there are to buy, by category, and roughly what is bid for them."""
    async with pool.acquire() as connection:
        rates = await read_rates(connection, now=now)
    return CategoryRatesAnswer(
        items=[
            CategoryRateAnswer(
                name=one.name,
                path=one.path,
                low_cpm=one.band.low if one.band else None,
                high_cpm=one.band.high if one.band else None,
                **msgspec.structs.asdict(one),
            )
            for one in rates
        ]
    )
