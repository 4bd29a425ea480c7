"""SQL for scheduled syncs: eligible sellers, and the age of their figures."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.runtime.postgres import Connection, Pool

# An active account with valid credentials and a campaign that is active or paused.
_ELIGIBLE: Final = """
      FROM sync.ad_accounts AS account
      JOIN advertisers AS seller ON seller.id = account.advertiser_id AND seller.deleted_at IS NULL
     WHERE account.is_active AND account.deleted_at IS NULL AND account.credentials_expired_at IS NULL
       AND EXISTS (
            SELECT FROM sync.campaigns
             WHERE ad_account_id = account.id AND status IN ('ACTIVE', 'PAUSED') AND deleted_at IS NULL
       )
"""
ELIGIBLE: Final = f"""
    SELECT seller.public_id AS seller_id, array_agg(DISTINCT account.timezone) AS timezones
    {_ELIGIBLE}
     GROUP BY seller.public_id
     ORDER BY seller.public_id
"""
# A seller that was never synced is as old as its account.
AGES: Final = f"""
    WITH eligible AS (
        SELECT seller.public_id AS seller_id, min(account.created_at) AS since {_ELIGIBLE} GROUP BY 1
    ), fresh AS (
        SELECT seller_id, CASE WHEN count(synced_at) < 3 THEN since ELSE min(synced_at) END AS synced_at
          FROM eligible LEFT JOIN sync.freshness USING (seller_id)
         GROUP BY seller_id, since
    ), longest AS (
        SELECT seller_id, synced_at FROM fresh ORDER BY synced_at, seller_id LIMIT $2
    )
    SELECT count(*) AS sellers, max(synced_at) AS newest, count(*) FILTER (WHERE synced_at < $1) AS stale,
           (SELECT array_agg(seller_id ORDER BY synced_at, seller_id) FROM longest) AS seller_ids,
           (SELECT array_agg(synced_at ORDER BY synced_at, seller_id) FROM longest) AS since
      FROM fresh
"""  # noqa: S608 - our own words
SELLERS_NAMED_MAX: Final = 100  # Each is a series of a metric.
EXPIRED: Final = """
    SELECT it.public_id AS account_id, it.name, it.platform, seller.public_id AS seller_id,
           it.credentials_expired_at AS expired_at, it.credentials_problem AS problem
      FROM sync.ad_accounts AS it JOIN advertisers AS seller ON seller.id = it.advertiser_id
     WHERE it.credentials_expired_at IS NOT NULL AND it.is_active AND it.deleted_at IS NULL
       AND seller.deleted_at IS NULL
     ORDER BY it.credentials_expired_at
     LIMIT $1
"""


class EligibleSeller(msgspec.Struct, frozen=True):
    """A seller to sync, and the time zones of its accounts."""

    seller_id: UUID
    timezones: tuple[str, ...]


class SyncAges(msgspec.Struct, frozen=True, kw_only=True):
    """When eligible sellers were last synced on all levels; `longest` names those synced longest ago."""

    sellers: int = 0
    newest: datetime | None = None
    stale: int = 0
    longest: tuple[tuple[UUID, datetime], ...] = ()

    @property
    def oldest(self) -> datetime | None:
        """When the seller that has waited longest was synced."""
        return self.longest[0][1] if self.longest else None

    @property
    def stalest(self) -> list[UUID]:
        """The sellers with stale figures, the stalest first."""
        return [seller_id for seller_id, _ in self.longest[: self.stale]]


class ExpiredAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An ad account whose credentials the platform rejects."""

    account_id: UUID
    name: str
    platform: str
    seller_id: UUID
    expired_at: datetime
    problem: str


async def load_eligible_sellers(pool: Pool) -> list[EligibleSeller]:
    return [EligibleSeller(row["seller_id"], tuple(row["timezones"])) for row in await pool.fetch(ELIGIBLE)]


async def load_ages(connection: "Connection | Pool", *, stale_before: datetime) -> SyncAges:
    row = await connection.fetchrow(AGES, stale_before, SELLERS_NAMED_MAX)
    assert row is not None
    return SyncAges(
        sellers=row["sellers"],
        newest=row["newest"],
        stale=row["stale"],
        longest=tuple(zip(row["seller_ids"] or (), row["since"] or (), strict=True)),
    )


async def load_expired_accounts(connection: "Connection | Pool", *, count_max: int) -> list[ExpiredAccount]:
    """Load the accounts that a user must reconnect."""
    rows = await connection.fetch(EXPIRED, count_max)
    return [msgspec.convert(dict(row), ExpiredAccount) for row in rows]
