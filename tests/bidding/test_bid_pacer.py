"""The pacer spends a day's budget evenly over the traffic that comes, at the best constant price."""

from itertools import pairwise
from math import exp, sin

import numpy as np
import numpy.typing as npt
import pytest

from adloom.bidding import pacer
from adloom.bidding.pacer import PacerState

WINDOWS = 96
SHAPE = np.array([1.0 + 0.8 * sin((t - 40) / WINDOWS * 6.283) for t in range(WINDOWS)], dtype=np.float64)
SHARES: npt.NDArray[np.float64] = SHAPE / SHAPE.sum()


def play(
    chance: np.random.Generator, *, middle: float, spread: float, needed: float, state: PacerState
) -> tuple[float, float, PacerState, list[float]]:
    """Return clicks as a share of the hindsight's, spend as a share of the budget, the state and the multipliers."""
    counts: list[int] = chance.poisson(30_000 * SHARES).tolist()
    prices = [np.sort(middle * np.exp(spread * chance.standard_normal(count))) for count in counts]
    every = np.sort(np.concatenate(prices))
    best = int(np.searchsorted(every, needed))
    budget = float(every[:best].sum())
    remaining, clicks, cost, last, used = budget, 0.0, 0.0, None, list[float]()
    state = pacer.begin_day(state)
    for t in range(WINDOWS):
        if last is not None:
            state = pacer.observe(state, multiplier=last, opportunities=float(counts[t - 1]), cost=cost)
        last = pacer.solve(
            state, remaining=remaining, share=SHARES[t], left=float(SHARES[t:].sum()), last=last
        )
        won = int(np.searchsorted(prices[t], last))
        asked = float(prices[t][:won].sum())
        fits = min(1.0, remaining / asked) if asked else 1.0
        cost, clicks, remaining = fits * asked, clicks + fits * won, remaining - fits * asked
        used.append(last)
    return clicks / best, 1 - remaining / budget, state, used


@pytest.mark.parametrize("needed", [0.3, 0.4, 0.6])
@pytest.mark.parametrize(("middle", "spread"), [(0.3, 1.0), (1.0, 0.7)], ids=["wide", "steep"])
def test_it_gets_the_clicks_of_the_hindsight_and_spends_all(
    middle: float, spread: float, needed: float
) -> None:
    chance = np.random.default_rng(1)
    runs = [
        play(chance, middle=middle, spread=spread, needed=needed, state=PacerState())[:2] for _ in range(4)
    ]
    clicks, spent = np.mean(runs, axis=0)

    assert clicks >= 0.99
    assert spent >= 0.999
    assert min(one for _, one in runs) >= 0.995


def test_the_second_day_begins_where_the_first_ended() -> None:
    chance = np.random.default_rng(2)
    _, _, state, _ = play(chance, middle=0.3, spread=1.0, needed=0.5, state=PacerState())

    clicks, spent, _, used = play(chance, middle=0.3, spread=1.0, needed=0.5, state=state)

    assert 0.35 < used[0] < 0.7
    assert clicks >= 0.995
    assert spent >= 0.999


def test_it_never_bids_more_than_the_maximum_and_rises_in_steps_while_nothing_is_won() -> None:
    state, used, last = PacerState(), list[float](), None
    for t in range(10):
        if last is not None:
            state = pacer.observe(state, multiplier=last, opportunities=100.0, cost=0.0)
        last = pacer.solve(state, remaining=100.0, share=0.01, left=1 - 0.01 * t, last=last)
        used.append(last)

    assert used[0] == pacer.FIRST
    assert used[-1] == 1.0
    assert all(after <= before * pacer.RISE_MAX * 1.07 for before, after in pairwise(used))


def test_a_campaign_with_a_target_begins_at_its_bid() -> None:
    first = pacer.solve(PacerState(), remaining=1.0, share=0.01, left=1.0, last=None, has_target=True)

    assert first == 1.0


def test_nothing_is_bid_for_when_nothing_is_left() -> None:
    assert pacer.solve(PacerState(), remaining=0.0, share=0.01, left=0.5, last=1.0) == exp(pacer.LOG_MIN)


def test_old_windows_lose_weight_however_long_a_campaign_runs() -> None:
    state = PacerState()
    for _ in range(2_000):
        state = pacer.observe(state, multiplier=0.5, opportunities=1000.0, cost=500.0)
    for _ in range(200):
        state = pacer.observe(state, multiplier=0.5, opportunities=1000.0, cost=50.0)
    state = pacer.begin_day(state)

    # At .5 an opportunity costs .05 now: what is needed is that times four, which 1 buys at the usual power or less.
    asked = pacer.solve(state, remaining=0.05 * state.day_before, share=0.0, left=1.0, last=0.5)

    assert asked == pytest.approx(0.5, rel=0.05)
