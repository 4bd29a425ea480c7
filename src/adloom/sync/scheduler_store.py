"""SQL about who is synced by the clock, and how old their figures are."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.runtime.postgres import Connection, Pool

# An active account that can be asked, with a campaign that runs or may run again.
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
# Who was never synced is as old as the account.
AGES: Final = f"""
    WITH eligible AS (
        SELECT seller.public_id AS seller_id, min(account.created_at) AS since {_ELIGIBLE} GROUP BY 1
    ), fresh AS (
        SELECT seller_id, CASE WHEN count(synced_at) < 3 THEN since ELSE min(synced_at) END AS synced_at
          FROM eligible LEFT JOIN sync.freshness USING (seller_id)
         GROUP BY seller_id, since
    )
    SELECT count(*) AS sellers, min(synced_at) AS oldest, max(synced_at) AS newest,
           count(*) FILTER (WHERE synced_at < $1) AS stale,
           (SELECT array_agg(seller_id) FROM (
                SELECT seller_id FROM fresh WHERE synced_at < $1 ORDER BY synced_at LIMIT 5
           ) AS worst) AS stalest
      FROM fresh
"""  # noqa: S608 - our own words
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
    """A seller to sync, and the zones that its accounts keep their days in."""

    seller_id: UUID
    timezones: tuple[str, ...]


class Ages(msgspec.Struct, frozen=True, kw_only=True):
    """When the sellers that the clock syncs were last synced on all levels; the stalest by name."""

    sellers: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    stale: int = 0
    stalest: tuple[UUID, ...] = ()


class ExpiredAccount(msgspec.Struct, frozen=True, kw_only=True):
    """An ad account whose credentials are no longer taken."""

    account_id: UUID
    name: str
    platform: str
    seller_id: UUID
    expired_at: datetime
    problem: str


async def eligible_sellers(pool: Pool) -> list[EligibleSeller]:
    """Find whom to sync."""
    return [EligibleSeller(row["seller_id"], tuple(row["timezones"])) for row in await pool.fetch(ELIGIBLE)]


async def ages(connection: "Connection | Pool", *, stale_before: datetime) -> Ages:
    """Tell how old the figures of the sellers are."""
    row = await connection.fetchrow(AGES, stale_before)
    assert row is not None
    return Ages(
        sellers=row["sellers"],
        oldest=row["oldest"],
        newest=row["newest"],
        stale=row["stale"],
        stalest=tuple(row["stalest"] or ()),
    )


async def expired_accounts(connection: "Connection | Pool", *, count_max: int) -> list[ExpiredAccount]:
    """Find the accounts that somebody must connect again."""
    rows = await connection.fetch(EXPIRED, count_max)
    return [msgspec.convert(dict(row), ExpiredAccount) for row in rows]
