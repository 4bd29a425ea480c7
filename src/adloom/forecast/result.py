"""The result of a simulated market, as tables and plots need it."""

# pure

from collections.abc import Sequence
from typing import Final

import msgspec

from adloom.core.money import IMPRESSIONS_PER_CPM, MICROS_PER_UNIT
from adloom.forecast.comparison import CampaignComparison, Estimate, compare_campaigns, estimate
from adloom.forecast.market import NamedCampaign, SimulatedMarket
from adloom.forecast.tally import IMPRESSIONS, SPEND, MarketTally

SHOWN_MAX: Final = 20
HOURS_A_DAY: Final = 24


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long a market is simulated."""

    days: int = 1
    runs: int = 5
    seed: int = 1

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
