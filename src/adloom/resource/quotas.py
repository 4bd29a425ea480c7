"""How much one account may have: every delivery process holds all of it in memory."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from adloom.core.errors import ConflictError
from adloom.runtime.postgres import Connection
from adloom.runtime.settings import QuotaSettings

_OF_ADVERTISER: Final = """
    SELECT count(*) FROM {} AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE owner.public_id = $1 AND it.deleted_at IS NULL
"""
_OF_CAMPAIGN: Final = """
    SELECT count(*) FROM {} AS it JOIN campaigns AS campaign ON campaign.id = it.campaign_id
      JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
     WHERE owner.public_id = $1
"""
_OF_PUBLISHER: Final = """
    SELECT count(*) FROM {} AS it JOIN publishers AS owner ON owner.id = it.publisher_id
     WHERE owner.public_id = $1
"""
# By noun, the setting with the most of it, and what is counted after a write that has made some; $1 is the account.
# Deleted ones are not served.
QUOTAS: Final = {
    "campaign": ("campaigns_max", _OF_ADVERTISER.format("campaigns")),
    "banner": ("banners_max", _OF_ADVERTISER.format("banners")),
    "placement": ("placements_max", _OF_PUBLISHER.format("placements")),
    "link": ("links_max", _OF_CAMPAIGN.format("campaign_placements")),
    "assignment": ("links_max", _OF_CAMPAIGN.format("banner_assignments")),
    "creative": ("links_max", _OF_CAMPAIGN.format("creatives")),
}
# Held until the commit: of two writes at once, the second counts what the first has made.
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('quota:' || $1::uuid, 0))"


class QuotaReachedError(ConflictError):
    """An account would have more than it may."""

    code = "ACCOUNT_QUOTA_REACHED"


async def check_quotas(
    connection: Connection, account_id: UUID, made: Collection[str], quotas: QuotaSettings
) -> None:
    """Raise where an account has too many of what it has just made; the caller rolls back."""
    counted = sorted(QUOTAS.keys() & set(made))
    if counted:
        await connection.execute(LOCK, account_id)
    for noun in counted:
        setting, statement = QUOTAS[noun]
        count: int = await connection.fetchval(statement, account_id)
        most: int = getattr(quotas, setting)
        if count > most:
            raise QuotaReachedError(
                f"This account may have {most} {noun}s and would have {count}. Delete some, or ask the operator."
            )
