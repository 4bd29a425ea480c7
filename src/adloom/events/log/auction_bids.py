"""The bids of an auction in the event log: records of one size, end to end.

An entry may have hundreds of them, and most projections do not use them: to those they are a copy of some bytes.
"""

# pure

import struct
from collections.abc import Generator
from functools import lru_cache
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId
from adloom.core.money import Micros

BIDS_MAX: Final = 256  # Of an entry, so that a place is one byte. The entry also has their full number.
REASONS_MAX: Final = 250  # An outcome is one byte.
# The same ads bid again and again, and to make an id takes longer than the rest of a bid.
IDS_CACHED_MAX: Final = 16_384

WON: Final = 0
LOST: Final = 1
REMOVED: Final = 2  # By the first of the entry's reasons, and so on.

_CPC: Final = 1
# Banner, campaign, the campaign's own bid, the ad's quality, the type of the bid; predicted CTR, eCPM, outcome.
_BID: Final = struct.Struct(">16s16sQIBIQB")
_PACK: Final = struct.Struct(">32sQIBIQB").pack  # Banner and campaign in one.
BID_BYTES: Final = _BID.size


class RecordedBid(msgspec.Struct, frozen=True, gc=False):
    """One bid: CTR in billionths, quality in ten-thousandths, prices in micros, the eCPM per thousand impressions."""

    banner_id: BannerId
    campaign_id: CampaignId
    bid: Micros
    is_per_click: bool
    ctr: int
    quality: int
    ecpm: Micros
    outcome: int


def pack_bid(  # noqa: PLR0913, PLR0917 - called for hundreds of bids of an auction
    pair: bytes,
    bid: Micros,
    quality: int,
    is_per_click: bool,  # noqa: FBT001 - likewise
    ctr: int,
    ecpm: int,
    outcome: int,
) -> bytes:
    """Pack one bid; `pair` is the banner's id and the campaign's id."""
    return _PACK(pair, bid, quality, is_per_click, ctr, ecpm, outcome)


def unpack_bids(bids: bytes) -> Generator[RecordedBid]:
    """Return the bids in the order in which they were recorded; ValueError where one is cut."""
    if len(bids) % BID_BYTES:
        raise ValueError("The last bid of an auction is cut.")
    for banner, campaign, bid, quality, kind, ctr, ecpm, outcome in _BID.iter_unpack(bids):
        yield RecordedBid(
            BannerId(_make_id(banner)),
            CampaignId(_make_id(campaign)),
            Micros(bid),
            kind == _CPC,
            ctr,
            quality,
            Micros(ecpm),
            outcome,
        )


@lru_cache(IDS_CACHED_MAX)
def _make_id(written: bytes) -> UUID:
    return UUID(bytes=written)
