"""Statistics: which counts someone asks for, and what they add up to."""

from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from uuid import UUID

import msgspec

CTR_PLACES = 6


class Grouping(StrEnum):
    """What a row of the statistics is about."""

    DAY = "day"
    BANNER = "banner"
    PLACEMENT = "placement"
    CAMPAIGN = "campaign"


class StatsQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The counts that someone asks for; both days are included."""

    first: date
    last: date
    grouping: Grouping
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None
    # Whose counts may be seen: an advertiser's, a publisher's, or everyone's.
    advertiser_id: UUID | None = None
    publisher_id: UUID | None = None


class Counts(msgspec.Struct, frozen=True):
    """Impressions and clicks together."""

    impressions: int
    clicks: int

    @property
    def ctr(self) -> float:
        """Tell the share of impressions that were clicked; none where there are none."""
        return round(self.clicks / self.impressions, CTR_PLACES) if self.impressions else 0.0


class StatsRow(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one day, banner, placement or campaign; a campaign may be none."""

    key: date | UUID | None
    counts: Counts


def total(rows: Sequence[StatsRow]) -> Counts:
    """Add rows up."""
    return Counts(
        impressions=sum(row.counts.impressions for row in rows),
        clicks=sum(row.counts.clicks for row in rows),
    )
