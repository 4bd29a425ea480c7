"""What an offer of a campaign costs who pays for it, and of which campaigns somebody limits that."""

# pure

from typing import Final

import msgspec

from adloom.core.ids import AdvertiserId, CampaignId
from adloom.core.money import Micros, impression_cost
from adloom.events.log.event import ChargedBy

CLICKS: Final = "cpc"


class Price(msgspec.Struct, frozen=True):
    """What an offer costs, and what it is charged by."""

    cost: Micros = Micros(0)
    charged_by: ChargedBy = ChargedBy.IMPRESSION


class LeaseTerms(msgspec.Struct, frozen=True):
    """A campaign of which an offer is made only out of a lease of its budget."""

    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    cost: Micros


FREE: Final = Price()


def compute_price(bid_type: str, bid: Micros | None) -> Price:
    """Tell what an offer of direct delivery costs: the campaign's flat bid, nothing where it has none."""
    if not bid:
        return FREE
    if bid_type == CLICKS:
        return Price(bid, ChargedBy.CLICK)
    return Price(impression_cost(bid), ChargedBy.IMPRESSION)
