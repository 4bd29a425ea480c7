"""One step between a campaign and a visitor, and what it says."""

# pure

from enum import StrEnum
from typing import Final

import msgspec

from adloom.explain.reasons import Reason

# What a step says of a campaign that passes.
PASSES: Final = {
    "status": "The campaign is active.",
    "dates": "It is within its dates.",
    "placements": "Its banners are assigned to placements that are switched on.",
    "schedule": "It is the time of its banners.",
    "targeting": "Readers that its rules want were there.",
    "caps": "It has had less than its caps allow.",
    "budget": "Its budgets pay for more offers.",
    "pacing": "Its pacing does not hold it back.",
    "requests": "Its placements were asked for.",
    "frequency": "Frequency caps have not kept it back.",
    "floor": "Its bids reach the floors.",
    "auctions": "No other campaign has outbid it.",
    "rivals": "It has its share of the slots of its direct placements.",
    "contextual_bid": "It bids by thousand impressions, as contextual slots want it.",
    "creatives": "It has banners for contextual slots.",
    "categories": "All its categories have pages.",
    "sites": "No site or advertiser blocks it.",
    "sizes": "Its banners fit the slots.",
    "contextual_floor": "Its bid reaches the floors of contextual slots.",
    "approvals": "No site has its banners wait.",
}


class CheckState(StrEnum):
    """How a step treats the campaign."""

    OK = "ok"
    LIMITS = "limits"
    STOPS = "stops"


class CampaignCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One step: whether the campaign passes, and where it is counted, how often of how many."""

    name: str
    state: CheckState
    sentence: str
    change: str | None = None
    passed: int | None = None
    of: int | None = None

    def limited(self) -> "CampaignCheck":
        """Return the check of a step that does not stop the campaign, because there are other ways."""
        is_stop = self.state is CheckState.STOPS
        return msgspec.structs.replace(self, state=CheckState.LIMITS) if is_stop else self


def count_passing(name: str, reason: Reason | None, passed: int, of: int | None) -> CampaignCheck:
    """Judge a step by how many pass it: with none the campaign is stopped, with some it is limited."""
    check = msgspec.structs.replace(judge(name, reason), passed=passed, of=of)
    return msgspec.structs.replace(check, state=CheckState.LIMITS) if reason and passed else check


def judge(name: str, reason: Reason | None, passes: str | None = None) -> CampaignCheck:
    if reason is None:
        return CampaignCheck(name=name, state=CheckState.OK, sentence=passes or PASSES[name])
    return CampaignCheck(name=name, state=CheckState.STOPS, sentence=reason.sentence, change=reason.change)
