"""Advertisers: admins manage them, and an advertiser reads its own record."""

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from adloom.core.caller import Role
from adloom.core.ids import AdvertiserId
from adloom.resource.access import Owner
from adloom.resource.account_bounds import Bounds
from adloom.resource.changes import CatalogWrite, IndexedNoun
from adloom.resource.resource import Resource
from adloom.resource.shapes import Domain, Paisa, TimeZone
from adloom.resource.soft_delete import SoftDeletable
from adloom.runtime.http.api.shapes import Name

BLOCKED_SITES_MAX: Final = 1_000
# What an advertiser may give its campaigns and banners; the house may go beyond.
ACCOUNT_PRIORITY: Final = Bounds(most=100)


class Advertiser(SoftDeletable, frozen=True, kw_only=True):
    """An account that pays."""

    noun_name = "advertiser"

    id: AdvertiserId
    name: Name
    daily_budget_paisa: Paisa | None = None
    timezone: TimeZone = "UTC"
    blocked_sites: Annotated[tuple[Domain, ...], Field(max_length=BLOCKED_SITES_MAX)] = ()
    created_at: datetime


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


async def _touch(write: CatalogWrite, before: Advertiser, after: Advertiser) -> None:
    """Touch what depends on an advertiser: it stops with its deletion, and goes on when it is restored."""
    if _get_budget(before) != _get_budget(after):
        await write.touch_all(IndexedNoun.ADVERTISER, KEY, after.id)
    if _list_campaign_terms(before) != _list_campaign_terms(after):
        await write.touch_all(IndexedNoun.CAMPAIGN, CAMPAIGN_KEYS, after.id)
    if before.deleted_at != after.deleted_at:
        await write.touch_all(IndexedNoun.BANNER, BANNER_KEYS, after.id)


def _get_budget(advertiser: Advertiser) -> tuple[object, ...]:
    return (
        advertiser.deleted_at,
        advertiser.daily_budget_paisa,
        advertiser.timezone,
        advertiser.blocked_sites,
    )


def _list_campaign_terms(advertiser: Advertiser) -> tuple[object, ...]:
    """Return what each campaign has to know: whether there is a budget, but not how much it is."""
    return (
        advertiser.deleted_at,
        advertiser.timezone,
        advertiser.daily_budget_paisa is None,
        advertiser.blocked_sites,
    )


advertisers = Resource(
    struct=Advertiser,
    name="advertiser",
    article="an",
    path="/admin/advertisers",
    tag="advertisers",
    table_name="advertisers",
    title="name",
    owner=Owner(role=Role.ADVERTISER, alias="advertiserId", is_itself=True),
    docs={
        "answer": "An advertiser; its id is the account of its tokens.",
        "list": "List advertisers; one that asks sees itself.",
        "delete": "Delete an advertiser: its tokens are refused and nothing of it is served, until it is restored.",
        "restore": "Bring a deleted advertiser back, with all that it owns.",
    },
    search=("name",),
    sort=("name", "daily_budget_paisa"),
    after_update=_touch,
    list_name="advertisers",
)
