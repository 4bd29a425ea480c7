from math import pi, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.auction.floor_sweep import (
    TICKS_A_CANDIDATE,
    TICKS_OF_USE,
    SweepPhase,
    SweepState,
    TickResult,
    TriedFloor,
    advance,
    choose_candidates,
    choose_floor,
)
from adloom.core.money import Micros

UNIT = 1_000_000
LOWEST = Micros(UNIT // 10)


def prices(*units: float) -> tuple[Micros, ...]:
    return tuple(Micros(round(unit * UNIT)) for unit in units)


def a_sweep(floor: float = 0.5) -> SweepState:
    return SweepState(floor=prices(floor)[0], floor_min=LOWEST)


ticks = st.lists(
    st.builds(
        TickResult,
        bids=st.lists(st.integers(1, 20 * UNIT).map(Micros), max_size=6).map(tuple),
        impressions=st.integers(0, 50),
        revenue=st.integers(0, 10 * UNIT).map(Micros),
    ),
    max_size=120,
)


@given(ticks)
def test_the_floor_is_never_under_the_lowest_and_never_above_all_bids(history: list[TickResult]) -> None:
    state = a_sweep()
    for tick in history:
        state = advance(state, tick)

        assert state.floor >= LOWEST
        if any(bid >= LOWEST for bid in tick.bids):
            assert state.floor <= max(LOWEST, *tick.bids)


def test_without_demand_the_floor_is_as_low_as_it_may_be() -> None:
    assert advance(a_sweep(5), TickResult(bids=())).floor == LOWEST


def test_one_bidder_pays_a_little_less_than_its_bid() -> None:
    assert advance(a_sweep(), TickResult(bids=prices(4))).floor == prices(3.96)[0]


def test_candidates_lie_between_the_lowest_bid_and_the_second_highest() -> None:
    candidates = choose_candidates(prices(10, 8, 5, 2), LOWEST)

    assert candidates[0] == prices(2)[0]
    assert candidates[-1] == prices(7.92)[0]
    assert len(candidates) == 8
    assert list(candidates) == sorted(candidates)


def test_equal_bids_are_tried_from_a_fifth_under_them() -> None:
    candidates = choose_candidates(prices(5, 5, 5), LOWEST)

    assert (candidates[0], candidates[-1]) == (prices(4)[0], prices(4.95)[0])


def test_a_sweep_finds_the_floor_that_earns_most() -> None:
    """Five bidders; half of the visitors would be sold at 4, none above: revenue peaks at the highest that sells."""
    bids = prices(9, 8, 7, 6, 5)
    state = advance(a_sweep(), TickResult(bids=bids))
    assert state.phase is SweepPhase.TRYING

    for _ in range(8 * TICKS_A_CANDIDATE):
        sold = 20 if state.floor <= prices(6.5)[0] else 5
        revenue = Micros(sold * state.floor // 1000)
        state = advance(state, TickResult(bids=bids, impressions=sold, revenue=revenue))

    assert state.phase is SweepPhase.USING
    best = max(one.floor for one in state.tried if one.floor <= prices(6.5)[0])
    assert state.floor == best

    for _ in range(TICKS_OF_USE):
        state = advance(state, TickResult(bids=bids))
    assert state.phase is SweepPhase.TRYING


@pytest.mark.parametrize("start", range(0, 96, 3))
def test_traffic_that_changes_over_the_day_does_not_choose_the_floor(start: int) -> None:
    """Traffic changes by a factor of 3. Two bids a visitor, each as likely as any up to 10: the best floor is 5."""

    def find_share_sold(floor: float) -> float:
        return 1 - (floor / 10) ** 2

    def find_revenue(floor: float) -> float:
        x = floor / 10
        return 10 * (2 * x * x * (1 - x) + (1 - 3 * x * x + 2 * x**3) / 3)

    bids = prices(*range(10, 0, -1))
    state = advance(a_sweep(), TickResult(bids=bids))
    tick = start
    while state.phase is SweepPhase.TRYING:
        floor = state.floor / UNIT
        visitors = 1000 * (1 + 0.5 * sin(2 * pi * tick / 96))
        sold, revenue = round(visitors * find_share_sold(floor)), prices(visitors * find_revenue(floor))[0]
        state = advance(state, TickResult(bids=bids, impressions=sold, revenue=revenue))
        tick += 1

    floors = [one.floor for one in state.tried]
    best = max(range(len(floors)), key=lambda place: find_revenue(floors[place] / UNIT))
    assert abs(floors.index(state.floor) - best) <= 1
    assert {one.ticks for one in state.tried} == {TICKS_A_CANDIDATE}


def test_a_sweep_that_was_stored_in_its_middle_goes_on() -> None:
    """Earlier, each candidate was held for all its ticks before the next."""
    bids = prices(9, 8, 7, 6, 5)
    state = advance(a_sweep(), TickResult(bids=bids))
    tried = (TriedFloor(state.tried[0].floor, 4, 80, prices(1)[0]), *state.tried[1:])
    stored = SweepState(
        floor=tried[1].floor, floor_min=LOWEST, phase=SweepPhase.TRYING, tried=tried, position=1
    )
    ticks = 0
    while stored.phase is SweepPhase.TRYING:
        stored = advance(stored, TickResult(bids=bids, impressions=20, revenue=prices(0.1)[0]))
        ticks += 1

    assert ticks == 7 * TICKS_A_CANDIDATE
    assert {one.ticks for one in stored.tried} == {TICKS_A_CANDIDATE}


def test_a_candidate_that_no_bid_reaches_any_more_is_not_chosen() -> None:
    bids = prices(9, 8, 7, 6, 5)
    state = advance(a_sweep(), TickResult(bids=bids))
    while state.floor != state.tried[0].floor or state.tried[0].ticks < TICKS_A_CANDIDATE - 1:
        state = advance(state, TickResult(bids=bids, impressions=20, revenue=Micros(state.floor)))

    while state.phase is SweepPhase.TRYING:
        state = advance(state, TickResult(bids=prices(6, 5), impressions=20, revenue=Micros(state.floor)))

    assert state.floor == max(one.floor for one in state.tried if one.floor <= prices(6)[0])


def test_what_was_tried_is_kept_while_high_bids_are_away() -> None:
    """A campaign whose budget is spent in the evening comes back at midnight."""
    bids = prices(9, 8, 7, 6, 5)
    state = advance(a_sweep(), TickResult(bids=bids))
    while not state.tried[-1].ticks:
        state = advance(state, TickResult(bids=bids, impressions=20, revenue=Micros(state.floor)))
    assert state.floor == state.tried[-1].floor

    for number in range(12):
        away = prices(6, 5) if number < 4 else bids
        state = advance(state, TickResult(bids=away, impressions=20, revenue=Micros(state.floor)))

    assert sum(one.ticks for one in state.tried) == len(state.tried) + 11, (
        "all but the tick in which they left"
    )
    assert max(one.ticks for one in state.tried) - min(one.ticks for one in state.tried) <= 2


def test_no_floor_is_chosen_above_a_lower_one_that_was_not_tried_enough() -> None:
    tried = [
        TriedFloor(prices(1)[0], 4, 10, prices(10)[0]),
        TriedFloor(prices(2)[0], 4, 2, prices(4)[0]),
        TriedFloor(prices(3)[0], 4, 50, prices(90)[0]),
    ]

    assert choose_floor(tried) == prices(1)[0]


def test_of_floors_that_earn_the_same_the_higher_is_chosen() -> None:
    tried = [TriedFloor(prices(1)[0], 4, 10, prices(10)[0]), TriedFloor(prices(2)[0], 4, 10, prices(9.6)[0])]

    assert choose_floor(tried) == prices(2)[0]


def test_a_category_is_not_strangled_where_nothing_is_earned() -> None:
    tried = [TriedFloor(prices(1)[0], 4, 10), TriedFloor(prices(2)[0], 4, 10)]

    assert choose_floor(tried) == prices(1)[0]
