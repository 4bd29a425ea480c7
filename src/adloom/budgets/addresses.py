"""Where campaigns and advertisers live, and where they are heard."""

from typing import Final
from uuid import UUID

from adloom.core.ids import AdvertiserId, CampaignId
from adloom.runtime.actors.actor import Address

CAMPAIGN: Final = "campaign"
ADVERTISER: Final = "advertiser"
NO_ADVERTISER: Final = "-"
SPEND_TOPIC: Final = "spend"


def campaign_address(campaign_id: CampaignId, advertiser_id: AdvertiserId | None) -> Address:
    """Tell where a campaign lives."""
    return Address(CAMPAIGN, f"{NO_ADVERTISER if advertiser_id is None else advertiser_id}|{campaign_id}")


def advertiser_address(advertiser_id: AdvertiserId) -> Address:
    """Tell where an advertiser lives."""
    return Address(ADVERTISER, str(advertiser_id))


def parse_campaign_key(key: str) -> tuple[CampaignId, AdvertiserId | None]:
    """Tell which campaign has a key, and whose it is."""
    advertiser, _, campaign = key.partition("|")
    return (
        CampaignId(UUID(campaign)),
        None if advertiser == NO_ADVERTISER else AdvertiserId(UUID(advertiser)),
    )


def parse_advertiser_key(key: str) -> AdvertiserId:
    """Tell which advertiser has a key."""
    return AdvertiserId(UUID(key))


def persistence_id(address: Address) -> str:
    """Name an entity as it is kept: a campaign is the same, whoever pays for it."""
    return f"{address.kind}-{address.key.rpartition('|')[2]}"


def session_topic(session: int) -> str:
    """Name where a delivery process listens."""
    return f"session:{session}"
