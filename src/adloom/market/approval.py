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
    """A site's decisions; `trusted` are the advertisers one of whose banners was approved."""

    mode: ApprovalMode = ApprovalMode.MANUAL
    decided: dict[BannerId, ApprovalState] = {}
    trusted: frozenset[AdvertiserId] = frozenset()

    def judge(self, banner_id: BannerId, advertiser_id: AdvertiserId | None) -> ApprovalState:
        """Return what holds for a banner, decided or not."""
        decided = self.decided.get(banner_id)
        if decided is not None:
            return decided
        is_approved = self.mode is ApprovalMode.AUTOMATIC or (
            self.mode is ApprovalMode.TRUSTED and advertiser_id in self.trusted
        )
        return ApprovalState.APPROVED if is_approved else ApprovalState.PENDING
