"""Addresses of campaigns and advertisers, the topics that they publish on, and the lock of who has them."""

from typing import Final
from uuid import UUID

from adloom.core.ids import AdvertiserId, CampaignId
from adloom.runtime.actors.actor import Address

CAMPAIGN: Final = "campaign"
ADVERTISER: Final = "advertiser"
NO_ADVERTISER: Final = "-"
SPEND_TOPIC: Final = "spend"
COUNTS_TOPIC: Final = "counts"
# The lock of the worker that has all budget actors.
OWNER_KEY: Final = "adloom:brain:owner"


def make_campaign_address(campaign_id: CampaignId, advertiser_id: AdvertiserId | None) -> Address:
    return Address(CAMPAIGN, f"{NO_ADVERTISER if advertiser_id is None else advertiser_id}|{campaign_id}")


def make_advertiser_address(advertiser_id: AdvertiserId) -> Address:
    return Address(ADVERTISER, str(advertiser_id))


def parse_campaign_key(key: str) -> tuple[CampaignId, AdvertiserId | None]:
    advertiser, _, campaign = key.partition("|")
    return (
        CampaignId(UUID(campaign)),
        None if advertiser == NO_ADVERTISER else AdvertiserId(UUID(advertiser)),
    )


def parse_advertiser_key(key: str) -> AdvertiserId:
    return AdvertiserId(UUID(key))


def make_session_topic(session: int) -> str:
    return f"session:{session}"
