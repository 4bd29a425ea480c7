"""A question about one campaign, and its answer: how much of the market is simulated, and how often."""

# pure

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from adloom.forecast.comparison import CampaignComparison, Estimate
from adloom.forecast.market import SimulatedMarket, thin_out
from adloom.forecast.result import MarketOutcome, MarketResult, RunPlan
from adloom.forecast.tally import IMPRESSIONS

DAYS: Final = 7
RUNS: Final = 6
SEED: Final = 1
REQUESTS_MIN: Final = 500  # In seven days; with fewer, chance says more than a change.
TRIED_REQUESTS: Final = 1_500  # To find out how fast this machine is.
RUNS_MIN: Final = 3
MIN_SHARE: Final = 2.0**-20

Simulate = Callable[[SimulatedMarket, SimulatedMarket | None, RunPlan, Callable[[int], bool]], MarketOutcome]


class WhatIfQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A market without and with the change, and how long the answer may take."""

    market: SimulatedMarket
    changed: SimulatedMarket
    campaign_key: int
    seconds: float


class WhatIfResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the campaign has on an average day of the next seven, and by hour."""

    compared: CampaignComparison
    hours_before: Sequence[Estimate]
    hours_after: Sequence[Estimate]
    runs: int
    share: float  # Of all requests that was simulated.
    notes: Sequence[str] = ()  # Beside those of the market.


def answer(question: WhatIfQuestion, simulate: Simulate, clock: Callable[[], float]) -> WhatIfResult:
    """Simulate as much of the market as there is time for; `clock` is monotonic, in seconds."""
    began = clock()
    week = max(1.0, question.market.requests_a_week)
    tried = min(1.0, TRIED_REQUESTS / week)
    simulate(thin_out(question.market, tried), None, RunPlan(days=DAYS, runs=1, seed=SEED), lambda _: False)
    seconds_a_week = (clock() - began) / tried
    share = choose_share(question.seconds - (clock() - began), seconds_a_week)
    plan = RunPlan(days=DAYS, runs=RUNS, seed=SEED)
    ends = began + question.seconds
    market, changed = thin_out(question.market, share), thin_out(question.changed, share)
    outcome = simulate(market, changed, plan, lambda run: run >= RUNS_MIN and clock() > ends)
    result = MarketResult(
        market=market,
        changed_keys=frozenset({question.campaign_key}),
        sentences=(),
        plan=plan,
        outcome=outcome,
    )
    [campaign] = [one for one in market.campaigns if one.key == question.campaign_key]
    keys = [question.campaign_key]
    return WhatIfResult(
        compared=result.compare([campaign]),
        hours_before=result.estimate_hours(IMPRESSIONS, is_after=False, keys=keys),
        hours_after=result.estimate_hours(IMPRESSIONS, is_after=True, keys=keys),
        runs=len(outcome.before),
        share=share,
    )


def choose_share(seconds: float, seconds_a_week: float) -> float:
    """Return how much of the market can be simulated: 1, or a power of a half, so that answers repeat."""
    share = 1.0
    while share * seconds_a_week * 2 * RUNS > seconds and share > MIN_SHARE:
        share /= 2
    return share


def has_traffic(market: SimulatedMarket) -> bool:
    """Whether there were enough requests for an answer."""
    return market.requests_a_week >= REQUESTS_MIN
