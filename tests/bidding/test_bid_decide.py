"""Strategies, guard and fallback as one function of a campaign's state and counters."""

from math import inf, nan
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from adloom.bidding.decide import BELOW_MARKET, WindowRequest, decide, decide_all
from adloom.bidding.ports import FleetAnswer, Nets
from adloom.bidding.shipped import build_nets, load_nets, read_shipped
from adloom.bidding.state import BidState
from adloom.bidding.window import BidDecision, BidRules, BidStrategy, BidWindow

FLEET, DQN, PACER, FIXED = BidStrategy.FLEET, BidStrategy.DQN, BidStrategy.PACER, BidStrategy.FIXED


def a_window(number: int = 0, **fields: Any) -> BidWindow:
    usual: dict[str, Any] = {
        "budget": 3000.0,
        "remaining": 3000.0 - 25.0 * number,
        "target": 90.0,
        "cost": 25.0 * number,
        "value": 0.3 * number,
        "window_cost": 25.0 if number else 0.0,
        "window_value": 0.3 if number else 0.0,
        "opportunities": 5000.0 if number else 0.0,
        "wins": 300.0 if number else 0.0,
        "traffic_share": 1 / 96,
        "traffic_left": 1 - number / 96,
    }
    return BidWindow(window=number, windows=96, **(usual | fields))


class NetThatSays:
    """A net whose answer the test chooses."""

    def __init__(self, log_m: float, beyond: int = 0) -> None:
        self._answer = FleetAnswer(log_m, b"", beyond)

    def run(self, features: list[list[float]], hidden: list[bytes]) -> list[FleetAnswer]:
        assert len(features) == len(hidden)
        return [self._answer] * len(features)

    def choose(self, states: list[list[float]]) -> list[int | None]:
        return [4] * len(states)


def run_day(
    strategy: BidStrategy, nets: Nets, *, windows: int = 8, rules: BidRules | None = None, **fields: Any
) -> list[BidDecision]:
    state, found = BidState(), list[BidDecision]()
    for number in range(windows):
        answer = decide(WindowRequest(strategy, state, a_window(number, **fields), rules or BidRules()), nets)
        state = answer.state
        found.append(answer.decision)
    return found


def test_fixed_is_one() -> None:
    assert [one.multiplier for one in run_day(FIXED, Nets())] == [1.0] * 8


def test_fleet_decides_by_its_net() -> None:
    found = run_day(FLEET, Nets(fleet=NetThatSays(-0.2)))

    assert {one.reason for one in found} == {"fleet"}
    assert found[0].multiplier == pytest.approx(0.8187, abs=1e-4)


def test_the_pacer_bids_less_where_the_pace_keeps_it_from_spending_too_much() -> None:
    """On its plan, but only because three of four opportunities are left out."""
    held_back, free = (
        run_day(PACER, Nets("none", "none"), target=None, window_cost=31.25, let_through=share)[-1]
        for share in (0.25, 1.0)
    )
    assert held_back.multiplier < 0.8 * free.multiplier


def test_the_guard_allows_one_at_the_days_start_and_its_slack_later() -> None:
    found = run_day(FLEET, Nets(fleet=NetThatSays(1.0)))

    assert (found[0].multiplier, found[0].reason) == (1.0, "guard")
    # A window brings .3 * 90 = 27 and costs 25: that is a slack of 2.
    assert found[4].multiplier == pytest.approx(1 + 0.3 * 4 * 2 / 27)
    assert found[4].limit == found[4].multiplier


def test_without_the_guard_the_net_has_its_way() -> None:
    found = run_day(FLEET, Nets(fleet=NetThatSays(1.0)), rules=BidRules(has_guard=False))

    assert {(round(one.multiplier, 4), one.reason, one.limit) for one in found} == {(2.7183, "fleet", None)}


def test_a_tolerance_lets_the_guard_allow_more() -> None:
    strict = run_day(FLEET, Nets(fleet=NetThatSays(1.0)))[5]
    lenient = run_day(FLEET, Nets(fleet=NetThatSays(1.0)), rules=BidRules(tolerance=0.05))[5]

    assert lenient.multiplier > strict.multiplier


def test_dqn_moves_its_running_multiplier_by_a_fifth_and_not_beyond_two() -> None:
    found = run_day(DQN, Nets(dqn=NetThatSays(0.0)), rules=BidRules(has_guard=False))

    assert [round(one.multiplier, 3) for one in found[:5]] == [1.2, 1.44, 1.728, 2.0, 2.0]


FALLBACKS: dict[str, tuple[Nets, dict[str, Any]]] = {
    "weights missing": (Nets(), {}),
    "weights: not those of their hash": (build_nets((read_shipped("fleet") or b"")[:-4] + b"abcd", None), {}),
    "the net answered no number": (Nets(fleet=NetThatSays(nan)), {}),
    "no target": (Nets(fleet=NetThatSays(0.0)), {"target": None}),
    "fewer than 30 opportunities": (Nets(fleet=NetThatSays(0.0)), {"opportunities": 3.0}),
    "counters far from all that the net was trained on": (Nets(fleet=NetThatSays(0.0, beyond=6)), {}),
}


@pytest.mark.parametrize("reason", FALLBACKS)
def test_a_fallback_says_why_and_bids_no_more_than_one(reason: str) -> None:
    nets, fields = FALLBACKS[reason]

    found = run_day(FLEET, nets, **fields)[-1]

    assert found.reason == f"fallback: {reason}"
    assert found.fallback == reason
    assert found.multiplier <= 1.0


def test_predictions_that_are_not_calibrated_are_not_bid_on() -> None:
    found = run_day(FLEET, Nets(fleet=NetThatSays(0.0)), rules=BidRules(is_calibrated=False))

    assert found[0].reason == "fallback: predictions are not calibrated"


def test_a_few_strange_windows_are_no_reason() -> None:
    assert run_day(FLEET, Nets(fleet=NetThatSays(0.0, beyond=6)))[2].reason == "fleet"


def test_a_target_below_the_market_is_said() -> None:
    found = run_day(FLEET, Nets(fleet=NetThatSays(1.0)), windows=12, value=0.0, cost=0.0, window_cost=0.0)

    assert (found[8].note, found[11].note) == (None, BELOW_MARKET)


def test_many_are_decided_as_one_by_one() -> None:
    nets = load_nets()
    requests = [
        WindowRequest(strategy, BidState(), a_window(number, value=0.2 * number))
        for strategy in BidStrategy
        for number in range(4)
    ]

    together = [one.decision for one in decide_all(requests, nets)]
    alone = [decide(one, nets).decision for one in requests]

    assert [one.reason for one in together] == [one.reason for one in alone]
    assert [one.multiplier for one in together] == pytest.approx([one.multiplier for one in alone], rel=1e-5)


def test_window_zero_begins_a_day() -> None:
    nets = load_nets()
    state = BidState()
    for number in range(5):
        state = decide(WindowRequest(FLEET, state, a_window(number)), nets).state

    again = decide(WindowRequest(FLEET, state, a_window(0)), nets)

    assert again.state.traffic == 0.0
    assert again.decision == decide(WindowRequest(FLEET, BidState(), a_window(0)), nets).decision


def test_both_ways_to_count_what_is_left_give_the_same_day() -> None:
    nets, found = load_nets(), list[list[float]]()
    for beyond in (0, 1):
        state, multipliers = BidState(), list[float]()
        for number in range(6):
            window = a_window(number, traffic_left=1 - (number + beyond) / 96)
            answer = decide(WindowRequest(FLEET, state, window, BidRules(has_guard=False)), nets)
            state = answer.state
            multipliers.append(answer.decision.multiplier)
        found.append(multipliers)

    assert found[0] == pytest.approx(found[1])


def test_a_currency_that_is_not_known_changes_little() -> None:
    nets = load_nets()

    def multiplier(scale: float) -> float:
        window = a_window(
            3,
            budget=3e3 * scale,
            remaining=2925 * scale,
            target=90 * scale,
            cost=75 * scale,
            window_cost=25 * scale,
        )
        return decide(
            WindowRequest(FLEET, BidState(), window, BidRules(has_guard=False)), nets
        ).decision.multiplier

    assert multiplier(1e6) == pytest.approx(multiplier(1e-3))
    assert multiplier(1e6) == pytest.approx(multiplier(1.0), rel=0.15)


def test_a_state_is_read_as_it_was_written() -> None:
    nets = load_nets()
    state = decide(WindowRequest(FLEET, BidState(), a_window(0)), nets).state

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=BidState) == state


counters = some.one_of(some.floats(0, 1e15), some.sampled_from([0.0, 1e-12, 1.0]))
answers = some.one_of(some.floats(), some.sampled_from([nan, inf, -inf]))


@given(
    strategy=some.sampled_from(list(BidStrategy)),
    number=some.integers(0, 95),
    amounts=some.lists(counters, min_size=7, max_size=7),
    shares=some.tuples(some.floats(0, 1), some.floats(0, 1)),
    target=some.one_of(some.none(), some.floats(1e-6, 1e12)),
    said=answers,
)
def test_whatever_comes_the_multiplier_is_a_positive_number_and_bounded(  # noqa: PLR0913, PLR0917
    strategy: BidStrategy,
    number: int,
    amounts: list[float],
    shares: tuple[float, float],
    target: float | None,
    said: float,
) -> None:
    remaining, cost, value, window_cost, window_value, opportunities, wins = amounts
    window = BidWindow(
        window=number,
        budget=max(1e-6, remaining + cost),
        remaining=remaining,
        target=target,
        cost=cost,
        value=value,
        window_cost=window_cost,
        window_value=window_value,
        opportunities=opportunities,
        wins=wins,
        traffic_share=shares[0],
        traffic_left=shares[1],
    )
    for nets in (load_nets(), Nets(fleet=NetThatSays(min(said, 100.0) if said == said else said))):  # noqa: PLR0124
        state = decide(WindowRequest(strategy, BidState(), a_window(0)), nets).state
        found = decide(WindowRequest(strategy, state, window), nets).decision

        assert 0 < found.multiplier < inf
        assert found.limit is None or found.multiplier <= found.limit
        if found.fallback or strategy in {PACER, FIXED}:
            assert found.multiplier <= 1.0


def test_a_target_is_below_the_market_only_where_few_opportunities_are_won() -> None:
    window = BidWindow(
        window=30,
        budget=3000.0,
        remaining=2990.0,
        target=90.0,
        cost=10.0,
        value=0.01,
        window_cost=0.0,
        window_value=0.0,
        opportunities=500.0,
        wins=2.0,
        traffic_share=0.01,
        traffic_left=0.7,
        last_multiplier=1.0,
    )
    state = BidState(window=29, traffic=10_000.0)

    def note(wins: float = 2.0, *, is_calibrated: bool = True) -> str | None:
        changed = msgspec.structs.replace(window, wins=wins)
        request = WindowRequest(BidStrategy.FIXED, state, changed, BidRules(is_calibrated=is_calibrated))
        return decide(request, Nets()).decision.note

    assert note() is not None
    assert note(wins=300.0) is None
    assert note(is_calibrated=False) is None
