"""What a learned CTR depends on, as places in a table of weights.

A feature is a name and its values, hashed: nobody keeps a dictionary, and two features that meet in one
place share a weight. Some are known with the request, some with the ad, the rest need both; so most of
a prediction is added up once for many.
"""

from functools import lru_cache
from typing import Final
from zlib import crc32

SLOT_BITS: Final = 18
SLOTS: Final = 1 << SLOT_BITS

# Neighbours differ in few bits of a CRC; a multiplication spreads them over the upper ones.
_SPREAD: Final = 2_654_435_761
_WORD: Final = 0xFFFF_FFFF
_SHIFT: Final = 32 - SLOT_BITS

# How many of each kind are remembered: what is hashed does not depend on what is learned.
_ADS_MAX: Final = 32_768
_KINDS_MAX: Final = 8_192

Slots = tuple[int, ...]


def slot_of(feature: str) -> int:
    """Tell where a feature's weight is; the same in every process, for ever."""
    return (crc32(feature.encode()) * _SPREAD & _WORD) >> _SHIFT


@lru_cache(_KINDS_MAX)
def request_slots(device: str | None, country: str | None, hour: int | None, segment: str | None) -> Slots:
    """Give the features that all ads of a request share."""
    return (
        slot_of("all"),
        slot_of(f"device {device}"),
        slot_of(f"country {country}"),
        slot_of(f"hour {hour}"),
        slot_of(f"segment {segment}"),
    )


@lru_cache(_ADS_MAX)
def ad_slots(placement_key: int, banner_key: int, campaign_key: int) -> Slots:
    """Give the features that an ad has in every request."""
    return (
        slot_of(f"placement {placement_key}"),
        slot_of(f"banner {banner_key}"),
        slot_of(f"campaign {campaign_key}"),
        slot_of(f"placement {placement_key} banner {banner_key}"),
    )


@lru_cache(_ADS_MAX)
def banner_slots(banner_key: int, device: str | None, segment: str | None) -> Slots:
    """Give the features that a banner has for readers of a kind."""
    return (
        slot_of(f"banner {banner_key} device {device}"),
        slot_of(f"banner {banner_key} segment {segment}"),
    )


@lru_cache(_KINDS_MAX)
def placement_slots(placement_key: int, device: str | None, hour: int | None) -> Slots:
    """Give the features that a placement has for readers of a kind."""
    return (
        slot_of(f"placement {placement_key} device {device}"),
        slot_of(f"placement {placement_key} hour {hour}"),
    )
