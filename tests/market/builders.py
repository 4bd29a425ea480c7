"""Builders: each names only what a test is about."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from adloom.auction.site_modes import ApprovalMode
from adloom.budgets.campaign.demand import CampaignDemand, WantedCreative
from adloom.core.ids import AdvertiserId, BannerId, CampaignId, SiteId
from adloom.core.money import Micros
from adloom.market.approval import ApprovalRules
from adloom.market.auctioneer.state import (
    AuctionSlot,
    ConfigureAuctions,
    PageForSale,
    SiteTerms,
)
from adloom.market.bids import SlotTerms
from simulation.market import START

UNIT = 1_000_000
SITE = SiteId(UUID(int=7))


def campaign_id(number: int) -> CampaignId:
    return CampaignId(UUID(int=1_000 + number))


def banner_id(number: int) -> BannerId:
    return BannerId(UUID(int=2_000 + number))


def a_demand(number: int = 1, *categories: str, cpm: float = 5, **fields: Any) -> CampaignDemand:
    values: dict[str, Any] = {
        "campaign_id": campaign_id(number),
        "advertiser_id": AdvertiserId(UUID(int=3_000 + number)),
        "version": 1,
        "max_cpm": Micros(round(cpm * UNIT)),
        "categories": categories or ("483",),
        "creatives": (WantedCreative(banner_id(number)),),
        **fields,
    }
    return CampaignDemand(**values)


def some_slot_terms(**fields: Any) -> SlotTerms:
    values: dict[str, Any] = {
        "width": None, "height": None, "floor": Micros(UNIT // 2), "domain": "magazine.test", **fields,
    }  # fmt: skip
    return SlotTerms(**values)


def a_site(
    *slots: str,
    version: int = 1,
    approvals: Any = None,
    mode: ApprovalMode = ApprovalMode.AUTOMATIC,
    trusted: Any = frozenset(),
    **fields: Any,
) -> ConfigureAuctions:
    values: dict[str, Any] = {
        "version": version,
        "domain": "magazine.test",
        "floor": Micros(UNIT // 2),
        "slots": tuple(AuctionSlot(slug, None, None, Micros(0)) for slug in slots or ("top",)),
        **fields,
    }
    return ConfigureAuctions(SiteTerms(**values), ApprovalRules(mode, approvals or {}, trusted))


def a_page(
    url: str = "magazine.test/a", *categories: str, version: int = 1, hours: float = 48
) -> PageForSale:
    chosen = tuple((category, 0.9 - 0.1 * number) for number, category in enumerate(categories or ("483",)))
    return PageForSale(url, version, chosen, START + timedelta(hours=hours))
