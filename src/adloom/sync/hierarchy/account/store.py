"""SQL of ad accounts; their credentials go in sealed, and are read elsewhere, by who asks platforms."""

from collections.abc import Collection
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.resource.audit.difference import HIDDEN
from adloom.resource.audit.entry import NewAuditEntry
from adloom.resource.changes import CatalogWrite
from adloom.resource.etag import moved_forward
from adloom.runtime.listing import Filters
from adloom.runtime.postgres import Connection
from adloom.sync.hierarchy.model import AdAccount, AdAccountId, AdAccountNotFoundError, StillInUseError
from adloom.sync.hierarchy.store import Below, PresentTable
from adloom.sync.words import Platform

SORTABLE = frozenset({"created_at", "updated_at", "name", "platform", "is_active"})
# Others than those before: whatever was wrong with them is over.
SET_CREDENTIALS: Final = """
    UPDATE sync.ad_accounts
       SET credentials = $2, credentials_expired_at = NULL, credentials_problem = NULL, updated_at = $3
     WHERE public_id = $1
"""
CONNECTED: Final = """
    SELECT public_id FROM sync.ad_accounts WHERE public_id = ANY ($1::uuid[]) AND credentials IS NOT NULL
"""
# Deleted ones too: their statistics are still there.
HAS_CAMPAIGNS: Final = """
    SELECT EXISTS (
        SELECT FROM sync.campaigns
         WHERE ad_account_id = (SELECT id FROM sync.ad_accounts WHERE public_id = $1)
    )
"""

accounts = PresentTable(
    AdAccount,
    table="sync.ad_accounts",
    noun="ad_account",
    not_found=AdAccountNotFoundError,
    below=Below(table="sync.campaigns", column="ad_account_id", words="campaigns"),
)


def matching(*, platform: Platform | None, is_active: bool | None, search: str | None) -> Filters:
    """Filter a list of ad accounts."""
    filters = Filters()
    filters.add_given("it.platform = {}", platform)
    filters.add_given("it.is_active = {}", is_active)
    filters.add_search(("it.name", "it.external_id"), search)
    return filters


async def update(write: CatalogWrite, before: AdAccount, after: AdAccount) -> AdAccount:
    """Write an account that was read with a lock before; what its statistics are in stays as it is."""
    is_moved = (after.platform, after.currency) != (before.platform, before.currency)
    if is_moved and await write.connection.fetchval(HAS_CAMPAIGNS, before.id):
        raise StillInUseError(
            "The platform and the currency of an ad account stay as they are once it has campaigns:"
            " their statistics are in them. Make another account."
        )
    return await accounts.update(write, before, after)


async def set_credentials(
    write: CatalogWrite, account: AdAccount, sealed: bytes | None, *, now: datetime
) -> AdAccount:
    """Write the sealed credentials of an account that is locked, or that there are none."""
    after = msgspec.structs.replace(
        account, credentials_expired_at=None, credentials_problem=None, updated_at=now
    )
    after = moved_forward(account, after)
    await write.connection.execute(SET_CREDENTIALS, after.id, sealed, after.updated_at)
    changes = {"credentials": {"from": HIDDEN, "to": None if sealed is None else HIDDEN}}
    write.entries.append(NewAuditEntry(accounts.about(after), "update", changes))
    return after


async def connected(connection: Connection, account_ids: Collection[AdAccountId]) -> set[UUID]:
    """Tell which of some accounts have credentials."""
    return {row["public_id"] for row in await connection.fetch(CONNECTED, list(account_ids))}
