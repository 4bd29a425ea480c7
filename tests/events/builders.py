"""Events, offers and an index, with defaults for all that a test is not about."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.events.ingest.conversion_reports import hash_name
from adloom.events.ingest.token import TokenKeys, make_charge_void, pack_charge, pack_terms
from adloom.events.log.auction_bids import LOST, REMOVED, WON, pack_bid
from adloom.events.log.event import (
    AuctionEntry,
    AuctionWin,
    ChargedBy,
    Click,
    Conversion,
    Impression,
    RemovedCandidates,
)

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
SECRET = "a-secret-of-the-tests-that-is-long-enough"

BANNER = BannerId(UUID("01890000-0000-7000-8000-00000000000b"))
PLACEMENT = PlacementId(UUID("01890000-0000-7000-8000-0000000000a1"))
CAMPAIGN = CampaignId(UUID("01890000-0000-7000-8000-0000000000c1"))
UNKNOWN_ID = UUID("01890000-0000-7000-8000-000000000000")
REQUEST = UUID("01890000-0000-7000-8000-0000000000e1")
USER = UUID("01890000-0000-7000-8000-0000000000f1")
OTHER_BANNER = BannerId(UUID("01890000-0000-7000-8000-0000000000b2"))
THIRD_BANNER = BannerId(UUID("01890000-0000-7000-8000-0000000000b3"))


def an_impression(correlation_id: str = "one", **fields: Any) -> Impression:
    return msgspec.structs.replace(
        Impression(
            correlation_id=correlation_id,
            banner_id=BANNER,
            placement_id=PLACEMENT,
            campaign_id=CAMPAIGN,
            occurred_at=NOW,
            received_at=NOW,
        ),
        **fields,
    )


def a_click(correlation_id: str = "one", **fields: Any) -> Click:
    return msgspec.structs.replace(
        Click(
            correlation_id=correlation_id,
            banner_id=BANNER,
            placement_id=PLACEMENT,
            campaign_id=CAMPAIGN,
            occurred_at=NOW,
            received_at=NOW,
        ),
        **fields,
    )


def a_conversion(name: str = "one", **fields: Any) -> Conversion:
    """A conversion of the first slot, worth 9.99."""
    return msgspec.structs.replace(
        Conversion(
            name=hash_name(name),
            banner_id=BANNER,
            placement_id=PLACEMENT,
            campaign_id=CAMPAIGN,
            request_id=RequestId(REQUEST),
            slot=0,
            offered_at=int(NOW.timestamp()),
            occurred_at=NOW,
            received_at=NOW,
            value=Micros(9_990_000),
        ),
        **fields,
    )


def a_bid(  # noqa: PLR0913 - all that a bid says
    *,
    banner: BannerId = BANNER,
    campaign: CampaignId = CAMPAIGN,
    bid: int = 9_000_000,
    is_per_click: bool = False,
    ctr: int = 20_000_000,
    quality: int = 10_000,
    ecpm: int = 9_000_000,
    outcome: int = WON,
) -> bytes:
    """A bid of 9.00 per thousand impressions that won."""
    pair = banner.bytes + campaign.bytes
    return pack_bid(pair, Micros(bid), quality, is_per_click, ctr, ecpm, outcome)


def a_win(**fields: Any) -> AuctionWin:
    return msgspec.structs.replace(
        AuctionWin(
            banner_id=BANNER,
            campaign_id=CAMPAIGN,
            placement_id=PLACEMENT,
            final_price=Micros(7_010_000),
            ecpm=Micros(9_000_000),
            charge=Micros(7_010_000),
        ),
        **fields,
    )


def an_auction(auction_id: UUID = REQUEST, **fields: Any) -> AuctionEntry:
    """An auction in which 9.00 won over 7.00, and a third was not asked for here."""
    return msgspec.structs.replace(
        AuctionEntry(
            auction_id=RequestId(auction_id),
            user_id=USER,
            placement_type="feed",
            held_at=NOW,
            context={"country": "FR"},
            scoring="heuristic",
            winner=a_win(),
            bid_count=2,
            bids=a_bid()
            + a_bid(banner=OTHER_BANNER, bid=7_000_000, ecpm=7_000_000, outcome=LOST)
            + a_bid(banner=THIRD_BANNER, bid=5_000_000, ecpm=5_000_000, outcome=REMOVED),
            removed=(RemovedCandidates("targeting:country", 1),),
        ),
        **fields,
    )


def a_token(  # noqa: PLR0913 - all that a token says
    *,
    keys: TokenKeys | None = None,
    issued_at: datetime = NOW,
    slot: int = 0,
    banner: BannerId = BANNER,
    lease: int = 0,
    charge: int = 0,
    charged_by: ChargedBy = ChargedBy.IMPRESSION,
    is_void: bool = False,
) -> bytes:
    signer = (keys or TokenKeys(SECRET)).signer
    charged = pack_charge(Micros(charge), charged_by)
    terms = pack_terms(banner.bytes + CAMPAIGN.bytes, PLACEMENT.bytes, charged)
    return signer.sign(
        make_charge_void(terms) if is_void else terms,
        request_id=REQUEST.bytes,
        issued_at=int(issued_at.timestamp()),
        slot=slot,
        lease=lease,
        micros=issued_at.microsecond,
    )


class FakeIndex:
    """Knows one banner in one campaign on one placement."""

    def __init__(self, destination: str | None = "https://shop.example/?utm_source=a") -> None:
        self._destination = destination
        self.assigned = True
        self.placements = {PLACEMENT}
        self.with_click_id = False

    def has_banner(self, banner_id: BannerId) -> bool:
        return banner_id == BANNER

    def has_placement(self, placement_id: PlacementId) -> bool:
        return placement_id in self.placements

    def has_campaign(self, campaign_id: CampaignId) -> bool:
        return campaign_id == CAMPAIGN

    def is_assigned(
        self, campaign_id: CampaignId | None, placement_id: PlacementId, banner_id: BannerId
    ) -> bool:
        del campaign_id, placement_id, banner_id
        return self.assigned

    def find_destination(
        self, campaign_id: CampaignId, placement_id: PlacementId, banner_id: BannerId
    ) -> str | None:
        assert (campaign_id, placement_id, banner_id) == (CAMPAIGN, PLACEMENT, BANNER)
        return self._destination

    def passes_click_id(self, campaign_id: CampaignId, placement_id: PlacementId) -> bool:
        assert (campaign_id, placement_id) == (CAMPAIGN, PLACEMENT)
        return self.with_click_id
