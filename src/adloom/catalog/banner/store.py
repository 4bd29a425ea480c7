"""SQL of banners."""

from adloom.catalog.banner.model import Banner, BannerNotFoundError
from adloom.catalog.changes import Noun
from adloom.catalog.owned_table import OwnedTable
from adloom.catalog.source import Source
from adloom.core.actor import Role
from adloom.runtime.listing import Filters

SORTABLE = frozenset({"created_at", "updated_at", "title", "priority", "source", "is_active"})

banners = OwnedTable(
    Banner, table="banners", noun=Noun.BANNER, owner=Role.ADVERTISER, not_found=BannerNotFoundError
)


def matching(
    *,
    is_active: bool | None,
    source: Source | None,
    tag: str | None,
    search: str | None,
    includes_deleted: bool,
) -> Filters:
    """Filter a list of banners."""
    filters = Filters()
    filters.add_given("it.is_active = {}", is_active)
    filters.add_given("it.source = {}", source)
    filters.add_given("it.tags @> ARRAY[{}::text]", tag)
    filters.add_search(("it.title", "it.headline", "it.description"), search)
    if not includes_deleted:
        filters.add("it.deleted_at IS NULL")
    return filters
