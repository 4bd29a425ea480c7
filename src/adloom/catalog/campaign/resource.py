"""Campaigns, declared."""

from typing import Final

from adloom.catalog.advertiser import ACCOUNT_PRIORITY, advertisers
from adloom.catalog.campaign.model import Campaign
from adloom.resource.access import ADVERTISER
from adloom.resource.changes import IndexedNoun
from adloom.resource.resource import Filter, Resource, Sort
from adloom.runtime.http.api.shapes import Text100

# As a list of keys: a join would keep the indexes of the other columns from being used.
BY_ADVERTISER: Final = (
    "it.advertiser_id = ANY (ARRAY(SELECT named.id FROM advertisers AS named WHERE named.name ILIKE {}))"
)

campaigns = Resource(
    struct=Campaign,
    name="campaign",
    path="/admin/campaigns",
    tag="campaigns",
    table_name="campaigns",
    title="name",
    owner=ADVERTISER,
    references={"advertiser_id": advertisers},
    touches=(IndexedNoun.CAMPAIGN, "id"),
    docs={
        "body": "A new campaign. Without an advertiser it belongs to the house.",
        "create": "Make a campaign; it begins as a draft.",
        "restore": "Bring a deleted campaign back, in the status that it had.",
    },
    set_by_server=frozenset({"status"}),
    filters=(
        *("status", "source", "advertiser_id"),
        Filter(name="label", annotation=Text100, condition="it.labels @> ARRAY[{}::varchar]"),
    ),
    search=("name", "description", "advertiser_name", "notes", BY_ADVERTISER),
    sort=(
        *("name", "status", "source", "priority", "starts_at", "ends_at"),
        Sort(name="budget_daily_paisa", expression="it.budget_daily_paisa"),
        Sort(name="bid_amount", expression="it.bid_amount_micros"),
        Sort(name="advertiser", expression="lower(owner.name)"),
    ),
    account_bounds={"priority": ACCOUNT_PRIORITY},
    finish=lambda campaign, given, _now: campaign.normalize(given),
    list_name="campaigns",
)
