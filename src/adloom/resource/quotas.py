"""How much one account may have: every delivery process holds all of it in memory."""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from adloom.core.errors import ConflictError
from adloom.runtime.postgres import Connection
from adloom.runtime.settings import QuotaSettings

# What is counted after a write that has made some, by noun; $1 is the account. Deleted ones are not served.
COUNTS: Final = {
    "campaign": """
        SELECT count(*) FROM campaigns AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
         WHERE owner.public_id = $1 AND it.deleted_at IS NULL
    """,
    "banner": """
        SELECT count(*) FROM banners AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
         WHERE owner.public_id = $1 AND it.deleted_at IS NULL
    """,
    "placement": """
        SELECT count(*) FROM placements AS it JOIN publishers AS owner ON owner.id = it.publisher_id
         WHERE owner.public_id = $1
    """,
    "link": """
        SELECT count(*) FROM campaign_placements AS it JOIN campaigns AS campaign ON campaign.id = it.campaign_id
          JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
         WHERE owner.public_id = $1
    """,
    "assignment": """
        SELECT count(*) FROM banner_assignments AS it JOIN campaigns AS campaign ON campaign.id = it.campaign_id
          JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
         WHERE owner.public_id = $1
    """,
    "creative": """
        SELECT count(*) FROM creatives AS it JOIN campaigns AS campaign ON campaign.id = it.campaign_id
          JOIN advertisers AS owner ON owner.id = campaign.advertiser_id
         WHERE owner.public_id = $1
    """,
}


# Held until the commit: of two writes at once, the second counts what the first has made.
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('quota:' || $1::uuid, 0))"


class QuotaReachedError(ConflictError):
    """An account would have more than it may."""

    code = "ACCOUNT_QUOTA_REACHED"


def find_quota(quotas: QuotaSettings, noun: str) -> int:
    return {
        "campaign": quotas.campaigns_max,
        "banner": quotas.banners_max,
        "placement": quotas.placements_max,
        "link": quotas.links_max,
        "assignment": quotas.links_max,
        "creative": quotas.links_max,
    }[noun]


async def check_quotas(
    connection: Connection, account_id: UUID, made: Collection[str], quotas: QuotaSettings
) -> None:
    """Raise where an account has too many of what it has just made; the caller rolls back."""
    counted = sorted(COUNTS.keys() & set(made))
    if counted:
        await connection.execute(LOCK, account_id)
    for noun in counted:
        count: int = await connection.fetchval(COUNTS[noun], account_id)
        most = find_quota(quotas, noun)
        if count > most:
            raise QuotaReachedError(
                f"This account may have {most} {noun}s and would have {count}. Delete some, or ask the operator."
            )
