"""Which actor is responsible for what: the same on every machine, in every run."""

# pure

import zlib
from typing import Final

from adloom.core.ids import SiteId
from adloom.runtime.actors.actor import Address

DISTRIBUTOR: Final = "distributor"
BIDDER: Final = "bidder"
RANKER: Final = "ranker"
AUCTIONEER: Final = "auctioneer"
DISTRIBUTORS: Final = 8
STRIPES: Final = 5  # Bidders of a category; each serves the sites that hash to it.
EVERYWHERE: Final = "*"  # Instead of a site: a category's figures on all sites.


def find_stripe(site_id: SiteId) -> int:
    return zlib.crc32(site_id.bytes) % STRIPES


def make_distributor_address(category: str) -> Address:
    return Address(DISTRIBUTOR, str(zlib.crc32(category.encode()) % DISTRIBUTORS))


def make_bidder_address(category: str, stripe: int) -> Address:
    return Address(BIDDER, f"{category}|{stripe}")


def make_ranker_address(category: str, site: str) -> Address:
    return Address(RANKER, f"{category}|{site}")


def make_auctioneer_address(site_id: SiteId) -> Address:
    return Address(AUCTIONEER, str(site_id))
