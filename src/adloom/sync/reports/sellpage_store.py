"""SQL of reports on sell pages: one row a page and source of its readers."""

from typing import Final

from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Pool, Record
from adloom.sync.reports.model import PageQuestion, PageRow
from adloom.sync.reports.store import COUNTED, DISABLE_JIT, read_figures, write_sums
from adloom.sync.words import AD_SOURCES

PAGE_COLUMNS: Final = ("id", "name", "url", "adSource", "currency")
# What leads to a page, and in which currencies, is read off its campaigns. Where they have moved on and the figures
# have stayed, the currencies are those of all accounts of the seller.
SELLPAGES: Final = """
    WITH ways AS (
        SELECT page.public_id AS sellpage_id, source.ad_source, array_agg(DISTINCT account.currency) AS currencies
          FROM sync.campaigns AS campaign
          JOIN sync.sellpages AS page ON page.id = campaign.sellpage_id
          JOIN sync.ad_accounts AS account ON account.id = campaign.ad_account_id
          JOIN unnest({platforms}::text[], {sources}::text[]) AS source (platform, ad_source)
            ON source.platform = account.platform
         WHERE campaign.advertiser_id = (SELECT id FROM advertisers WHERE public_id = {seller})
         GROUP BY 1, 2
    ), summed AS (
        SELECT sellpage_id, ad_source, {sums}, sum(orders_count)::bigint AS orders_count, sum(revenue) AS revenue
          FROM sync.sellpage_stats_daily
         WHERE seller_id = {seller} AND stat_date BETWEEN {first} AND {last}
         GROUP BY 1, 2
    ), figures AS MATERIALIZED (
        SELECT * FROM ways FULL JOIN summed USING (sellpage_id, ad_source)
    )
    SELECT page.public_id AS id, page.name, page.url, figures.ad_source, {counted},
           coalesce(figures.orders_count, 0) AS orders_count, coalesce(figures.revenue, 0) AS revenue,
           CASE WHEN figures.currencies IS NOT NULL OR figures.spend IS NULL THEN figures.currencies ELSE ARRAY (
               SELECT DISTINCT currency FROM sync.ad_accounts WHERE advertiser_id = page.advertiser_id
           ) END AS currencies
      FROM sync.sellpages AS page LEFT JOIN figures ON figures.sellpage_id = page.public_id
     WHERE {filters} AND (page.deleted_at IS NULL OR figures.spend IS NOT NULL)
     ORDER BY page.id, figures.ad_source
     LIMIT {rows_max}
"""


async def load_page_rows(pool: Pool, question: PageQuestion, *, rows_max: int) -> list[PageRow]:
    """Read what a report is about."""
    filters = Filters()
    filters.add("page.advertiser_id = (SELECT id FROM advertisers WHERE public_id = {})", question.seller_id)
    filters.add_given("figures.ad_source = {}", question.ad_source)
    filters.add_search(("page.name", "page.url"), question.search)
    statement = SELLPAGES.format(
        platforms=filters.bind([platform.value for platform in AD_SOURCES]),
        sources=filters.bind([source.value for source in AD_SOURCES.values()]),
        sums=write_sums(spend="ad_spend"),
        counted=", ".join(f"coalesce(figures.{name}, 0) AS {name}" for name in COUNTED),
        filters=filters.sql,
        seller=filters.bind(question.seller_id),
        first=filters.bind(question.first),
        last=filters.bind(question.last),
        rows_max=filters.bind(rows_max),
    )
    async with pool.acquire() as connection, connection.transaction(readonly=True):
        await connection.execute(DISABLE_JIT)
        rows = await connection.fetch(statement, *filters.values)
    return [_build_page_row(row) for row in rows]


def _build_page_row(row: Record) -> PageRow:
    currencies = tuple(row["currencies"] or ())
    shown = (
        row["id"],
        row["name"],
        row["url"],
        row["ad_source"],
        currencies[0] if len(currencies) == 1 else None,
    )
    return PageRow(
        entity=dict(zip(PAGE_COLUMNS, shown, strict=True)),
        currencies=currencies,
        figures=read_figures(row),
        orders_count=row["orders_count"],
        revenue=row["revenue"],
    )
