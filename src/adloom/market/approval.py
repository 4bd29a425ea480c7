"""Whether a site shows a banner: decisions of its publisher, and what holds where there is none."""

# pure

from enum import StrEnum

import msgspec

from adloom.auction.site_modes import ApprovalMode
from adloom.core.ids import AdvertiserId, BannerId


class ApprovalState(StrEnum):
    """What a site's publisher says of a banner; rejected and flagged ones are not shown until that changes."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    FLAGGED = "flagged"


class ApprovalRules(msgspec.Struct, frozen=True):
    """A site's banners; `trusted` are the advertisers one of whose was approved, `revoked` those that are to wait."""

    mode: ApprovalMode = ApprovalMode.MANUAL
    decided: dict[BannerId, ApprovalState] = {}  # Also of banners about which nobody has decided: pending.
    trusted: frozenset[AdvertiserId] = frozenset()
    revoked: frozenset[BannerId] = frozenset()

    def judge(self, banner_id: BannerId, advertiser_id: AdvertiserId | None) -> ApprovalState:
        """Return what holds for a banner: what somebody has decided, or else what the mode says today."""
        decided = self.decided.get(banner_id, ApprovalState.PENDING)
        if decided is not ApprovalState.PENDING or banner_id in self.revoked:
            return decided
        is_approved = self.mode is ApprovalMode.AUTOMATIC or (
            self.mode is ApprovalMode.TRUSTED and advertiser_id in self.trusted
        )
        return ApprovalState.APPROVED if is_approved else ApprovalState.PENDING
