"""SQL of ad sets."""

from uuid import UUID

from adloom.runtime.listing import Filters
from adloom.sync.hierarchy.model import Adset, AdsetNotFoundError
from adloom.sync.hierarchy.store import Below, PresentTable
from adloom.sync.words import EntityStatus

SORTABLE = frozenset({"created_at", "updated_at", "name", "status"})

adsets = PresentTable(
    Adset,
    table="sync.adsets",
    noun="adset",
    not_found=AdsetNotFoundError,
    references={"campaign_id": "sync.campaigns"},
    below=Below(table="sync.ads", column="adset_id", words="ads"),
    external_field="externalAdsetId",
)


def matching(*, status: EntityStatus | None, campaign_id: UUID | None, search: str | None) -> Filters:
    """Filter a list of ad sets."""
    filters = Filters()
    filters.add_given("it.status = {}", status)
    filters.add_given("it.campaign_id = (SELECT id FROM sync.campaigns WHERE public_id = {})", campaign_id)
    filters.add_search(("it.name", "it.external_adset_id"), search)
    return filters
