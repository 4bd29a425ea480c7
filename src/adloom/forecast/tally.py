"""What campaigns had in a simulated market, hour by hour."""

# pure

from collections.abc import Iterable
from typing import Final

import msgspec

from adloom.core.money import IMPRESSIONS_PER_CPM, MICROS_PER_UNIT

IMPRESSIONS: Final = "impressions"
CLICKS: Final = "clicks"
CONVERSIONS: Final = "conversions"
SPEND: Final = "spend"
MEASURES: Final = (IMPRESSIONS, CLICKS, CONVERSIONS, SPEND)


class CampaignHours(msgspec.Struct):
    """One campaign: what it had in each hour, its spend in micros."""

    impressions: list[int]
    clicks: list[int]
    conversions: list[int]
    spend: list[int]

    @classmethod
    def of_hours(cls, hours: int) -> "CampaignHours":
        return cls([0] * hours, [0] * hours, [0] * hours, [0] * hours)


class DeliveryTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of a stretch of time, with money in units."""

    impressions: float = 0.0
    clicks: float = 0.0
    conversions: float = 0.0
    spend: float = 0.0

    def compute_price(self, *, is_per_click: bool) -> float | None:
        """Return what a click cost on average, or a thousand impressions; None if there was none."""
        bought = self.clicks if is_per_click else self.impressions / IMPRESSIONS_PER_CPM
        return self.spend / bought if bought else None


class MarketTally(msgspec.Struct):
    """All campaigns of one run; numbers are multiplied by `scale` where only a sample of requests was simulated."""

    hours: int
    scale: float
    campaigns: dict[int, CampaignHours]
    requests: int = 0
    filled: int = 0

    def sum_up(self, campaign_key: int, hours: Iterable[int]) -> DeliveryTotals:
        found = self.campaigns.get(campaign_key)
        if found is None:
            return DeliveryTotals()
        chosen = list(hours)
        impressions, clicks, conversions, spend = (
            self.scale * sum([values[hour] for hour in chosen])
            for values in (found.impressions, found.clicks, found.conversions, found.spend)
        )
        return DeliveryTotals(
            impressions=impressions, clicks=clicks, conversions=conversions, spend=spend / MICROS_PER_UNIT
        )
