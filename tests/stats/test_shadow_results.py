"""What a day's windows would have brought at the multipliers of other strategies."""

from datetime import date, timedelta
from math import inf, isfinite, nan
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.bidding import pacer
from adloom.bidding.pacer import POWER_ERROR, CostRise, PacerState, find_rise
from adloom.bidding.window import BidDecision, BidStrategy
from adloom.budgets.bid_model import BidRow
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.stats.bidding.shadow_results import estimate_windows, find_ranges, sum_up
from tests.support.builders import NOON

PACER, FLEET = BidStrategy.PACER, BidStrategy.FLEET


def a_row(  # noqa: PLR0913 - what a row has
    window: int,
    *,
    spent: float = 0,
    impressions: int = 0,
    clicks: int = 0,
    used: float = 1.0,
    shadow: float = 1.0,
) -> BidRow:
    return BidRow(
        campaign_id=CampaignId(UUID(int=1)),
        day=date(2026, 11, 15),
        at=NOON + timedelta(minutes=15 * window),
        window=window,
        strategy=FLEET,
        multiplier=used,
        wanted=used,
        reason="fleet",
        limit=None,
        note=None,
        spent=Micros(int(spent)),
        impressions=impressions,
        clicks=clicks,
        conversions=0,
        shadows={PACER: BidDecision(multiplier=shadow, reason="pacer")},
        is_first=window == 0,
    )


multipliers = st.floats(0.01, 1.0)
amounts = st.integers(0, 10**9)
windows = st.lists(
    st.tuples(
        amounts, st.integers(0, 10**6), multipliers, st.one_of(multipliers, st.just(nan), st.just(inf))
    ),
    min_size=1,
    max_size=8,
)


def a_day(drawn: list[tuple[int, int, float, float]]) -> list[BidRow]:
    spent = impressions = 0
    rows: list[BidRow] = []
    for number, (added, shown, used, shadow) in enumerate(drawn):
        rows.append(a_row(number, spent=spent, impressions=impressions, used=used, shadow=shadow))
        spent, impressions = spent + added, impressions + shown
    return rows


@given(windows, st.floats(0.1, 6.0), amounts, st.floats(0, 1e9))
def test_no_strategy_would_have_spent_more_than_the_budget(
    drawn: list[tuple[int, int, float, float]], power: float, budget: int, opportunities: float
) -> None:
    rows = a_day(drawn)

    found = estimate_windows(rows, CostRise(power), daily_budget=budget, opportunities=opportunities)
    totals = sum_up(rows, found)

    assert len(found) == len(rows)
    assert found[-1].actual is None, "the window lasts"
    results = totals[PACER].results if PACER in totals else None
    assert results is None or (isfinite(results.spent) and results.spent <= budget * (1 + 1e-9) + 1e-6)
    ranges = find_ranges(rows, CostRise(power), daily_budget=budget, opportunities=opportunities)
    assert set(ranges) == set(totals) - {FLEET}, "what was counted has no range"
    for strategy, found_range in ranges.items():
        columns = (found_range.low, totals[strategy].results, found_range.high)
        for low, value, high in zip(*map(msgspec.structs.astuple, columns), strict=True):
            assert 0 <= low <= value <= high < inf
        assert found_range.high.spent <= budget * (1 + 1e-9) + 1e-6
    if FLEET in totals:
        assert totals[FLEET].windows == len(rows) - 1
        assert totals[FLEET].results.spent == rows[-1].spent - rows[0].spent


@given(windows, st.floats(0.1, 6.0))
def test_a_strategy_that_bids_the_same_would_have_brought_the_same(
    drawn: list[tuple[int, int, float, float]], power: float
) -> None:
    rows = a_day([(spent, shown, used, used) for spent, shown, used, _ in drawn])

    for one in estimate_windows(rows, CostRise(power), daily_budget=None, opportunities=0.0):
        assert one.shadows[PACER] == one.actual


@given(multipliers, multipliers, multipliers, st.floats(0.1, 6.0))
def test_who_bids_more_would_have_had_no_less(used: float, one: float, other: float, power: float) -> None:
    low, high = sorted((one, other))

    def estimate(shadow: float) -> tuple[float, float]:
        rows = [a_row(0, used=used, shadow=shadow), a_row(1, spent=1_000, impressions=100)]
        results = estimate_windows(rows, CostRise(power), daily_budget=None, opportunities=1_000)[0].shadows[
            PACER
        ]
        assert results is not None
        return results.impressions, results.spent

    assert estimate(low) <= estimate(high)
    assert estimate(high)[0] <= 1_000, "there were no more to win"


def test_a_window_without_impressions_does_not_say_what_a_higher_bid_brings() -> None:
    rows = [a_row(0, used=0.5, shadow=0.9), a_row(1, used=0.5, shadow=0.2), a_row(2)]

    higher, lower, lasting = estimate_windows(rows, CostRise(), daily_budget=None, opportunities=0.0)

    assert (higher.shadows[PACER], lasting.shadows[PACER]) == (None, None)
    assert lower.shadows[PACER] == lower.actual
    assert sum_up(rows, [higher, lower, lasting])[PACER].windows == 1


@pytest.mark.parametrize(("spread", "seed"), [(0.6, 3), (1.0, 3), (0.6, 4), (1.0, 5)])
def test_the_estimate_is_near_what_a_market_would_have_brought(spread: float, seed: int) -> None:
    chance = np.random.default_rng(seed)
    state, rows = PacerState(), list[BidRow]()
    spent = impressions = 0
    brought: list[tuple[float, float]] = []
    for window in range(60):
        used, shadow = (0.45, 0.65) if window % 2 else (0.65, 0.45)
        prices = 0.5 * np.exp(spread * chance.standard_normal(2_000))
        rows.append(a_row(window, spent=1_000 * spent, impressions=impressions, used=used, shadow=shadow))
        brought.append((float((prices < shadow).sum()), float(prices[prices < shadow].sum())))
        won = prices[prices < used]
        state = pacer.observe(state, multiplier=used, opportunities=2_000.0, cost=float(won.sum()))
        spent, impressions = spent + float(won.sum()), impressions + len(won)
    rise = find_rise(state, rows[-1].multiplier)

    total = sum_up(rows, estimate_windows(rows, rise, daily_budget=None, opportunities=state.traffic))[PACER]

    assert rise.is_measured
    impressions, spent = (sum(column) for column in zip(*brought[:-1], strict=True))
    assert total.results.impressions == pytest.approx(impressions, rel=0.1)
    assert total.results.spent == pytest.approx(1_000 * spent, rel=0.1)
    found = find_ranges(rows, rise, daily_budget=None, opportunities=state.traffic)[PACER]
    assert found.low.impressions < impressions < found.high.impressions
    assert found.low.spent < 1_000 * spent < found.high.spent
    assert found.high.impressions < 2 * found.low.impressions, "it says something"


def test_bids_that_never_differed_show_nothing_of_how_delivery_rises() -> None:
    state = pacer.observe(PacerState(), multiplier=1.0, opportunities=500.0, cost=3.0)

    rise = find_rise(state, 1.0)
    assert not rise.is_measured
    assert rise.error == pytest.approx(POWER_ERROR, rel=0.1)
    assert find_rise(PacerState(), None) == CostRise()
