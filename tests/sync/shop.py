"""A seller with an ad account and its entities, written directly into the tables."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import msgspec

from adloom.core.clock import ManualClock
from adloom.core.ids import SystemIds
from adloom.runtime.postgres import Pool
from adloom.sync.jobs import Origin, SyncJob
from adloom.sync.processor import SyncProcessor
from adloom.sync.providers.mock import MockProvider
from adloom.sync.providers.protocol import StatProvider
from adloom.sync.words import Level, Platform

NOW = datetime(2026, 2, 19, 12, 0, tzinfo=UTC)
DAY = NOW.date()
ids = SystemIds()


class Seller(msgspec.Struct, frozen=True, kw_only=True):
    """A seller's id, and the public ids of its entities."""

    id: UUID
    accounts: list[UUID]
    sellpages: list[UUID]
    campaigns: list[UUID]
    adsets: list[UUID]
    ads: list[UUID]


async def insert(connection: Pool, table: str, **columns: Any) -> tuple[int, UUID]:
    """Insert a row into a table of the hierarchy, and return its key and its public id."""
    public_id = columns.pop("public_id", None) or ids.make()
    names = ["public_id", *columns]
    places = ", ".join(f"${place}" for place in range(1, len(names) + 1))
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places}) RETURNING id"  # noqa: S608 - our own names
    return await connection.fetchval(statement, public_id, *columns.values()), public_id


async def a_seller(  # noqa: PLR0913 - how much of what
    pool: Pool,
    *,
    campaigns: int = 2,
    adsets: int = 1,
    ads: int = 2,
    pages: int = 1,
    account: dict[str, Any] | None = None,
    campaign: dict[str, Any] | None = None,
) -> Seller:
    """Make a seller with one account; `adsets` are those of each campaign, `ads` those of each ad set."""
    key, seller_id = await insert(pool, "advertisers", name="a seller")
    account_key, account_id = await insert(
        pool, "sync.ad_accounts", **({"advertiser_id": key, "name": "an account"} | (account or {}))
    )
    made = Seller(id=seller_id, accounts=[account_id], sellpages=[], campaigns=[], adsets=[], ads=[])
    page_keys: list[int] = []
    for _ in range(pages):
        page_key, page_id = await insert(pool, "sync.sellpages", advertiser_id=key, name="a page")
        page_keys.append(page_key)
        made.sellpages.append(page_id)
    for number in range(campaigns):
        fields = {
            "advertiser_id": key,
            "ad_account_id": account_key,
            "sellpage_id": page_keys[number % pages],
            "name": f"campaign {number}",
            "budget": 2500 + number,
        }
        campaign_key, campaign_id = await insert(pool, "sync.campaigns", **(fields | (campaign or {})))
        made.campaigns.append(campaign_id)
        for _ in range(adsets):
            adset_key, adset_id = await insert(
                pool, "sync.adsets", advertiser_id=key, campaign_id=campaign_key, name="a set"
            )
            made.adsets.append(adset_id)
            for _ in range(ads):
                _, ad_id = await insert(pool, "sync.ads", advertiser_id=key, adset_id=adset_key, name="an ad")
                made.ads.append(ad_id)
    return made


def a_job(seller: Seller | UUID, level: Level = Level.CAMPAIGN, **given: Any) -> SyncJob:
    fields: dict[str, Any] = {"date_from": DAY, "date_to": DAY, "origin": Origin.MANUAL}
    seller_id = seller.id if isinstance(seller, Seller) else seller
    return SyncJob(seller_id=seller_id, level=level, **(fields | given))


def a_processor(
    pool: Any, *, clock: ManualClock | None = None, mock: StatProvider | None = None, **given: Any
) -> SyncProcessor:
    providers = {Platform.MOCK: mock or MockProvider()}
    return SyncProcessor(pool, given.pop("providers", providers), clock=clock or ManualClock(NOW), **given)


async def tables(pool: Pool) -> dict[str, list[tuple[Any, ...]]]:
    """Read figures by day and by sell page, and raw rows, without timestamps and repeats."""
    read = {
        name: await pool.fetch(f"SELECT DISTINCT {columns} FROM sync.{table} ORDER BY 1, 2, 3, 4")  # noqa: S608 - our own names
        for name, (table, columns) in TABLES.items()
    }
    return {name: [tuple(row) for row in rows] for name, rows in read.items()}


async def stamps(pool: Pool) -> list[tuple[Any, ...]]:
    """Read when each row of figures was created and changed."""
    rows = await pool.fetch("""
        SELECT entity_id, stat_date, created_at, updated_at FROM sync.ad_stats_daily
        UNION ALL
        SELECT sellpage_id, stat_date, created_at, updated_at FROM sync.sellpage_stats_daily
        ORDER BY 1, 2
    """)
    return [tuple(row) for row in rows]


async def daily(pool: Pool, entity_id: UUID, day: date = DAY) -> dict[str, Any] | None:
    row = await pool.fetchrow(
        "SELECT * FROM sync.ad_stats_daily WHERE entity_id = $1 AND stat_date = $2", entity_id, day
    )
    return None if row is None else dict(row)


FIGURES = """
    spend, impressions, link_clicks, content_views, add_to_cart, checkout_initiated, purchases, purchase_value,
    cpm, ctr, cpc, cost_per_purchase, roas
"""
PAGE_FIGURES = """
    seller_id, sellpage_id, stat_date, ad_source, ad_spend, impressions, link_clicks, content_views, add_to_cart,
    checkout_initiated, purchases, purchase_value, orders_count, revenue, cpm, ctr, cost_per_purchase, roas,
    cr1, cr2, cr3
"""
TABLES = {
    "raw": ("ad_stats_raw", f"seller_id, entity_type, entity_id, date_start, {FIGURES}"),
    "daily": ("ad_stats_daily", f"seller_id, entity_type, entity_id, stat_date, {FIGURES}"),
    "pages": ("sellpage_stats_daily", PAGE_FIGURES),
}
