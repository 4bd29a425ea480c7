"""Bids with defaults: a test names only what it is about. Amounts are in units, as people write them."""

from decimal import Decimal
from typing import Any

import msgspec

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, Bid, BidType, Ctr, Quality
from adloom.core.money import Micros, micros_from_decimal

FEED_CTR = Ctr(CTR_ONE * 20 // 1_000)


def units(amount: str) -> Micros:
    return micros_from_decimal(Decimal(amount))


def a_bid(amount: str, *, number: int = 1, floor: str = "0", **fields: Any) -> Bid:
    """Make a CPM bid of quality 1, whose eCPM is what it bids; higher numbers are younger campaigns."""
    bid = Bid(
        campaign_key=number,
        banner_key=number,
        bid_type=BidType.CPM,
        bid=units(amount),
        ctr=FEED_CTR,
        quality=Quality(QUALITY_ONE),
        floor=units(floor),
    )
    return msgspec.structs.replace(bid, **fields)
