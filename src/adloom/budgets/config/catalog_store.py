"""Reads the catalog for budget actors."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

import msgspec

from adloom.budgets.addresses import ADVERTISER, CAMPAIGN
from adloom.budgets.config.configuration import AdvertiserRow, CampaignRow
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.resource.changes import read_marks_together, read_version
from adloom.runtime.actors.actor import Address
from adloom.runtime.postgres import Connection, Pool, Record, raise_if_away

CAMPAIGNS: Final = """
    SELECT campaign.public_id AS id, campaign.status::text AS status,
           campaign.deleted_at IS NOT NULL AS is_deleted, campaign.starts_at, campaign.ends_at,
           campaign.budget_daily_paisa, campaign.budget_total_paisa,
           campaign.pacing_strategy::text AS pacing_strategy, campaign.timezone,
           campaign.impression_cap, campaign.click_cap,
           campaign.bid_amount_micros, campaign.bid_strategy, campaign.target_cpa_micros,
           payer.public_id AS payer_id, payer.deleted_at IS NOT NULL AS payer_is_deleted,
           payer.daily_budget_paisa AS payer_daily_budget_paisa, payer.timezone AS payer_timezone
      FROM campaigns AS campaign
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
     WHERE campaign.public_id = ANY ($1::uuid[])
"""
PAYER_FIELDS: Final = ("id", "is_deleted", "daily_budget_paisa", "timezone")
ADVERTISERS: Final = """
    SELECT public_id AS id, deleted_at IS NOT NULL AS is_deleted, daily_budget_paisa, timezone
      FROM advertisers WHERE public_id = ANY ($1::uuid[])
"""
PAYERS: Final = """
    SELECT campaign.public_id AS campaign_id, payer.public_id AS advertiser_id
      FROM campaigns AS campaign
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
     WHERE campaign.public_id = ANY ($1::uuid[])
"""
OLDEST_CHANGE: Final = "SELECT coalesce(min(version), 0) FROM catalog_changes"
# A campaign whose payer's zone or deletion has changed is among the changed ones itself.
CHANGED: Final = """
    SELECT 'campaign' AS kind, coalesce(payer.public_id::text, '-') || '|' || campaign.public_id AS key
      FROM catalog_changes AS changed
      JOIN campaigns AS campaign ON campaign.id = changed.noun_key
      LEFT JOIN advertisers AS payer ON payer.id = campaign.advertiser_id
     WHERE changed.version > $1 AND changed.noun = 'campaign'
    UNION
    SELECT 'advertiser', payer.public_id::text
      FROM catalog_changes AS changed
      JOIN advertisers AS payer ON payer.id = changed.noun_key
     WHERE changed.version > $1 AND changed.noun = 'advertiser'
"""
KEPT: Final = """
    SELECT kind, key FROM brain_states JOIN unnest($1::text[], $2::text[]) AS asked (kind, key) USING (kind, key)
"""
EVERYONE: Final = """
    SELECT kind, key FROM brain_states WHERE (kind, key) > ($1, $2) AND kind = ANY ($3::text[])
     ORDER BY kind, key LIMIT $4
"""


class CatalogRows(msgspec.Struct, frozen=True, kw_only=True):
    """Campaigns and advertisers, read at one version."""

    version: int
    campaigns: list[CampaignRow]
    advertisers: list[AdvertiserRow]


class BudgetCatalog:
    """The catalog as budget actors see it; UnavailableError when PostgreSQL is away."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def load_rows(
        self, campaign_ids: Sequence[CampaignId], advertiser_ids: Sequence[AdvertiserId]
    ) -> CatalogRows:
        """Rows that do not exist are left out."""
        async with self._connect() as connection:
            return await load_rows(connection, campaign_ids, advertiser_ids)

    async def load_payers(self, campaign_ids: Sequence[UUID]) -> dict[UUID, AdvertiserId | None]:
        """Return the advertisers, which never change; unknown campaigns are left out."""
        async with self._connect() as connection:
            rows = await connection.fetch(PAYERS, campaign_ids)
        return {row["campaign_id"]: row["advertiser_id"] for row in rows}

    async def load_version(self) -> int:
        with raise_if_away("The catalog cannot be read"):
            return (await read_marks_together(self._pool)).catalog

    async def load_changes(self, since: int) -> tuple[int, list[Address] | None]:
        """Return the version by now and what changed since; None if that is too long ago to know."""
        if await self.load_version() == since:
            return since, []
        async with self._connect() as connection:
            version = await read_version(connection)
            # A catalog that went back comes from a backup: what we know of it is void.
            if version < since or await connection.fetchval(OLDEST_CHANGE) > since + 1:
                return version, None
            rows = await connection.fetch(CHANGED, since) if version > since else []
        return version, [Address(*row) for row in rows]

    async def filter_existing(self, addresses: Sequence[Address]) -> list[Address]:
        kinds, keys = [address.kind for address in addresses], [address.key for address in addresses]
        async with self._connect() as connection:
            rows = await connection.fetch(KEPT, kinds, keys)
        return [Address(*row) for row in rows]

    async def list_existing(self, after: Address, *, count_max: int) -> list[Address]:
        async with self._connect() as connection:
            rows = await connection.fetch(EVERYONE, after.kind, after.key, [ADVERTISER, CAMPAIGN], count_max)
        return [Address(*row) for row in rows]

    @asynccontextmanager
    async def _connect(self) -> AsyncGenerator[Connection]:
        with raise_if_away("The catalog cannot be read"):
            async with (
                self._pool.acquire() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                yield connection


async def load_rows(
    connection: Connection, campaign_ids: Sequence[CampaignId], advertiser_ids: Sequence[AdvertiserId]
) -> CatalogRows:
    """Rows that do not exist are left out."""
    campaigns = await connection.fetch(CAMPAIGNS, campaign_ids) if campaign_ids else []
    advertisers = await connection.fetch(ADVERTISERS, advertiser_ids) if advertiser_ids else []
    return CatalogRows(
        version=await read_version(connection),
        campaigns=[_build_campaign(row) for row in campaigns],
        advertisers=[msgspec.convert(dict(row), AdvertiserRow) for row in advertisers],
    )


def _build_campaign(row: Record) -> CampaignRow:
    fields = dict(row)
    payer = {name: fields.pop(f"payer_{name}") for name in PAYER_FIELDS}
    return CampaignRow(advertiser=None if payer["id"] is None else AdvertiserRow(**payer), **fields)
