"""Reads the pages and bids of all categories."""

from datetime import datetime
from typing import Final

from adloom.budgets.campaign.demand import FILLER
from adloom.core.ids import AdvertiserId
from adloom.core.money import Micros
from adloom.market.rates.rates import CategoryBid, CategoryRate, PageCount, rate_categories
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
           ARRAY(SELECT jsonb_array_elements_text(demand -> 'wanted'))
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
        )
        for advertiser_id, cpm, wanted in await connection.fetch(BIDS)
    ]
    return rate_categories(counts, bids, load_content().list_ancestors)
