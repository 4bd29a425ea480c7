"""The vocabulary of an auction. All numbers are whole, so that a record explains the result exactly."""

from enum import StrEnum
from typing import Final, NewType

import msgspec

from adloom.core.money import Micros, price_impression

Ctr = NewType("Ctr", int)  # In billionths: 0.02 is 20,000,000.
Quality = NewType("Quality", int)  # In ten-thousandths: 1.1 is 11,000.

CTR_ONE: Final = 1_000_000_000
QUALITY_ONE: Final = 10_000


class BidType(StrEnum):
    """What a campaign pays for: a thousand impressions, or one click."""

    CPM = "cpm"
    CPC = "cpc"


class OwnBids(StrEnum):
    """Whether bids of one advertiser raise each other's price."""

    IGNORE = "ignore"
    COUNT = "count"


class BidOutcome(StrEnum):
    """The outcome of a bid."""

    WON = "won"
    LOST = "lost"
    UNDER_FLOOR = "under_floor"


class Bid(msgspec.Struct, frozen=True, kw_only=True):
    """The bid of one ad on one placement for one request; the three keys identify it."""

    campaign_key: int
    banner_key: int
    placement_key: int = 0
    advertiser_key: int | None = None  # None: the campaign counts as its own advertiser.
    bid_type: BidType
    bid: Micros
    ctr: Ctr
    quality: Quality
    floor: Micros = Micros(0)  # Of its placement, per thousand impressions.

    @property
    def seniority(self) -> tuple[int, int, int]:
        """Breaks ties: the older campaign comes first."""
        return self.campaign_key, self.banner_key, self.placement_key

    @property
    def payer(self) -> int:
        """The key of who pays; negative for a campaign without an advertiser."""
        return find_payer(self.advertiser_key, self.campaign_key)


def compute_single_cost(bid_type: BidType, bid: Micros) -> Micros:
    """Return what is charged at a time: for one click, or for one impression."""
    return bid if bid_type is BidType.CPC else price_impression(bid)


def find_payer(advertiser_key: int | None, campaign_key: int) -> int:
    return ~campaign_key if advertiser_key is None else advertiser_key
