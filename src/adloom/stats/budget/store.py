"""SQL of daily budgets and their use, from the stored states of budget actors."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from adloom.budgets.status_store import load_campaign_statuses
from adloom.core.errors import NotFoundError
from adloom.core.ids import CampaignId
from adloom.core.money import micros_from_paisa
from adloom.resource.access import Scope
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection, Record
from adloom.schedule.pacing import PacingStrategy
from adloom.stats.budget.model import BudgetTotals, Pacer

# A campaign that spent something today was written today, whenever today began in its zone.
WRITTEN_WITHIN: Final = timedelta(hours=49)
STATES_A_TURN: Final = 500  # Other requests run between two slices.

_PACED: Final = """
    SELECT campaign.id AS key, campaign.public_id AS campaign_id, campaign.pacing_strategy::text AS strategy,
           campaign.budget_daily_paisa, owner.public_id AS owner_id, campaign.status::text AS status,
           state.changed_at, greatest(campaign.updated_at, state.changed_at) AS last_updated
      FROM campaigns AS campaign
      LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
      LEFT JOIN brain_states AS state ON state.kind = 'campaign'
       AND state.key = coalesce(owner.public_id::text, '-') || '|' || campaign.public_id
     WHERE campaign.deleted_at IS NULL AND owner.deleted_at IS NULL AND campaign.budget_daily_paisa IS NOT NULL
"""
PACED: Final = RowSource(
    columns="it.campaign_id, it.strategy, it.budget_daily_paisa, it.last_updated",
    tables=f"({_PACED}) AS it",
    tiebreak="it.key",
)
NOT_OVER: Final = "it.status NOT IN ('ended', 'cancelled')"
TOTALS: Final = """
    SELECT count(*) AS campaigns, coalesce(sum(it.budget_daily_paisa), 0)::bigint AS paisa
      FROM {tables} WHERE {filters}
"""
WRITTEN: Final = "SELECT {columns} FROM {tables} WHERE {filters} AND it.changed_at >= {since} ORDER BY it.key"


async def page(
    connection: Connection, scope: Scope, campaign_id: UUID | None, request: PageRequest, *, now: datetime
) -> Listed[Pacer]:
    filters = _build_filters(scope)
    filters.add_given("it.campaign_id = {}", campaign_id)
    rows = await fetch_page(connection, PACED, filters, request)
    return Listed(items=await _build_pacers(connection, rows.items, now=now), total_count=rows.total_count)


async def find(connection: Connection, campaign_id: UUID, *, now: datetime) -> Pacer:
    """Read the pacer of a campaign that the account may see, ended or not."""
    filters = Filters()
    filters.add("it.campaign_id = {}", campaign_id)
    request = PageRequest(size=1, sort="last_updated")
    rows = await fetch_page(connection, PACED, filters, request)
    if not rows.items:
        raise NotFoundError("The campaign has no daily budget.", code="BUDGET_NOT_FOUND")
    [pacer] = await _build_pacers(connection, rows.items, now=now)
    return pacer


async def read_totals(connection: Connection, scope: Scope, *, now: datetime) -> BudgetTotals:
    filters = _build_filters(scope)
    statement = TOTALS.format(tables=PACED.tables, filters=filters.sql)
    row = await connection.fetchrow(statement, *filters.values)
    assert row is not None
    budgets = BudgetTotals(
        total_campaigns=row["campaigns"], total_daily_budget=micros_from_paisa(row["paisa"])
    )
    since = filters.bind(now - WRITTEN_WITHIN)
    written = WRITTEN.format(columns=PACED.columns, tables=PACED.tables, filters=filters.sql, since=since)
    rows = await connection.fetch(written, *filters.values)
    for start in range(0, len(rows), STATES_A_TURN):
        some = rows[start : start + STATES_A_TURN]
        budgets = budgets.with_spent(await _build_pacers(connection, some, now=now))
    return budgets


async def _build_pacers(connection: Connection, rows: Sequence[Record], *, now: datetime) -> list[Pacer]:
    ids = [CampaignId(row["campaign_id"]) for row in rows]
    statuses = await load_campaign_statuses(connection, ids, now=now)
    return [
        Pacer(
            campaign_id=row["campaign_id"],
            strategy=PacingStrategy(row["strategy"]),
            daily_budget=micros_from_paisa(row["budget_daily_paisa"]),
            spent_today=statuses[row["campaign_id"]].spent_window,
            last_updated=row["last_updated"],
        )
        for row in rows
    ]


def _build_filters(scope: Scope) -> Filters:
    filters = Filters()
    filters.add(NOT_OVER)
    filters.add_given("it.owner_id = {}", scope.account_id)
    return filters
