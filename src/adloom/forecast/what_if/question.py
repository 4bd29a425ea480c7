"""A question about one campaign, and its answer: how much of the market is simulated, and how often."""

# pure

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from adloom.core.money import Micros
from adloom.forecast.market import SimulatedMarket, thin_out
from adloom.forecast.result import (
    IMPRESSIONS,
    CampaignComparison,
    Estimate,
    MarketOutcome,
    MarketResult,
    RunPlan,
)

DAYS: Final = 7
FEWER_DAYS: Final = (DAYS, 3, 1)  # Where there is no time for more of each.
RUNS: Final = 6
SEED: Final = 1
REQUESTS_MIN: Final = 500  # In seven days; with fewer, chance says more than a change.
TRIED_REQUESTS: Final = 1_500  # To find out how fast this machine is.
TRIED_FEWER: Final = 10  # So many times fewer in a second try: what is left does not depend on requests.
RUNS_MIN: Final = 3
MIN_SHARE: Final = 2.0**-20
# Budgets are thinned out with the requests. One that pays for fewer offers a day than this is not spent to the end: with
# 3 in place of 11,000 a campaign seemed to spend a quarter less than it does, with 10 a tenth.
OFFERS_A_BUDGET: Final = 50
DUST: Final = 0.1  # Of that: then nothing can be said.
TOO_FEW_OFFERS: Final = (
    "Of the part that could be simulated, the daily budget pays for a few impressions only: the campaign may spend and"
    " deliver more than this says."
)

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
    days: int = DAYS
    is_dust: bool = False  # The budget paid for so few offers that the result says nothing.
    notes: Sequence[str] = ()  # Beside those of the market.


def answer(question: WhatIfQuestion, simulate: Simulate, clock: Callable[[], float]) -> WhatIfResult:
    """Simulate as much of the market as there is time for; `clock` is monotonic, in seconds."""
    began = clock()
    week = max(1.0, question.market.requests_a_week)
    speed = _try_out(question.market, min(1.0, TRIED_REQUESTS / week), simulate, clock)
    least = find_least_share(question)
    share, days = choose_part(question.seconds - (clock() - began), speed, least)
    plan = RunPlan(days=days, runs=RUNS, seed=SEED)
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
        days=days,
        is_dust=share < DUST * least,
        notes=(TOO_FEW_OFFERS,) if share < least else (),
    )


def find_least_share(question: WhatIfQuestion) -> float:
    """Return the least share in which every daily budget of the campaign, and of its advertiser, is more than dust."""
    least = 0.0
    for market in (question.market, question.changed):
        [campaign] = [one for one in market.campaigns if one.key == question.campaign_key]
        rows = [*market.assignments, *(one.assignment for one in market.creatives)]
        cost = max(
            (row.price.compute_hold("") for row in rows if row.campaign_key == campaign.key),
            default=Micros(0),
        )
        of_payer = [
            one.daily_budget
            for one in market.advertisers
            if one.advertiser_id == campaign.config.advertiser_id
        ]
        for budget in (campaign.config.daily_budget, *of_payer):
            if budget:
                least = max(least, OFFERS_A_BUDGET * cost / budget)
    return min(1.0, least)


class Speed(msgspec.Struct, frozen=True):
    """What a run takes in seconds: without any request, and for all requests of a week beside that."""

    fixed: float
    a_week: float


def _try_out(market: SimulatedMarket, share: float, simulate: Simulate, clock: Callable[[], float]) -> Speed:
    """Find out how fast this machine is, by two runs with few requests; a short one before loads what is needed."""
    seconds: list[float] = []
    for part, days in ((share / TRIED_FEWER, 1), (share, DAYS), (share / TRIED_FEWER, DAYS)):
        began = clock()
        simulate(thin_out(market, part), None, RunPlan(days=days, runs=1, seed=SEED), lambda _: False)
        seconds.append(clock() - began)
    _, more, fewer = seconds
    a_week = max(0.0, more - fewer) / (share - share / TRIED_FEWER)
    return Speed(max(0.0, fewer - a_week * share / TRIED_FEWER), a_week)


def choose_part(seconds: float, speed: Speed, least: float) -> tuple[float, int]:
    """Return the share of the market, and of how many days: fewer, if of seven there is no time for the least share."""
    share, days = 0.0, DAYS
    for days in FEWER_DAYS:
        part = days / DAYS
        share = choose_share(seconds, part * speed.a_week, part * speed.fixed, least=least)
        if share >= least:
            break
    return share, days


def choose_share(seconds: float, seconds_a_week: float, fixed: float = 0.0, *, least: float = 0.0) -> float:
    """Return how much of the market can be simulated: 1, or a power of a half, so that answers repeat.

    Where a run without requests takes `fixed` seconds, fewer requests do not help for long: fewer runs do. So they do
    where the share would be less than `least`.
    """
    runs = RUNS if 2 * RUNS * fixed <= seconds / 2 else RUNS_MIN
    share = _find_share(seconds, seconds_a_week, fixed, runs)
    return share if share >= least else _find_share(seconds, seconds_a_week, fixed, RUNS_MIN)


def _find_share(seconds: float, seconds_a_week: float, fixed: float, runs: int) -> float:
    share = 1.0
    while share > MIN_SHARE and share * seconds_a_week > fixed / 2:
        if 2 * runs * (fixed + share * seconds_a_week) <= seconds:
            break
        share /= 2
    return share


def has_traffic(market: SimulatedMarket) -> bool:
    """Whether there were enough requests for an answer."""
    return market.requests_a_week >= REQUESTS_MIN
