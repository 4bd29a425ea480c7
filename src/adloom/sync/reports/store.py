"""SQL of reports: on campaigns, ad sets and ads, and on sell pages by source of visitors.

Entities and sums are read by one statement each, over one index range, and joined here: with poor table statistics
PostgreSQL joined them row by row, for minutes. Deleted entities appear if they have figures in the range, because their
money was spent.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec
from pydantic.alias_generators import to_camel

from adloom.core.errors import NotFoundError
from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Connection, Pool, Record, read_snapshot
from adloom.sync.figures import Figures
from adloom.sync.reports.model import PageQuestion, PageRow, ReportQuestion, ReportRow
from adloom.sync.words import AD_SOURCES, Level

COUNTED: Final = Figures.__struct_fields__
MONEY: Final = frozenset({"spend", "purchase_value"})
NO_FIGURES: Final = Figures()
_STATE: Final = ("created_at", "updated_at", "deleted_at")


class LevelSource(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a level; `alias` names the entity's own table, `columns` are the columns to show."""

    alias: str
    tables: str
    columns: Mapping[str, str]
    external_id: str
    of_adset: str = "adset.public_id = {}"


def _qualify(alias: str, *names: str) -> dict[str, str]:
    return {name: f"{alias}.{name}" for name in names}


LEVELS: Final = {
    Level.CAMPAIGN: LevelSource(
        alias="campaign",
        tables="sync.campaigns AS campaign",
        columns={
            "id": "campaign.public_id",
            "seller_id": "seller.public_id",
            "ad_account_id": "account.public_id",
            "sellpage_id": "(SELECT public_id FROM sync.sellpages WHERE id = campaign.sellpage_id)",
            **_qualify(
                "campaign", "name", "status", "budget", "budget_type", "external_campaign_id", *_STATE
            ),
        },
        external_id="external_campaign_id",
        of_adset="campaign.id = (SELECT campaign_id FROM sync.adsets WHERE public_id = {})",
    ),
    Level.ADSET: LevelSource(
        alias="adset",
        tables="sync.adsets AS adset JOIN sync.campaigns AS campaign ON campaign.id = adset.campaign_id",
        columns={
            "id": "adset.public_id",
            "seller_id": "seller.public_id",
            "campaign_id": "campaign.public_id",
            **_qualify("adset", "name", "status", "external_adset_id", *_STATE),
        },
        external_id="external_adset_id",
    ),
    Level.AD: LevelSource(
        alias="ad",
        tables="""
            sync.ads AS ad JOIN sync.adsets AS adset ON adset.id = ad.adset_id
            JOIN sync.campaigns AS campaign ON campaign.id = adset.campaign_id
        """,
        columns={
            "id": "ad.public_id",
            "seller_id": "seller.public_id",
            "campaign_id": "campaign.public_id",
            "adset_id": "adset.public_id",
            **_qualify("ad", "name", "status", "external_ad_id", *_STATE),
        },
        external_id="external_ad_id",
    ),
}
ENTITIES: Final = """
    SELECT {columns}, account.currency, account.timezone
      FROM {tables}
      JOIN sync.ad_accounts AS account ON account.id = campaign.ad_account_id
      JOIN advertisers AS seller ON seller.id = {alias}.advertiser_id
     WHERE {filters}
     ORDER BY {alias}.id
     LIMIT {rows_max}
"""
SUMS: Final = """
    SELECT entity_id, {sums} FROM sync.ad_stats_daily
     WHERE seller_id = $1 AND entity_type = $2 AND stat_date BETWEEN $3 AND $4 {among}
     GROUP BY entity_id
"""
# For few entities it is cheaper to look up each than to read all days of the seller.
AMONG: Final = "AND entity_id = ANY ($5::uuid[])"
SOME_MAX: Final = 100
# JIT compilation takes longer than most reports.
DISABLE_JIT: Final = "SELECT set_config('jit', 'off', true)"
# Deleted entities can still be filtered by.
IS_OWN: Final = """
    SELECT EXISTS (
        SELECT FROM {table} AS it JOIN advertisers AS seller ON seller.id = it.advertiser_id
         WHERE it.public_id = $1 AND seller.public_id = $2
    )
"""
NAMED: Final = {
    "campaign_id": ("sync.campaigns", "campaign", "SYNCED_CAMPAIGN_NOT_FOUND"),
    "adset_id": ("sync.adsets", "ad set", "ADSET_NOT_FOUND"),
    "ad_account_id": ("sync.ad_accounts", "ad account", "AD_ACCOUNT_NOT_FOUND"),
    "sellpage_id": ("sync.sellpages", "sell page", "SELLPAGE_NOT_FOUND"),
}


def list_columns(level: Level) -> tuple[str, ...]:
    """Return the public names of a level's columns."""
    return (*map(to_camel, LEVELS[level].columns), "currency", "timezone")


async def load_entity_rows(pool: Pool, question: ReportQuestion, *, rows_max: int) -> list[ReportRow]:
    """Load entities with their figures; raise NotFoundError if a filter names another seller's entity."""
    # One snapshot, so that entities and figures fit together.
    async with read_snapshot(pool) as connection:
        await connection.execute(DISABLE_JIT)
        await _check_named(connection, question)
        entities = await _load_entities(connection, question, rows_max)
        figures = await _load_figures(connection, question, [row["id"] for row in entities])
    names = list_columns(question.level)
    return [
        ReportRow(
            entity=dict(zip(names, row.values(), strict=True)),
            currency=row["currency"],
            figures=figures.get(row["id"], NO_FIGURES),
        )
        for row in entities
        if row["deleted_at"] is None or row["id"] in figures
    ]


async def _load_entities(connection: Connection, question: ReportQuestion, rows_max: int) -> list[Record]:
    source = LEVELS[question.level]
    filters = _build_filters(source, question)
    statement = ENTITIES.format(
        columns=", ".join(f"{expression} AS {name}" for name, expression in source.columns.items()),
        tables=source.tables,
        alias=source.alias,
        filters=filters.sql,
        rows_max=filters.bind(rows_max),
    )
    return await connection.fetch(statement, *filters.values)


async def _load_figures(
    connection: Connection, question: ReportQuestion, entity_ids: Sequence[UUID]
) -> dict[UUID, Figures]:
    among, some = (AMONG, [entity_ids]) if len(entity_ids) <= SOME_MAX else ("", [])
    statement = SUMS.format(sums=write_sums(), among=among)
    values = (question.seller_id, question.level.value, question.first, question.last)
    rows = await connection.fetch(statement, *values, *some)
    return {row["entity_id"]: read_figures(row) for row in rows}


def write_sums(spend: str = "spend") -> str:
    """Return SQL for the sums of all figures."""
    counts = ", ".join(f"sum({name})::bigint AS {name}" for name in COUNTED if name not in MONEY)
    return f"sum({spend}) AS spend, {counts}, sum(purchase_value) AS purchase_value"


def read_figures(row: Record) -> Figures:
    return Figures(**{name: row[name] for name in COUNTED})


def _build_filters(source: LevelSource, question: ReportQuestion) -> Filters:
    filters = Filters()
    filters.add("seller.public_id = {}", question.seller_id)
    filters.add_given("campaign.public_id = {}", question.campaign_id)
    filters.add_given(source.of_adset, question.adset_id)
    filters.add_given("account.public_id = {}", question.ad_account_id)
    filters.add_given(
        "campaign.sellpage_id = (SELECT id FROM sync.sellpages WHERE public_id = {})", question.sellpage_id
    )
    filters.add_given(f"{source.alias}.status = {{}}", question.status)
    filters.add_given("account.currency = {}", question.currency)
    filters.add_search((f"{source.alias}.name", f"{source.alias}.{source.external_id}"), question.search)
    return filters


async def _check_named(connection: Connection, question: ReportQuestion) -> None:
    for field, (table, words, code) in NAMED.items():
        named = getattr(question, field)
        if named is not None and not await connection.fetchval(
            IS_OWN.format(table=table), named, question.seller_id
        ):
            raise NotFoundError(f"There is no {words} with this id.", code=code)


SELLPAGE_COLUMNS: Final = ("id", "name", "url", "adSource", "currency")
# The sources and currencies of a page come from its campaigns. If some have moved to or from other pages, the figures of
# days before that are not theirs: then the currencies are those of all campaigns of the seller. Where it has only one,
# nothing needs to be compared.
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
    ), told AS (
        SELECT page.public_id AS sellpage_id, source.ad_source, sum(daily.spend) AS own_spend,
               sum(daily.purchase_value) AS own_value
          FROM sync.ad_stats_daily AS daily
          JOIN sync.campaigns AS campaign ON campaign.public_id = daily.entity_id
          JOIN sync.sellpages AS page ON page.id = campaign.sellpage_id
          JOIN sync.ad_accounts AS account ON account.id = campaign.ad_account_id
          JOIN unnest({platforms}::text[], {sources}::text[]) AS source (platform, ad_source)
            ON source.platform = account.platform
         WHERE daily.seller_id = {seller} AND daily.entity_type = 'CAMPAIGN'
           AND daily.stat_date BETWEEN {first} AND {last}
           AND cardinality({all_currencies}) > 1
         GROUP BY 1, 2
    ), figures AS MATERIALIZED (
        SELECT *, cardinality({all_currencies}) > 1
               AND (spend, purchase_value) IS DISTINCT FROM (own_spend, own_value) AS has_others
          FROM ways FULL JOIN summed USING (sellpage_id, ad_source) LEFT JOIN told USING (sellpage_id, ad_source)
    )
    SELECT page.public_id AS id, page.name, page.url, figures.ad_source, {counted},
           coalesce(figures.orders_count, 0) AS orders_count, coalesce(figures.revenue, 0) AS revenue,
           CASE WHEN figures.spend IS NOT NULL AND (figures.currencies IS NULL OR figures.has_others)
                THEN {all_currencies} ELSE figures.currencies END AS currencies
      FROM sync.sellpages AS page LEFT JOIN figures ON figures.sellpage_id = page.public_id
     WHERE {filters} AND (page.deleted_at IS NULL OR figures.spend IS NOT NULL)
     ORDER BY page.id, figures.ad_source
     LIMIT {rows_max}
"""


ALL_CURRENCIES: Final = """ARRAY (
    SELECT DISTINCT currency::text FROM sync.ad_accounts AS account
     WHERE advertiser_id = (SELECT id FROM advertisers WHERE public_id = {seller})
       AND EXISTS (SELECT FROM sync.campaigns WHERE ad_account_id = account.id)
)"""


async def load_page_rows(pool: Pool, question: PageQuestion, *, rows_max: int) -> list[PageRow]:
    filters = Filters()
    filters.add("page.advertiser_id = (SELECT id FROM advertisers WHERE public_id = {})", question.seller_id)
    filters.add_given("figures.ad_source = {}", question.ad_source)
    filters.add_search(("page.name", "page.url"), question.search)
    seller = filters.bind(question.seller_id)
    statement = SELLPAGES.format(
        platforms=filters.bind([platform.value for platform in AD_SOURCES]),
        sources=filters.bind([source.value for source in AD_SOURCES.values()]),
        sums=write_sums(spend="ad_spend"),
        counted=", ".join(f"coalesce(figures.{name}, 0) AS {name}" for name in COUNTED),
        filters=filters.sql,
        seller=seller,
        all_currencies=ALL_CURRENCIES.format(seller=seller),
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
        entity=dict(zip(SELLPAGE_COLUMNS, shown, strict=True)),
        currencies=currencies,
        figures=read_figures(row),
        orders_count=row["orders_count"],
        revenue=row["revenue"],
    )
