"""What may need attention, out of the database."""

from datetime import datetime
from typing import Final

from adloom.budgets.status import BudgetStatus
from adloom.budgets.status_store import load_campaign_statuses
from adloom.core.ids import CampaignId
from adloom.ops.attention.model import SOON, Thing
from adloom.resource.access import Scope
from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Connection

BUDGETS_MAX: Final = 300  # The most recently changed: a campaign that has not spent for long is no emergency.
THINGS_MAX: Final = 10

RUNNING: Final = """
    SELECT it.public_id AS id, it.name, greatest(it.created_at, it.starts_at) AS at
      FROM campaigns AS it
      LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id
      LEFT JOIN brain_states AS state ON state.kind = 'campaign'
       AND state.key = coalesce(owner.public_id::text, '-') || '|' || it.public_id
     WHERE it.status = 'active' AND it.deleted_at IS NULL
       AND (it.budget_daily_paisa IS NOT NULL OR it.budget_total_paisa IS NOT NULL) AND {filters}
     ORDER BY state.changed_at DESC NULLS LAST, it.id DESC LIMIT {most}
"""
ENDING_CAMPAIGNS: Final = """
    SELECT it.public_id AS id, it.name AS name, it.ends_at AS at
      FROM campaigns AS it LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE it.status IN ('active', 'paused', 'scheduled') AND it.deleted_at IS NULL
       AND it.ends_at BETWEEN {now} AND {soon} AND {filters}
     ORDER BY it.ends_at, it.id LIMIT {most}
"""
ENDING_BANNERS: Final = """
    SELECT it.public_id AS id, it.title AS name, it.expires_at AS at
      FROM banners AS it LEFT JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE it.is_active AND it.deleted_at IS NULL
       AND it.expires_at BETWEEN {now} AND {soon} AND {filters}
     ORDER BY it.expires_at, it.id LIMIT {most}
"""
LOCKED_OUT: Final = """
    SELECT it.public_id AS id, it.name, it.credentials_expired_at AS at
      FROM sync.ad_accounts AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE it.credentials_expired_at IS NOT NULL AND it.deleted_at IS NULL AND {filters}
     ORDER BY it.credentials_expired_at DESC, it.id LIMIT {most}
"""

WITHDRAWN: Final = """
    SELECT it.public_id AS id, it.name, proof.withdrawn_at AS at
      FROM sites AS it JOIN site_verifications AS proof ON proof.site_id = it.id
      LEFT JOIN publishers AS owner ON owner.id = it.publisher_id
     WHERE proof.withdrawn_at IS NOT NULL AND it.verified_at IS NULL AND proof.domain = it.domain AND {filters}
     ORDER BY proof.withdrawn_at DESC, it.id LIMIT {most}
"""


async def read_running_budgets(
    connection: Connection, scope: Scope, *, now: datetime
) -> list[tuple[Thing, BudgetStatus]]:
    """Read the budget status of running campaigns."""
    things = await _read(connection, scope, "campaign", RUNNING, most=BUDGETS_MAX)
    statuses = await load_campaign_statuses(connection, [CampaignId(one.id) for one in things], now=now)
    return [(one, statuses[CampaignId(one.id)]) for one in things if one.id in statuses]


async def read_ending(connection: Connection, scope: Scope, *, now: datetime) -> list[Thing]:
    """Read the campaigns and banners that end soon."""
    return [
        *await _read(connection, scope, "campaign", ENDING_CAMPAIGNS, now=now, soon=now + SOON),
        *await _read(connection, scope, "banner", ENDING_BANNERS, now=now, soon=now + SOON),
    ]


async def read_locked_out(connection: Connection, scope: Scope) -> list[Thing]:
    """Read the ad accounts that need new credentials."""
    return await _read(connection, scope, "adAccount", LOCKED_OUT)


async def read_withdrawn(connection: Connection, scope: Scope) -> list[Thing]:
    """Read the sites that were verified and are not any more."""
    return await _read(connection, scope, "site", WITHDRAWN)


async def _read(
    connection: Connection,
    scope: Scope,
    noun: str,
    statement: str,
    *,
    most: int = THINGS_MAX,
    **values: datetime,
) -> list[Thing]:
    filters = Filters()
    filters.add_given("owner.public_id = {}", scope.account_id)
    bound = {name: filters.bind(value) for name, value in {"most": most, **values}.items()}
    rows = await connection.fetch(statement.format(filters=filters.sql, **bound), *filters.values)
    return [Thing(noun=noun, **row) for row in rows]
