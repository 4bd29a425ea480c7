"""SQL of daily budgets and their use, from the stored states of budget actors, and asking one for a new window."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from adloom.auction.bid import BidType, compute_single_cost
from adloom.budgets.messages import OpenWindow
from adloom.budgets.status_store import load_campaign_statuses, load_window
from adloom.budgets.transport.wire import INBOX_CHANNEL, encode_envelopes
from adloom.core.errors import NotFoundError, UnavailableError
from adloom.core.ids import CampaignId
from adloom.core.money import Micros, micros_from_paisa
from adloom.resource.access import Scope
from adloom.runtime.actors.actor import Address
from adloom.runtime.listing import Filters, Listed, PageRequest, RowSource, fetch_page
from adloom.runtime.postgres import Connection, Pool, Record
from adloom.runtime.valkey import VALKEY_AWAY, Valkey
from adloom.schedule.pacing import PacingStrategy
from adloom.stats.budget.model import BudgetTotals, Pacer

# A campaign that spent something today was written today, whenever today began in its zone.
WRITTEN_WITHIN: Final = timedelta(hours=49)
STATES_A_TURN: Final = 500  # Other requests run between two slices.
_PACED: Final = """
    SELECT campaign.id AS key, campaign.public_id AS campaign_id, campaign.pacing_strategy::text AS strategy,
           campaign.budget_daily_paisa, campaign.bid_type::text, campaign.bid_amount_micros, owner.public_id AS owner_id, campaign.status::text AS status,
           state.changed_at, greatest(campaign.updated_at, state.changed_at) AS last_updated
      FROM campaigns AS campaign
      LEFT JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
      LEFT JOIN brain_states AS state ON state.kind = 'campaign'
       AND state.key = coalesce(owner.public_id::text, '-') || '|' || campaign.public_id
     WHERE campaign.deleted_at IS NULL AND owner.deleted_at IS NULL AND campaign.budget_daily_paisa IS NOT NULL
"""
PACED: Final = RowSource(
    columns="it.campaign_id, it.strategy, it.budget_daily_paisa, it.bid_type, it.bid_amount_micros, it.last_updated",
    tables=f"({_PACED}) AS it",
    tiebreak="it.key",
)
NOT_OVER: Final = "it.status NOT IN ('ended', 'cancelled')"
TOTALS: Final = """
    SELECT count(*) AS campaigns, coalesce(sum(it.budget_daily_paisa), 0)::bigint AS paisa
      FROM {tables} WHERE {filters}
"""
WRITTEN: Final = "SELECT {columns} FROM {tables} WHERE {filters} AND it.changed_at >= {since} ORDER BY it.key"
VISIBLE_SECONDS_MAX: Final = 2.0
POLL_SECONDS: Final = 0.04
# A campaign without a stored state begins its first day, and so its first window, with this message.
FIRST_WINDOW: Final = 1


async def read_page(
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
            cost=compute_single_cost(BidType(row["bid_type"]), Micros(row["bid_amount_micros"] or 0)),
        )
        for row in rows
    ]


def _build_filters(scope: Scope) -> Filters:
    filters = Filters()
    filters.add(NOT_OVER)
    filters.add_given("it.owner_id = {}", scope.account_id)
    return filters


async def open_window(pool: Pool, valkey: Valkey, address: Address, *, reason: str) -> None:
    """Open a new daily window; UnavailableError where it cannot be read in time."""
    async with pool.acquire() as connection:
        known = await load_window(connection, address)
    before = FIRST_WINDOW if known is None else known
    await _send(valkey, address, OpenWindow(reason=reason, was_window=before))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(VISIBLE_SECONDS_MAX):
            await _wait(pool, address, beyond=before)
            return
    raise UnavailableError("The new window was asked for, and is not there yet. Look at the budget again.")


async def _send(valkey: Valkey, address: Address, opening: OpenWindow) -> None:
    message = encode_envelopes([(address, opening)])
    try:
        async with asyncio.timeout(VISIBLE_SECONDS_MAX):
            heard_by: int = await valkey.publish(INBOX_CHANNEL, message)
    except (*VALKEY_AWAY, TimeoutError) as error:
        raise UnavailableError(f"The worker that keeps the budgets cannot be reached: {error!r}") from error
    if not heard_by:
        raise UnavailableError(
            "Nobody keeps the budgets at the moment, so nothing was reset. Is a worker running?"
        )


async def _wait(pool: Pool, address: Address, *, beyond: int) -> None:
    while True:
        async with pool.acquire() as connection:
            window = await load_window(connection, address)
        if window is not None and window > beyond:
            return
        await asyncio.sleep(POLL_SECONDS)
