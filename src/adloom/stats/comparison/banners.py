"""Banners side by side: which of them leads, and with what certainty."""

# pure

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from adloom.stats.comparison.rates import RATES_MAX, compare_rates

IMPRESSIONS_MIN: Final = 100  # A banner that was shown less often says nothing yet.


class BannerResult(msgspec.Struct, frozen=True, kw_only=True):
    """How often a banner was seen and clicked; the others are None where it is not compared."""

    banner_id: UUID
    impressions: int
    clicks: int
    ctr_low: float | None = None
    ctr_high: float | None = None
    best_chance: float | None = None

    @property
    def ctr(self) -> float:
        return self.clicks / self.impressions if self.impressions else 0.0


def compare_banners(counted: Sequence[BannerResult]) -> list[BannerResult]:
    """Compare the banners with most impressions; the one that leads comes first, those not compared last."""
    ordered = sorted(counted, key=lambda one: (-one.impressions, one.banner_id))
    compared = [one for one in ordered if one.impressions >= IMPRESSIONS_MIN][:RATES_MAX]
    rates = compare_rates([(one.impressions, one.clicks) for one in compared])
    results = [
        msgspec.structs.replace(one, ctr_low=rate.low, ctr_high=rate.high, best_chance=rate.best)
        for one, rate in zip(compared, rates, strict=True)
    ]
    results.sort(key=lambda one: (-(one.best_chance or 0.0), one.banner_id))
    return results + [one for one in ordered if one not in compared]


def find_leader(results: Sequence[BannerResult]) -> BannerResult | None:
    """Return the banner that leads, where at least two are compared."""
    compared = [one for one in results if one.best_chance is not None]
    return compared[0] if len(compared) > 1 else None
