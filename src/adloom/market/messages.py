"""What the actors of the contextual market tell each other, and the rows that they record."""

# pure

from datetime import datetime
from typing import TypeAlias

import msgspec

from adloom.budgets.campaign.demand import CampaignDemand, CampaignGone, CampaignReady
from adloom.budgets.messages import CheckClock
from adloom.core.ids import CampaignId, SiteId
from adloom.market.bids import CategoryBids, SlotTerms
from adloom.market.weights import DecayingCounts

# To the directory.


class AllDemand(msgspec.Struct, frozen=True, tag="all_demand.v1"):
    """All campaigns that bid, as the catalog was at `version`: what was missed is made good."""

    version: int
    demands: tuple[CampaignDemand, ...]


class LoadDemand(msgspec.Struct, frozen=True, tag="load_demand.v1"):
    """What the directory had recorded when it was last in memory."""

    demands: tuple[CampaignDemand, ...]
    versions: dict[str, int]


DirectoryMessage: TypeAlias = CampaignReady | CampaignGone | AllDemand | LoadDemand | CheckClock

# To a distributor, and on to bidders.


class CategoryDemand(msgspec.Struct, frozen=True, tag="category_demand.v1"):
    """All campaigns of a category; an older version than the known one is dropped.

    Only a change of a campaign makes a new version: what is said again, for example after a start, is no edit.
    """

    category: str
    version: int
    campaigns: tuple[CampaignDemand, ...]


class DemandTaken(msgspec.Struct, frozen=True, tag="demand_taken.v1"):
    """A bidder has a category's campaigns, of this version or a later one."""

    category: str
    version: int
    stripe: int


DistributorMessage: TypeAlias = CategoryDemand | DemandTaken | CheckClock


class BidRequest(msgspec.Struct, frozen=True, tag="bid_request.v1"):
    """A site asks for the bids of a category for its groups of slots."""

    site_id: SiteId
    number: int
    slots: tuple[SlotTerms, ...]


class BidAnswer(msgspec.Struct, frozen=True, tag="bid_answer.v1"):
    """A bidder's bids for a site's groups of slots, in the order of the request."""

    category: str
    number: int
    version: int
    slots: tuple[CategoryBids, ...]


class DemandChanged(msgspec.Struct, frozen=True, tag="demand_changed.v1"):
    """A category's campaigns have changed: a site that asked for its bids may ask again."""

    category: str
    version: int


class DemandVersions(msgspec.Struct, frozen=True, tag="demand_versions.v1"):
    """The newest versions of categories that have changed: what a site missed is asked for again."""

    versions: dict[str, int]


BidderMessage: TypeAlias = CategoryDemand | BidRequest | CheckClock

# To a ranker.


class Quote(msgspec.Struct, frozen=True, tag="quote.v1"):
    """A site asks how well a category does."""

    site_id: SiteId


class RecordResults(msgspec.Struct, frozen=True, tag="record_results.v1"):
    """Impressions and clicks that were counted, up to a row of the results; what is known already is dropped."""

    impressions: int
    clicks: int
    at: datetime
    through: int


class LoadResults(msgspec.Struct, frozen=True, tag="load_results.v1"):
    """What the ranker had recorded when it was last in memory, and up to which row of the results."""

    impressions: float
    clicks: float
    at: datetime
    through: int


class Quoted(msgspec.Struct, frozen=True, tag="quoted.v1"):
    """The counts of a ranker; `site` may be all sites together."""

    category: str
    site: str
    counts: DecayingCounts


RankerMessage: TypeAlias = Quote | RecordResults | LoadResults | CheckClock


# Rows.


class DemandRow(msgspec.Struct, frozen=True):
    """A campaign's demand as the directory knows it; None: it bids no more."""

    campaign_id: CampaignId
    version: int
    demand: CampaignDemand | None


class CategoryVersionRow(msgspec.Struct, frozen=True):
    """The version of a category's last push."""

    category: str
    version: int


class ResultsRow(msgspec.Struct, frozen=True):
    """A ranker's counts as of a moment; `site` may be all sites together."""

    category: str
    site: str
    impressions: float
    clicks: float
    at: datetime
    through: int
