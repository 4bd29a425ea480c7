"""Events, offers and an index, with defaults for all that a test is not about."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from adloom.core.ids import BannerId, CampaignId, PlacementId
from adloom.core.money import Micros
from adloom.ledger.event import ChargedBy, Click, Impression
from adloom.ledger.token import TokenKeys, offer_terms, packed_charge

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
SECRET = "a-secret-of-the-tests-that-is-long-enough"

BANNER = BannerId(UUID("01890000-0000-7000-8000-00000000000b"))
PLACEMENT = PlacementId(UUID("01890000-0000-7000-8000-0000000000a1"))
CAMPAIGN = CampaignId(UUID("01890000-0000-7000-8000-0000000000c1"))
NOBODY = UUID("01890000-0000-7000-8000-000000000000")
REQUEST = UUID("01890000-0000-7000-8000-0000000000e1")


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


def a_token(  # noqa: PLR0913 - all that a token says
    *,
    keys: TokenKeys | None = None,
    issued_at: datetime = NOW,
    slot: int = 0,
    banner: BannerId = BANNER,
    lease: int = 0,
    charge: int = 0,
    charged_by: ChargedBy = ChargedBy.IMPRESSION,
) -> bytes:
    signer = (keys or TokenKeys(SECRET)).signer
    terms = offer_terms(banner, PLACEMENT, CAMPAIGN, charge=packed_charge(Micros(charge), charged_by))
    return signer.sign(
        terms, request_id=REQUEST.bytes, issued_at=int(issued_at.timestamp()), slot=slot, lease=lease
    )


class FakeIndex:
    """Knows one banner in one campaign on one placement."""

    def __init__(self, destination: str | None = "https://shop.example/?utm_source=a") -> None:
        self._destination = destination

    def has_banner(self, banner_id: BannerId) -> bool:
        return banner_id == BANNER

    def has_placement(self, placement_id: PlacementId) -> bool:
        return placement_id == PLACEMENT

    def has_campaign(self, campaign_id: CampaignId) -> bool:
        return campaign_id == CAMPAIGN

    def destination(
        self, campaign_id: CampaignId, placement_id: PlacementId, banner_id: BannerId
    ) -> str | None:
        assert (campaign_id, placement_id, banner_id) == (CAMPAIGN, PLACEMENT, BANNER)
        return self._destination
