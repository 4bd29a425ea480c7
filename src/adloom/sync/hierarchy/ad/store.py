"""SQL of ads."""

from uuid import UUID

from adloom.runtime.listing import Filters
from adloom.sync.hierarchy.model import Ad, AdNotFoundError
from adloom.sync.hierarchy.store import PresentTable
from adloom.sync.words import EntityStatus

SORTABLE = frozenset({"created_at", "updated_at", "name", "status"})

ads = PresentTable(
    Ad,
    table="sync.ads",
    noun="ad",
    not_found=AdNotFoundError,
    references={"adset_id": "sync.adsets"},
    external_field="externalAdId",
)


def matching(*, status: EntityStatus | None, adset_id: UUID | None, search: str | None) -> Filters:
    """Filter a list of ads."""
    filters = Filters()
    filters.add_given("it.status = {}", status)
    filters.add_given("it.adset_id = (SELECT id FROM sync.adsets WHERE public_id = {})", adset_id)
    filters.add_search(("it.name", "it.external_ad_id"), search)
    return filters
