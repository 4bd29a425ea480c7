"""Campaigns, declared."""

from adloom.catalog.advertiser import ACCOUNT_PRIORITY, advertisers
from adloom.catalog.campaign.model import Campaign
from adloom.resource.changes import IndexedNoun
from adloom.resource.resource import Resource
from adloom.resource.table import ADVERTISER

campaigns = Resource(
    struct=Campaign,
    name="campaign",
    path="/admin/campaigns",
    tag="campaigns",
    table_name="campaigns",
    owner=ADVERTISER,
    references={"advertiser_id": advertisers},
    touches=(IndexedNoun.CAMPAIGN, "id"),
    docs={
        "body": "A new campaign. Without an advertiser it belongs to the house.",
        "create": "Make a campaign; it begins as a draft.",
        "restore": "Bring a deleted campaign back, in the status that it had.",
    },
    set_by_server=frozenset({"status"}),
    filters=("status", "source", "advertiser_id"),
    search=("name", "description", "advertiser_name"),
    sort=("name", "status", "source", "priority", "starts_at", "ends_at"),
    account_bounds={"priority": ACCOUNT_PRIORITY},
    finish=lambda campaign, _given, _now: campaign.completed(),
    list_name="campaigns",
)
