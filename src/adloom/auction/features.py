"""What a learned CTR depends on, as slots in a table of weights.

A feature is a name and its values, hashed: there is no dictionary, and two features that collide share a weight.
Some follow from the request, some from the ad, the rest from both; so most of a prediction is summed up once
for many.
"""

from functools import lru_cache
from typing import Final
from zlib import crc32

SLOT_BITS: Final = 18
SLOTS: Final = 1 << SLOT_BITS

# How `hash_slot` computes; public for loops that have no time for a call. Neighbours differ in few bits of a CRC; a multiplication spreads them over the upper ones.
SPREAD: Final = 2_654_435_761
WORD: Final = 0xFFFF_FFFF
SHIFT: Final = 32 - SLOT_BITS

# Cached hashes; they do not depend on the model.
_ADS_MAX: Final = 32_768
_KINDS_MAX: Final = 8_192

Slots = tuple[int, ...]


def hash_slot(feature: str) -> int:
    """Return the slot of a feature's weight; it must never change, since models are stored."""
    return (crc32(feature.encode()) * SPREAD & WORD) >> SHIFT


@lru_cache(_KINDS_MAX)
def request_slots(device: str | None, country: str | None, hour: int | None, segment: str | None) -> Slots:
    return (
        hash_slot("all"),
        hash_slot(f"device {device}"),
        hash_slot(f"country {country}"),
        hash_slot(f"hour {hour}"),
        hash_slot(f"segment {segment}"),
    )


@lru_cache(_ADS_MAX)
def find_ad_slots(placement_key: int, banner_key: int, campaign_key: int) -> Slots:
    return (
        hash_slot(f"placement {placement_key}"),
        hash_slot(f"banner {banner_key}"),
        hash_slot(f"campaign {campaign_key}"),
        hash_slot(f"placement {placement_key} banner {banner_key}"),
    )


@lru_cache(_ADS_MAX)
def find_banner_slots(banner_key: int, device: str | None, segment: str | None) -> Slots:
    return (
        hash_slot(f"banner {banner_key} device {device}"),
        hash_slot(f"banner {banner_key} segment {segment}"),
    )


def hash_banner(banner_key: int) -> int:
    """Hash how the features of `find_banner_slots` begin; `find_slot` hashes the rest."""
    return crc32(f"banner {banner_key} ".encode())


def find_slot(begun: int, rest: bytes) -> int:
    """Return the slot of a feature of whose name the beginning is hashed already."""
    return (crc32(rest, begun) * SPREAD & WORD) >> SHIFT


@lru_cache(_KINDS_MAX)
def find_placement_slots(placement_key: int, device: str | None, hour: int | None) -> Slots:
    return (
        hash_slot(f"placement {placement_key} device {device}"),
        hash_slot(f"placement {placement_key} hour {hour}"),
    )
