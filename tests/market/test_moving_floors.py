"""Floors that move: at auctions by category, with their evidence, through ticks and restarts."""

from typing import Any

from adloom.auction.floor_sweep import SweepPhase, SweepState
from adloom.core.money import Micros
from adloom.market.auctioneer.floors import FloorRow, with_floors
from adloom.market.auctioneer.state import FloorTick, LoadFloors, PagesClassified
from tests.market.builders import UNIT, a_demand, a_site
from tests.market.test_auctioneer import HOUSE, URL, Market

LOWEST = Micros(UNIT // 10)
TICKS = 100


def a_sweeping_market(*bids: float, **site: Any) -> Market:
    market = Market(is_sweeping=True, floor_min=LOWEST, **site)
    for number, cpm in enumerate(bids, start=1):
        market.campaigns.put(a_demand(number, "483", cpm=cpm))
    market.classify("539")
    market.run(2)
    return market


def recorded(market: Market) -> dict[str, SweepState]:
    return {row.category: row.state for row in market.rows if isinstance(row, FloorRow)}


def test_each_category_has_a_floor_of_its_own_between_the_least_and_its_bids() -> None:
    market = a_sweeping_market(2, 4, 6)

    market.step(HOUSE, FloorTick(1, {}))
    market.run(2)

    floors = recorded(market)
    assert set(floors) == {"483", "539"}
    assert (floors["483"].phase, floors["539"].phase) == (SweepPhase.TRYING, SweepPhase.WAITING)
    assert floors["539"].floor == LOWEST, "nobody bids on it"
    assert {one.floor for one in market.candidates()} == {floors["483"].floor}


def test_bids_that_no_shortlist_has_are_not_kept_but_their_prices_move_the_floor() -> None:
    market = a_sweeping_market(*range(1, 11))

    market.step(HOUSE, FloorTick(1, {}))
    market.run(2)

    held = market.states[HOUSE].bids["483"]
    assert {len({bid.campaign_id for bid in slot.bids}) for slot in held.slots} == {3}
    tried = recorded(market)["483"].tried
    assert UNIT * 2 == tried[0].floor < tried[-1].floor == Micros(UNIT * 891 // 100), "of all within reach"


def test_a_floor_is_under_what_is_bid_now_where_a_strategy_lowers_the_bid() -> None:
    market = a_sweeping_market()
    market.campaigns.put(a_demand(1, "483", cpm=10, bid_now=Micros(3 * UNIT)))
    market.run(2)

    for tick in (1, 2):
        market.step(HOUSE, FloorTick(tick, {}))
        market.run(2)

    assert recorded(market)["483"].floor == Micros(UNIT * 297 // 100)
    assert market.banners() == [1]


def test_a_floor_that_moves_removes_bids_and_a_lower_one_brings_them_back() -> None:
    """The sweep sees bids under its own floor, so what it has removed comes back when it does not pay."""
    market = a_sweeping_market(2, 4, 6)
    seen: set[tuple[int, ...]] = set()
    state = SweepState(floor=LOWEST, floor_min=LOWEST)
    for tick in range(1, TICKS):
        floor = market.states[HOUSE].terms.find_floor("483")
        # One impression in all that are asked for: revenue is highest where the floor is just under the second bid.
        market.step(HOUSE, FloorTick(tick, {"483": (10, Micros(10 * floor))}))
        market.run(2)
        state = recorded(market)["483"]
        assert LOWEST <= state.floor <= 6 * UNIT
        assert all(one.cpm >= state.floor for one in market.candidates())
        seen.add(tuple(sorted(market.banners())))
        if state.phase is SweepPhase.USING:
            break

    assert {(1, 2, 3), (2, 3)} <= seen
    assert state.phase is SweepPhase.USING
    assert state.floor == max(one.floor for one in state.tried)
    assert sum(one.impressions for one in state.tried) == sum(one.ticks for one in state.tried) * 10


def test_a_tick_that_comes_twice_or_late_counts_once() -> None:
    market = a_sweeping_market(2, 4, 6)
    for tick in (5, 6, 6, 5, 4):
        market.step(HOUSE, FloorTick(tick, {"483": (3, Micros(9_000))}))

    state = recorded(market)["483"]

    assert state.tried[0].ticks == 1
    assert (state.tried[0].impressions, state.tried[0].revenue) == (3, 9_000)


def test_a_clock_that_was_far_ahead_stops_no_floor() -> None:
    market = a_sweeping_market(2, 4, 6)
    for tick in (100_000, 5, 6, 5):
        market.step(HOUSE, FloorTick(tick, {"483": (3, Micros(9_000))}))

    assert sum(one.ticks for one in recorded(market)["483"].tried) == 2


def test_a_floor_and_its_evidence_stay_while_there_are_no_pages() -> None:
    market = a_sweeping_market(2, 4, 6)
    market.step(HOUSE, FloorTick(1, {}))
    market.step(HOUSE, FloorTick(2, {"483": (3, Micros(9_000))}))

    market.step(HOUSE, PagesClassified((), gone=(URL,)))
    market.step(HOUSE, FloorTick(3, {}))

    state = recorded(market)["483"]
    assert state.phase is SweepPhase.TRYING
    assert (state.tried[0].impressions, state.tried[0].revenue) == (3, 9_000)


def test_floors_and_their_evidence_survive_a_restart() -> None:
    market = a_sweeping_market(2, 4, 6)
    for tick in (1, 2, 3):
        market.step(HOUSE, FloorTick(tick, {"483": (3, Micros(9_000))}))
    before = recorded(market)

    market.restart(HOUSE)
    market.step(HOUSE, LoadFloors(before, 3))
    market.configure(is_sweeping=True, floor_min=LOWEST)
    market.classify("539")
    market.run(2)

    assert market.states[HOUSE].terms.category_floors["483"] == before["483"].floor
    assert {one.floor for one in market.candidates()} == {before["483"].floor}
    market.step(HOUSE, FloorTick(4, {"483": (3, Micros(9_000))}))
    assert sum(one.ticks for one in before["483"].tried) == 2, "the first tick has begun it"
    assert sum(one.ticks for one in recorded(market)["483"].tried) == 3


def test_a_fixed_floor_takes_no_notice_of_ticks_and_a_higher_least_floor_counts_at_once() -> None:
    market = Market()
    market.campaigns.put(a_demand(1, "483", cpm=5))
    market.classify("483")
    market.run(2)
    market.step(HOUSE, FloorTick(1, {}))

    assert recorded(market) == {}
    sweep = {"483": SweepState(floor=LOWEST, floor_min=LOWEST)}
    raised = a_site(is_sweeping=True, floor_min=Micros(UNIT)).terms
    assert with_floors(raised, sweep).find_floor("483") == UNIT
    assert with_floors(a_site().terms, sweep).category_floors == {}
