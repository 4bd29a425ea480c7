"""What a campaign brings to contextual auctions, published to the directory in advance, so that bidders need not ask."""

# pure

from typing import Final

import msgspec

from adloom.core.ids import AdvertiserId, BannerId, CampaignId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Address
from adloom.schedule.pace_control import EXPECTED_SHARE_MIN
from adloom.taxonomy.topics import FILLER

DIRECTORY: Final = Address("directory", "directory")
# Of what is planned: who has spent so much is left out of requests, or will be,
ON_PLAN: Final = 0.95
# until it is behind. Between the two it stays what it was: each change is another auction.
BEHIND_PLAN: Final = 0.9
BID_STEPS: Final = 10


class WantedCreative(msgspec.Struct, frozen=True):
    """A banner that a campaign shows in contextual slots; without a size it fits every slot."""

    banner_id: BannerId
    width: int | None = None
    height: int | None = None
    landing_domain: str | None = None
    is_closed: bool = False  # Its schedule does not show it now: it bids on, behind those that can be shown.

    def fits(self, width: int | None, height: int | None) -> bool:
        """Whether it fits a slot: of the same size, or where either has none."""
        has_sizes = None not in {self.width, self.height, width, height}
        return not has_sizes or (self.width, self.height) == (width, height)


class CampaignDemand(msgspec.Struct, frozen=True, kw_only=True):
    """An active campaign as bidders know it; `version` is the catalog's when it was read."""

    campaign_id: CampaignId
    advertiser_id: AdvertiserId | None
    version: int
    max_cpm: Micros
    categories: tuple[str, ...]
    creatives: tuple[WantedCreative, ...]
    takes_filler: bool = False
    product_category: str | None = None
    blocked_domains: frozenset[str] = frozenset()
    excluded_categories: frozenset[str] = frozenset()  # Of pages; what is below them is excluded, too.
    # Nothing is left of a budget or a cap, it begins later or is over: it bids on, behind campaigns that can be shown.
    is_spent: bool = False
    # At many requests it cannot be shown, by its pace, its targeting or frequency caps: it bids on, beside those that
    # can be shown at each.
    is_paced: bool = False
    is_restricted: bool = False
    # By its strategy, where it bids less than it may. Under a slot's floor it cannot be shown until it bids more.
    bid_now: Micros | None = None

    @property
    def wanted(self) -> frozenset[str]:
        """The categories whose bidders must know it, filler included."""
        return frozenset((*self.categories, FILLER) if self.takes_filler else self.categories)


class CampaignReady(msgspec.Struct, frozen=True, tag="campaign_ready.v1"):
    """An active campaign with categories; the same again changes nothing."""

    demand: CampaignDemand


class CampaignGone(msgspec.Struct, frozen=True, tag="campaign_gone.v1"):
    """A campaign that bids no more, as of a version of the catalog."""

    campaign_id: CampaignId
    version: int


def round_bid_now(bid: Micros, multiplier: float) -> Micros | None:
    """Return what a campaign bids by its strategy, or somewhat less: each change is another auction."""
    return None if multiplier >= 1 else Micros(bid * int(multiplier * BID_STEPS) // BID_STEPS)


def is_on_plan(spent: int, daily_budget: Micros, share: float, *, was_paced: bool) -> bool:
    """Whether a campaign that follows the traffic of its day has spent what it was to have spent by now."""
    planned = daily_budget * max(EXPECTED_SHARE_MIN, share)
    return spent >= (BEHIND_PLAN if was_paced else ON_PLAN) * planned
