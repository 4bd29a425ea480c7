"""SQL of advertisers."""

from uuid import UUID

from adloom.catalog.account_table import AccountTable
from adloom.catalog.advertiser.model import Advertiser, AdvertiserNotFoundError
from adloom.catalog.changes import CatalogWrite, Noun
from adloom.core.actor import Role
from adloom.runtime.listing import Filters

SORTABLE = frozenset({"created_at", "updated_at", "name", "daily_budget_paisa"})
CAMPAIGN_KEYS = """
    SELECT it.id FROM campaigns AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE owner.public_id = $1
"""
BANNER_KEYS = """
    SELECT it.id FROM banners AS it JOIN advertisers AS owner ON owner.id = it.advertiser_id
     WHERE owner.public_id = $1
"""

advertisers = AccountTable(Advertiser, role=Role.ADVERTISER, not_found=AdvertiserNotFoundError)


def matching(*, search: str | None, includes_deleted: bool) -> Filters:
    """Filter a list of advertisers."""
    filters = Filters()
    filters.add_search(("it.name",), search)
    if not includes_deleted:
        filters.add("it.deleted_at IS NULL")
    return filters


async def update(write: CatalogWrite, before: Advertiser, after: Advertiser) -> Advertiser:
    """Write an advertiser; what it owns stops with its deletion, and goes on when it is restored."""
    updated = await advertisers.update(write, before, after)
    if before.deleted_at != after.deleted_at:
        await _touch_belongings(write, after.id)
    return updated


async def _touch_belongings(write: CatalogWrite, advertiser_id: UUID) -> None:
    for noun, statement in ((Noun.CAMPAIGN, CAMPAIGN_KEYS), (Noun.BANNER, BANNER_KEYS)):
        for row in await write.connection.fetch(statement, advertiser_id):
            write.touch(noun, row["id"])
