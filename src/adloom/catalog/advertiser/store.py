"""SQL of advertisers."""

from uuid import UUID

from adloom.catalog.advertiser.model import Advertiser, AdvertiserNotFoundError
from adloom.core.actor import Role
from adloom.resource.account_table import AccountTable
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.runtime.listing import Filters

SORTABLE = frozenset({"created_at", "updated_at", "name", "daily_budget_paisa"})
# One without campaigns spends nothing.
KEY = """
    SELECT it.id FROM advertisers AS it
     WHERE it.public_id = $1 AND EXISTS (SELECT FROM campaigns WHERE advertiser_id = it.id)
"""
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
    if _budget(before) != _budget(after):
        await _touch(write, IndexedNoun.ADVERTISER, KEY, after.id)
    if _rule_of_campaigns(before) != _rule_of_campaigns(after):
        await _touch(write, IndexedNoun.CAMPAIGN, CAMPAIGN_KEYS, after.id)
    if before.deleted_at != after.deleted_at:
        await _touch(write, IndexedNoun.BANNER, BANNER_KEYS, after.id)
    return updated


def _budget(advertiser: Advertiser) -> tuple[object, ...]:
    """Give what its own brain has to know."""
    return (
        advertiser.deleted_at,
        advertiser.daily_budget_paisa,
        advertiser.timezone,
        advertiser.blocked_sites,
    )


def _rule_of_campaigns(advertiser: Advertiser) -> tuple[object, ...]:
    """Give what each of its campaigns has to know: whether there is a budget, and not how much it is."""
    return (
        advertiser.deleted_at,
        advertiser.timezone,
        advertiser.daily_budget_paisa is None,
        advertiser.blocked_sites,
    )


async def _touch(write: CatalogWrite, noun: IndexedNoun, keys: str, advertiser_id: UUID) -> None:
    for row in await write.connection.fetch(keys, advertiser_id):
        write.touch(noun, row["id"])
