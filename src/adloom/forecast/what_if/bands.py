"""What an account may learn of its rivals by asking: their bids in coarse steps, and not what they are."""

# pure

import math
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.money import Micros
from adloom.forecast.market import SimulatedMarket
from adloom.serving.index.rows import AssignmentRow, compute_price

STEPS_A_DECADE: Final = 8  # A third apart.


def blur_rivals(market: SimulatedMarket, advertiser_id: UUID | None) -> SimulatedMarket:
    """Round the bids of other advertisers: however often an account asks, it finds a step and no bid.

    A bid is rounded, and not what comes of it: the results of many questions would tell it together.
    """
    return msgspec.structs.replace(
        market,
        assignments=[_blur(row, advertiser_id) for row in market.assignments],
        creatives=[
            msgspec.structs.replace(row, assignment=_blur(row.assignment, advertiser_id))
            for row in market.creatives
        ],
    )


def _blur(row: AssignmentRow, advertiser_id: UUID | None) -> AssignmentRow:
    if row.advertiser_id == advertiser_id or not row.bid:
        return row
    bid = round_to_step(row.bid)
    return msgspec.structs.replace(row, bid=bid, price=compute_price(row.bid_type, bid))


def round_to_step(bid: Micros) -> Micros:
    """Round to the nearest of eight steps a factor of ten, which are a third apart; two significant digits."""
    step = 10 ** (round(STEPS_A_DECADE * math.log10(bid)) / STEPS_A_DECADE)
    digits = max(0, int(math.log10(step)) - 1)
    return Micros(max(1, round(step / 10**digits) * 10**digits))
