"""What campaigns had in runs of a simulated market hour by hour, how runs compare, and the result that tables and plots need."""

# pure

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from adloom.core.money import IMPRESSIONS_PER_CPM, MICROS_PER_UNIT
from adloom.forecast.market import NamedCampaign, SimulatedMarket

IMPRESSIONS: Final = "impressions"
CLICKS: Final = "clicks"
CONVERSIONS: Final = "conversions"
SPEND: Final = "spend"
# 95 % quantiles of Student's t, by degrees of freedom from 1 on; beyond, the normal one.
_T: Final = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761)
_T_MANY: Final = 1.70
_FEW: Final = 30
_NORMAL: Final = 1.645
SHOWN_MAX: Final = 20
HOURS_A_DAY: Final = 24


class CampaignHours(msgspec.Struct):
    """One campaign: what it had in each hour, its spend in micros."""

    impressions: list[int]
    clicks: list[int]
    conversions: list[int]
    spend: list[int]

    @classmethod
    def make_empty(cls, hours: int) -> "CampaignHours":
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


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long a market is simulated."""

    days: int = 1
    runs: int = 5
    seed: int = 1

    def describe(self) -> str:
        return f"{self.runs} run{'' if self.runs == 1 else 's'} of {self.days} day{'' if self.days == 1 else 's'}"

    @property
    def hours(self) -> int:
        return self.days * HOURS_A_DAY


class MarketOutcome(msgspec.Struct, frozen=True):
    """The tallies of all runs; those with the changes are in the order of those without."""

    before: list[MarketTally]
    after: list[MarketTally] | None

    @property
    def requests(self) -> int:
        return sum(tally.requests for tally in (*self.before, *(self.after or ())))


class MarketResult(msgspec.Struct, frozen=True, kw_only=True):
    """A market that was simulated, and what campaigns had."""

    market: SimulatedMarket
    changed_keys: frozenset[int]
    sentences: Sequence[str]
    plan: RunPlan
    outcome: MarketOutcome
    notes: Sequence[str] = ()  # About this run, beside those of the market.

    def compare(self, campaigns: Sequence[NamedCampaign]) -> CampaignComparison:
        """Compare campaigns together; a price per click only if all of them pay per click."""
        return compare_campaigns(
            self.outcome.before,
            self.outcome.after,
            [one.key for one in campaigns],
            hours=range(self.plan.hours),
            days=self.plan.days,
            is_per_click=all(one.is_per_click for one in campaigns),
        )

    def choose_shown(self) -> list[NamedCampaign]:
        """Return the changed campaigns; without a change, those that spend most."""
        if self.changed_keys:
            return [one for one in self.market.campaigns if one.key in self.changed_keys]
        hours = range(self.plan.hours)
        first = self.outcome.before[0]
        spent = {one.key: first.sum_up(one.key, hours).spend for one in self.market.campaigns}
        return sorted(self.market.campaigns, key=lambda one: (-spent[one.key], one.key))[:SHOWN_MAX]

    def list_notes(self) -> list[str]:
        """Return what the reader has to know."""
        notes = [*self.market.notes, *self.notes]
        if self.market.scale > 1:
            notes.append(
                f"One in {self.market.scale:.3g} requests was simulated, with budgets and caps in the same proportion."
            )
        if self.plan.runs == 1:
            notes.append("One run has no interval: ask for more with --runs.")
        return notes

    def estimate_hours(self, measure: str, *, is_after: bool, keys: Sequence[int]) -> list[Estimate]:
        """Return a measure by hour of the day, averaged over the days, with its interval over the runs."""
        tallies = self.outcome.after if is_after else self.outcome.before
        by_run = [_sum_hours(tally, measure, keys) for tally in tallies or ()]
        return [
            estimate(
                [sum(run[hour::HOURS_A_DAY]) / self.plan.days for run in by_run],
                is_count=True,
            )
            for hour in range(HOURS_A_DAY)
        ]

    def estimate_prices(self, *, is_after: bool, keys: Sequence[int]) -> list[Estimate]:
        """Return what a thousand impressions cost by hour of the day; 0 in an hour without any.

        The interval is over the runs that had some.
        """
        tallies = (self.outcome.after if is_after else self.outcome.before) or ()
        shown = [_sum_hours(tally, IMPRESSIONS, keys) for tally in tallies]
        spent = [_sum_hours(tally, SPEND, keys) for tally in tallies]
        return [
            _estimate_price(
                [
                    (sum(money[hour::HOURS_A_DAY]), sum(counts[hour::HOURS_A_DAY]))
                    for money, counts in zip(spent, shown, strict=True)
                ]
            )
            for hour in range(HOURS_A_DAY)
        ]


def _estimate_price(runs: Sequence[tuple[float, float]]) -> Estimate:
    """Estimate a price from the micros and the impressions of runs."""
    prices = [money / count * IMPRESSIONS_PER_CPM / MICROS_PER_UNIT for money, count in runs if count]
    return estimate(prices, is_count=True) if prices else Estimate(0.0)


def _sum_hours(tally: MarketTally, measure: str, keys: Sequence[int]) -> list[float]:
    found = [getattr(tally.campaigns[key], measure) for key in keys]
    return [tally.scale * sum(hours) for hours in zip(*found, strict=True)]
