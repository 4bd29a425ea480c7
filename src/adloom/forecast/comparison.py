"""What runs of a market have in common: means and 90 % intervals, and what a change does in pairs of runs."""

# pure

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from adloom.forecast.tally import DeliveryTotals, MarketTally

# 95 % quantiles of Student's t, by degrees of freedom from 1 on; beyond, the normal one.
_T: Final = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761)
_T_MANY: Final = 1.70
_FEW: Final = 30
_NORMAL: Final = 1.645


class Estimate(msgspec.Struct, frozen=True):
    """A mean over runs, and the ends of its 90 % interval; None if there was one run only."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class DayEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign has on an average day."""

    impressions: Estimate
    clicks: Estimate
    conversions: Estimate
    spend: Estimate
    price: Estimate | None  # Of a click, or of a thousand impressions; None if it bought none.


class CampaignComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign without and with the changes; the difference is taken within pairs of runs."""

    before: DayEstimate
    after: DayEstimate | None = None
    difference: DayEstimate | None = None


def estimate(values: Sequence[float], *, is_count: bool = False) -> Estimate:
    """Return the mean of independent runs, and its interval."""
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = find_t(count - 1) * deviation / math.sqrt(count)
    return Estimate(mean, max(0.0, mean - half) if is_count else mean - half, mean + half)


def find_t(freedom: int) -> float:
    if freedom <= len(_T):
        return _T[freedom - 1]
    return _T_MANY if freedom < _FEW else _NORMAL


def compare_campaigns(  # noqa: PLR0913 - whose, when, in which runs
    before: Sequence[MarketTally],
    after: Sequence[MarketTally] | None,
    keys: Iterable[int],
    *,
    hours: Iterable[int],
    days: float,
    is_per_click: bool,
) -> CampaignComparison:
    """Compare some campaigns together over some hours, as averages of a day."""
    chosen, wanted = list(keys), list(hours)
    was = [_sum_up(tally, chosen, wanted, days) for tally in before]
    if after is None:
        return CampaignComparison(before=_estimate_day(was, is_per_click=is_per_click))
    is_now = [_sum_up(tally, chosen, wanted, days) for tally in after]
    return CampaignComparison(
        before=_estimate_day(was, is_per_click=is_per_click),
        after=_estimate_day(is_now, is_per_click=is_per_click),
        difference=_estimate_difference(was, is_now, is_per_click=is_per_click),
    )


def _sum_up(tally: MarketTally, keys: Sequence[int], hours: Sequence[int], days: float) -> DeliveryTotals:
    sums = [tally.sum_up(key, hours) for key in keys]
    return DeliveryTotals(
        impressions=math.fsum(one.impressions for one in sums) / days,
        clicks=math.fsum(one.clicks for one in sums) / days,
        conversions=math.fsum(one.conversions for one in sums) / days,
        spend=math.fsum(one.spend for one in sums) / days,
    )


def _estimate_day(totals: Sequence[DeliveryTotals], *, is_per_click: bool) -> DayEstimate:
    prices = [price for one in totals if (price := one.compute_price(is_per_click=is_per_click)) is not None]
    return DayEstimate(
        impressions=estimate([one.impressions for one in totals], is_count=True),
        clicks=estimate([one.clicks for one in totals], is_count=True),
        conversions=estimate([one.conversions for one in totals], is_count=True),
        spend=estimate([one.spend for one in totals], is_count=True),
        price=estimate(prices, is_count=True) if prices else None,
    )


def _estimate_difference(
    before: Sequence[DeliveryTotals], after: Sequence[DeliveryTotals], *, is_per_click: bool
) -> DayEstimate:
    pairs = list(zip(before, after, strict=True))
    prices = [
        now - was
        for one, other in pairs
        if (was := one.compute_price(is_per_click=is_per_click)) is not None
        and (now := other.compute_price(is_per_click=is_per_click)) is not None
    ]
    return DayEstimate(
        impressions=estimate([now.impressions - was.impressions for was, now in pairs]),
        clicks=estimate([now.clicks - was.clicks for was, now in pairs]),
        conversions=estimate([now.conversions - was.conversions for was, now in pairs]),
        spend=estimate([now.spend - was.spend for was, now in pairs]),
        price=estimate(prices) if prices else None,
    )
