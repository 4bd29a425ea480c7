"""SQL of campaigns."""

from uuid import UUID

from adloom.catalog.campaign.lifecycle import CampaignStatus
from adloom.catalog.campaign.model import Campaign
from adloom.catalog.source import Source
from adloom.core.actor import Role
from adloom.core.errors import CampaignNotFoundError
from adloom.resource.changes import IndexedNoun
from adloom.resource.owned_table import OwnedTable
from adloom.runtime.listing import Filters

SORTABLE = frozenset(
    {"created_at", "updated_at", "name", "status", "source", "priority", "starts_at", "ends_at"}
)

campaigns = OwnedTable(
    Campaign,
    table="campaigns",
    noun=IndexedNoun.CAMPAIGN,
    owner=Role.ADVERTISER,
    not_found=CampaignNotFoundError,
)


def matching(
    *,
    status: CampaignStatus | None,
    source: Source | None,
    search: str | None,
    includes_deleted: bool,
    advertiser_id: UUID | None = None,
) -> Filters:
    """Filter a list of campaigns."""
    filters = Filters()
    filters.add_given("it.status = {}", status)
    filters.add_given("it.source = {}", source)
    filters.add_given("owner.public_id = {}", advertiser_id)
    filters.add_search(("it.name", "it.description", "it.advertiser_name"), search)
    if not includes_deleted:
        filters.add("it.deleted_at IS NULL")
    return filters
