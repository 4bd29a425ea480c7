"""Statistics: which counts someone asks for, and what they add up to."""

from collections.abc import Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from adloom.core.money import Micros

CTR_PLACES: Final = 6


class Grouping(StrEnum):
    """What a row of the statistics is about; it may be several of these together."""

    DAY = "day"
    HOUR = "hour"
    BANNER = "banner"
    PLACEMENT = "placement"
    CAMPAIGN = "campaign"
    COUNTRY = "country"
    DEVICE = "device"


# Days that are rolled up know nothing finer than a day, and nothing of readers; money knows nothing of readers at all.
OF_READERS: Final = frozenset({Grouping.COUNTRY, Grouping.DEVICE})
ONLY_LIVE: Final = OF_READERS | {Grouping.HOUR}

Key: TypeAlias = date | datetime | UUID | str | None


class StatsQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The counts that someone asks for; both days are included.

    A country or device that is empty text stands for events of which it is not known.
    """

    first: date
    last: date
    groupings: tuple[Grouping, ...]
    banner_id: UUID | None = None
    placement_id: UUID | None = None
    campaign_id: UUID | None = None
    country: str | None = None
    device: str | None = None
    # Whose counts may be seen: an advertiser's, a publisher's, or everyone's.
    advertiser_id: UUID | None = None
    publisher_id: UUID | None = None

    @property
    def needs_live_counts(self) -> bool:
        """Whether days that are rolled up cannot answer this."""
        return self.is_of_readers or not ONLY_LIVE.isdisjoint(self.groupings)

    @property
    def is_of_readers(self) -> bool:
        """Whether readers are told apart, so that what they have cost is not known."""
        return (
            not OF_READERS.isdisjoint(self.groupings) or self.country is not None or self.device is not None
        )


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Impressions and clicks together, those that are not valid among them, and what was charged; None is not known."""

    impressions: int = 0
    clicks: int = 0
    invalid_impressions: int = 0
    invalid_clicks: int = 0
    spend: Micros | None = Micros(0)

    @property
    def ctr(self) -> float:
        """Tell the share of impressions that were clicked; none where there are none."""
        return round(self.clicks / self.impressions, CTR_PLACES) if self.impressions else 0.0


class StatsRow(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one key, which has a part for each grouping; of what is not known, and no campaign, it is None."""

    key: tuple[Key, ...]
    counts: Counts


def total(rows: Sequence[StatsRow]) -> Counts:
    """Add rows up; what is not known of one of them is not known of all."""
    spends = [row.counts.spend for row in rows]
    return Counts(
        impressions=sum(row.counts.impressions for row in rows),
        clicks=sum(row.counts.clicks for row in rows),
        invalid_impressions=sum(row.counts.invalid_impressions for row in rows),
        invalid_clicks=sum(row.counts.invalid_clicks for row in rows),
        spend=None if None in spends else Micros(sum(spend for spend in spends if spend is not None)),
    )
