"""SQL for what to fetch: the accounts of a seller, and their campaigns, ad sets and ads."""

from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.runtime.postgres import Connection, Pool
from adloom.sync.providers.protocol import AccountLink, Entity
from adloom.sync.words import Level

ACCOUNTS: Final = """
    SELECT it.public_id AS id, it.platform, it.external_id, it.currency, it.timezone,
           it.credentials AS encrypted_credentials, it.credentials_expired_at
      FROM sync.ad_accounts AS it JOIN advertisers AS seller ON seller.id = it.advertiser_id
     WHERE seller.public_id = $1 AND seller.deleted_at IS NULL AND it.is_active AND it.deleted_at IS NULL
     ORDER BY it.id
"""
# In any status: platforms restate the figures of entities that were paused or archived since.
ENTITIES: Final = {
    Level.CAMPAIGN: """
        SELECT it.public_id AS id, it.external_campaign_id AS external_id, it.budget, it.budget_type,
               1 AS shares, '{}'::text[] AS above
          FROM sync.campaigns AS it JOIN sync.ad_accounts AS account ON account.id = it.ad_account_id
         WHERE account.public_id = $1 AND it.deleted_at IS NULL
         ORDER BY it.id
    """,
    Level.ADSET: """
        SELECT it.public_id AS id, it.external_adset_id AS external_id, campaign.budget, campaign.budget_type,
               1 AS shares, ARRAY[campaign.external_campaign_id]::text[] AS above
          FROM sync.adsets AS it
          JOIN sync.campaigns AS campaign ON campaign.id = it.campaign_id
          JOIN sync.ad_accounts AS account ON account.id = campaign.ad_account_id
         WHERE account.public_id = $1 AND it.deleted_at IS NULL AND campaign.deleted_at IS NULL
         ORDER BY it.id
    """,
    Level.AD: """
        SELECT it.public_id AS id, it.external_ad_id AS external_id, campaign.budget, campaign.budget_type,
               count(*) OVER (PARTITION BY it.adset_id) AS shares,
               ARRAY[campaign.external_campaign_id, adset.external_adset_id]::text[] AS above
          FROM sync.ads AS it
          JOIN sync.adsets AS adset ON adset.id = it.adset_id
          JOIN sync.campaigns AS campaign ON campaign.id = adset.campaign_id
          JOIN sync.ad_accounts AS account ON account.id = campaign.ad_account_id
         WHERE account.public_id = $1 AND it.deleted_at IS NULL
           AND adset.deleted_at IS NULL AND campaign.deleted_at IS NULL
         ORDER BY it.id
    """,
}
# Only if the credentials are still those that were tried: a user may have replaced them meanwhile.
MARK_EXPIRED: Final = """
    UPDATE sync.ad_accounts
       SET credentials_expired_at = coalesce(credentials_expired_at, $2), credentials_problem = $3, updated_at = $2
     WHERE public_id = $1 AND credentials IS NOT DISTINCT FROM $4
       AND (credentials_expired_at IS NULL OR credentials_problem IS DISTINCT FROM $3)
"""
UNMARK_EXPIRED: Final = """
    UPDATE sync.ad_accounts
       SET credentials_expired_at = NULL, credentials_problem = NULL, updated_at = $2
     WHERE public_id = $1 AND credentials_expired_at IS NOT NULL
"""


class SyncAccount(AccountLink, frozen=True, kw_only=True):
    """An active ad account; until its statistics are fetched, its credentials are only there encrypted."""

    encrypted_credentials: bytes | None
    credentials_expired_at: datetime | None


async def load_accounts(pool: Pool, seller_id: UUID) -> list[SyncAccount]:
    async with pool.acquire() as connection:
        rows = await connection.fetch(ACCOUNTS, seller_id)
    return [msgspec.convert(dict(row), SyncAccount) for row in rows]


async def load_entities(pool: Pool, account_id: UUID, level: Level) -> list[Entity]:
    async with pool.acquire() as connection:
        rows = await connection.fetch(ENTITIES[level], account_id)
    return [msgspec.convert(dict(row), Entity) for row in rows]


async def mark_expired(pool: Pool, account: SyncAccount, problem: str, *, now: datetime) -> None:
    """Record since when the platform rejects the credentials, and the reason."""
    async with pool.acquire() as connection:
        await connection.execute(MARK_EXPIRED, account.id, now, problem, account.encrypted_credentials)


async def unmark_expired(pool: Pool, account: SyncAccount, *, now: datetime) -> None:
    async with pool.acquire() as connection:
        await connection.execute(UNMARK_EXPIRED, account.id, now)


TIMEZONES: Final = """
    SELECT ARRAY (
        SELECT DISTINCT timezone::text FROM sync.ad_accounts
         WHERE advertiser_id = seller.id AND is_active AND deleted_at IS NULL
    ) FROM advertisers AS seller
     WHERE seller.public_id = $1 AND seller.deleted_at IS NULL
"""


async def load_timezones(connection: Connection, seller_id: UUID) -> list[str] | None:
    """Return the time zones of a seller's accounts; None if the seller does not exist."""
    return await connection.fetchval(TIMEZONES, seller_id)
