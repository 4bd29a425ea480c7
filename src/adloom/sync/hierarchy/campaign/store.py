"""SQL of the campaigns of ad accounts."""

from uuid import UUID

from adloom.resource.access import Scope
from adloom.resource.changes import CatalogWrite
from adloom.runtime.listing import Filters
from adloom.sync.hierarchy.account.store import accounts
from adloom.sync.hierarchy.model import SyncedCampaign, SyncedCampaignNotFoundError
from adloom.sync.hierarchy.sellpage.store import sellpages
from adloom.sync.hierarchy.store import Below, PresentTable
from adloom.sync.words import EntityStatus

SORTABLE = frozenset({"created_at", "updated_at", "name", "status", "budget"})

campaigns = PresentTable(
    SyncedCampaign,
    table="sync.campaigns",
    noun="synced_campaign",
    not_found=SyncedCampaignNotFoundError,
    references={"ad_account_id": "sync.ad_accounts", "sellpage_id": "sync.sellpages"},
    below=Below(table="sync.adsets", column="campaign_id", words="ad sets"),
    external_field="externalCampaignId",
)


def matching(
    *, status: EntityStatus | None, ad_account_id: UUID | None, sellpage_id: UUID | None, search: str | None
) -> Filters:
    """Filter a list of campaigns."""
    filters = Filters()
    filters.add_given("it.status = {}", status)
    filters.add_given(
        "it.ad_account_id = (SELECT id FROM sync.ad_accounts WHERE public_id = {})", ad_account_id
    )
    filters.add_given("it.sellpage_id = (SELECT id FROM sync.sellpages WHERE public_id = {})", sellpage_id)
    filters.add_search(("it.name", "it.external_campaign_id"), search)
    return filters


async def lock_parents(
    write: CatalogWrite, scope: Scope, after: SyncedCampaign, before: SyncedCampaign | None = None
) -> None:
    """Find and lock what a campaign is to hang on, where it does not hang on it already."""
    if before is None or after.ad_account_id != before.ad_account_id:
        await accounts.find_parent_locked(write, scope, after.ad_account_id)
    if before is None or after.sellpage_id != before.sellpage_id:
        await sellpages.find_parent_locked(write, scope, after.sellpage_id)
