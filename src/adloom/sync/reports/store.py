"""SQL of reports on campaigns, ad sets and ads: what is there, with the sums of its days beside it.

Entities and sums are read by a statement each, over one range of an index, and put together here: where the database
knew little about its tables it has joined them row by row, for minutes. What is deleted is shown where it has figures
in the range: money that was spent does not vanish.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec
from pydantic.alias_generators import to_camel

from adloom.core.errors import NotFoundError
from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Connection, Pool, Record
from adloom.sync.figures import Figures
from adloom.sync.hierarchy.model import (
    AdAccountNotFoundError,
    AdsetNotFoundError,
    SellpageNotFoundError,
    SyncedCampaignNotFoundError,
)
from adloom.sync.reports.model import ReportQuestion, ReportRow
from adloom.sync.words import Level

COUNTED: Final = Figures.__struct_fields__
MONEY: Final = frozenset({"spend", "purchase_value"})
NO_FIGURES: Final = Figures()
_STATE: Final = ("created_at", "updated_at", "deleted_at")


class LevelSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the entities of a level are: `alias` names them, `columns` what is shown of them."""

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
     WHERE seller_id = $1 AND entity_type = $2 AND stat_date BETWEEN $3 AND $4
     GROUP BY entity_id
"""
# Of few entities it is less to look for each than to read a seller's days.
SUMS_OF_SOME: Final = """
    SELECT entity_id, {sums} FROM sync.ad_stats_daily
     WHERE seller_id = $1 AND entity_type = $2 AND stat_date BETWEEN $3 AND $4 AND entity_id = ANY ($5::uuid[])
     GROUP BY entity_id
"""
SOME_MAX: Final = 100
# Compiling a statement takes longer than most reports.
DISABLE_JIT: Final = "SELECT set_config('jit', 'off', true)"
# What is deleted may still be asked about.
IS_OWN: Final = """
    SELECT EXISTS (
        SELECT FROM {table} AS it JOIN advertisers AS seller ON seller.id = it.advertiser_id
         WHERE it.public_id = $1 AND seller.public_id = $2
    )
"""
NAMED: Final[Mapping[str, tuple[str, str, type[NotFoundError]]]] = {
    "campaign_id": ("sync.campaigns", "campaign", SyncedCampaignNotFoundError),
    "adset_id": ("sync.adsets", "ad set", AdsetNotFoundError),
    "ad_account_id": ("sync.ad_accounts", "ad account", AdAccountNotFoundError),
    "sellpage_id": ("sync.sellpages", "sell page", SellpageNotFoundError),
}


def list_columns(level: Level) -> tuple[str, ...]:
    """Name what is shown of the entities of a level."""
    return (*map(to_camel, LEVELS[level].columns), "currency", "timezone")


async def load_entity_rows(pool: Pool, question: ReportQuestion, *, rows_max: int) -> list[ReportRow]:
    """Read what a report is about; raises where it names what is not the seller's."""
    # In one snapshot: who has figures is there.
    async with (
        pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
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
    values = (question.seller_id, question.level.value, question.first, question.last)
    if len(entity_ids) <= SOME_MAX:
        rows = await connection.fetch(SUMS_OF_SOME.format(sums=write_sums()), *values, entity_ids)
    else:
        rows = await connection.fetch(SUMS.format(sums=write_sums()), *values)
    return {row["entity_id"]: read_figures(row) for row in rows}


def write_sums(spend: str = "spend") -> str:
    """Write the sums of the figures, under the names that they have here."""
    counts = ", ".join(f"sum({name})::bigint AS {name}" for name in COUNTED if name not in MONEY)
    return f"sum({spend}) AS spend, {counts}, sum(purchase_value) AS purchase_value"


def read_figures(row: Record) -> Figures:
    """Read the figures of a row."""
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
    for field, (table, words, not_found) in NAMED.items():
        named = getattr(question, field)
        if named is not None and not await connection.fetchval(
            IS_OWN.format(table=table), named, question.seller_id
        ):
            raise not_found(f"There is no {words} with this id.")
