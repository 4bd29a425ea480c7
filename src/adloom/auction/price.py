"""Prices of an auction: per thousand impressions, in micros, rounded half up once, at the end.

`worth` is the part of an eCPM that is known before the request: `bid * quality`. The eCPM of a CPM bid follows
from it, that of a CPC bid from it and the CTR: `bid * 1000 * CTR * quality`.
"""

import math
from typing import Final

from adloom.auction.bid import CTR_ONE, QUALITY_ONE, BidType, Ctr, Quality
from adloom.core.money import Micros

CENT: Final = Micros(10_000)
LEAST: Final = Micros(1)  # An eCPM that rounds to 0 takes no part.
CLICKS_A_PRICE: Final = 1_000
HOLD_MARGIN: Final = 3
HOLD_BIDS_MIN: Final = 100  # One part of the bid in so many is held at least.
BAND_FACTORS: Final = (1, 2, 5, 10)

PER_IMPRESSION: Final = QUALITY_ONE
PER_CLICK: Final = CTR_ONE // CLICKS_A_PRICE * QUALITY_ONE
HALF_PER_IMPRESSION: Final = PER_IMPRESSION // 2
HALF_PER_CLICK: Final = PER_CLICK // 2


def compute_worth(bid: Micros, quality: Quality) -> int:
    return bid * quality


def compute_ecpm(bid_type: BidType, worth: int, ctr: Ctr) -> Micros:
    """Return the expected value of a thousand impressions, weighted by quality."""
    if bid_type is BidType.CPM:
        return Micros((worth + HALF_PER_IMPRESSION) // PER_IMPRESSION)
    return Micros((worth * ctr + HALF_PER_CLICK) // PER_CLICK)


def compute_least_ecpm(floor: Micros) -> Micros:
    return max(floor, LEAST)


def compute_final_price(ecpm: Micros, *, second: Micros | None, floor: Micros) -> Micros:
    """Return what the winner pays: a cent over the second bid, or the floor; never more than its eCPM."""
    assert ecpm >= compute_least_ecpm(floor), "a bid under the floor cannot win"
    price = (floor or CENT) if second is None else second + CENT
    return Micros(max(floor, min(price, ecpm)))


def compute_charge(bid: Micros, *, ecpm: Micros, final: Micros) -> Micros:
    """Convert the final price to the unit of the bid: per click, or per thousand impressions."""
    charge = Micros(divide_half_up(bid * final, ecpm))
    assert 0 <= charge <= bid, "the charge is at most the bid"
    return charge


def compute_click_hold(bid: Micros, *, ecpm: Micros, quality: Quality) -> Micros:
    """Return what an offer holds whose click is charged: three times what it is expected to cost.

    At least a hundredth of the bid, so that an ad that is never clicked is not offered without end; at most the bid.
    """
    expected = ecpm * QUALITY_ONE / (quality * CLICKS_A_PRICE) if quality else 0.0
    least = -(-bid // HOLD_BIDS_MIN)
    return Micros(max(least, min(bid, math.ceil(HOLD_MARGIN * expected))))


def find_lowest_bid(bid_type: BidType, ecpm: Micros, *, ctr: Ctr, quality: Quality) -> Micros | None:
    """Return the lowest bid that reaches an eCPM; None if no bid does."""
    factor = quality if bid_type is BidType.CPM else quality * ctr
    if factor <= 0:
        return None
    scale = PER_IMPRESSION if bid_type is BidType.CPM else PER_CLICK
    return Micros(-((scale // 2 - ecpm * scale) // factor))


def round_to_band(ecpm: Micros) -> Micros:
    """Round up to 1, 2 or 5 times a power of ten: what an account may know of a rival's price.

    The eCPM is rounded, and not the bid that reaches it: bids of many qualities would tell the eCPM together.
    """
    power = 10 ** (len(str(max(ecpm, 1))) - 1)
    return Micros(next(band for factor in BAND_FACTORS if (band := factor * power) >= ecpm))


def price_thousand_clicks(bid_type: BidType, bid: Micros, ctr: Ctr) -> Micros | None:
    """Return what a bid offers for a thousand clicks; None if no click is expected."""
    if bid_type is BidType.CPC:
        return Micros(bid * CLICKS_A_PRICE)
    return Micros(divide_half_up(bid * CTR_ONE, ctr)) if ctr > 0 else None


def divide_half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator)
