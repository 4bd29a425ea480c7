"""SQL for manual syncs."""

from typing import Final
from uuid import UUID

from adloom.runtime.postgres import Connection

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
