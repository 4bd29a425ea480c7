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
