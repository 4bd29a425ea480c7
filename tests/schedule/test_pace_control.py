import math
import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.schedule.pace_control import (
    OVERPACE_MAX,
    OVERPACE_MIN,
    STOPPED,
    THROTTLE_MAX,
    Pace,
    PaceState,
    apply_ratio,
    compute_base,
    compute_target,
    control_pace,
    estimate_cost,
    roll_pace,
    tune_overpace,
    tune_smoothing,
)
from adloom.schedule.traffic_shape import TrafficShape, build_day_curve

DAY = datetime(2026, 11, 17, tzinfo=UTC)
HOURS = tuple(
    1 + 0.8 * math.sin((hour - 8) / 12 * math.pi) + 0.5 * (hour in {12, 19, 20}) for hour in range(24)
)
COST = 1_000


def test_the_rate_of_many_offers_is_that_of_the_last_half_minute() -> None:
    state = _run(PaceState(), steps=20, at=0.0, requests=50)
    assert state.rate == pytest.approx(10.0)
    assert _run(state, steps=6, at=100.0, requests=100).rate == pytest.approx(16.8, abs=0.1)
    assert _run(state, steps=20, at=100.0, requests=100).rate == pytest.approx(20.0, abs=0.5)


def test_the_rate_of_few_offers_is_that_of_the_last_ten() -> None:
    """One in a hundred is let through, once a minute."""
    state, rates = PaceState(), list[float]()
    for number in range(1_200):
        is_made = number % 12 == 11
        pace = _pace(now=5.0 * number, spent=500 * COST, offers=int(is_made), requests=100 * is_made)
        state = control_pace(state, pace)
        if number > 600:
            rates.append(state.rate)
    assert min(rates) > 1.4
    assert max(rates) < 1.9


def test_what_offers_cost_is_learned_from_what_is_charged() -> None:
    assert estimate_cost(PaceState(), _pace()) == COST
    state = PaceState()
    for number in range(100):
        # A second price: a fifth of the hold.
        state = control_pace(state, _pace(now=5.0 * number, spent=2 * number * COST, offers=10))
    assert estimate_cost(state, _pace()) == pytest.approx(0.2 * COST, rel=0.02)

    another_day = control_pace(state, _pace(now=505.0, spent=2 * COST, offers=10, window=1))
    another_price = _pace(now=505.0, spent=198 * COST, cost=2 * COST, offers=0)

    assert estimate_cost(another_day, _pace()) == pytest.approx(0.2 * COST, rel=0.02)
    assert estimate_cost(control_pace(state, another_price), another_price) == 2 * COST


def test_a_click_costs_more_than_its_offer_holds() -> None:
    state, pace = PaceState(), _pace()
    for number in range(400):
        # An offer holds 3 % of a click, and one in a hundred is clicked.
        pace = _pace(
            now=5.0 * number, spent=100 * COST * (number // 10), price=100 * COST, cost=3 * COST, offers=10
        )
        state = control_pace(state, pace)
    assert estimate_cost(state, pace) == pytest.approx(COST, rel=0.1)


def test_the_base_is_what_the_plan_leaves_out() -> None:
    # 20 a day at a CPM of 5, two requests a second.
    budget, cost, day = 20_000_000, 5_000, 86_400.0
    target = compute_target(daily_budget=budget, cost=cost, day_seconds=day)
    base = compute_base(daily_budget=budget, cost=cost, day_seconds=day, rate=2.0)
    assert target == pytest.approx(0.0463, abs=1e-4)
    assert base == pytest.approx(0.97685, abs=1e-5)


def test_after_few_requests_only_a_campaign_ahead_of_its_plan_leaves_offers_out() -> None:
    seen = {"offers": 1, "requests": 1}
    begun = control_pace(PaceState(), _pace(now=0.0, **seen))

    behind = _run(begun, steps=5, at=60.0, **seen)
    ahead = _run(begun, steps=5, at=60.0, spent=501 * COST, **seen)

    assert behind.throttle == 0
    assert ahead.throttle > 0.5


def test_the_controller_brakes_more_than_it_speeds_up() -> None:
    state, found = PaceState(), list[tuple[float, float, float]]()
    for ratio in (1, 1.5, 1.5, 0.8, 0.5):
        state = apply_ratio(state, ratio, base=0.5, seconds=1.0)
        found.append((state.ratio, state.error_sum, state.throttle))
    assert [one[0] for one in found] == pytest.approx([1, 1.15, 1.255, 1.1185, 0.9329], abs=1e-4)
    assert [one[1] for one in found] == pytest.approx([0, -0.15, -0.40425, -0.52073, -0.45108], abs=1e-4)
    assert [one[2] for one in found] == pytest.approx([0.5, 0.74, 0.99, 0.9309, 0.6018], abs=1e-4)


def test_tuning() -> None:
    assert tune_overpace(2.0, 1.06) == pytest.approx(2.3)
    assert tune_overpace(4.9, 1.06) == OVERPACE_MAX
    assert tune_overpace(2.0, 1.0) == pytest.approx(1.9)
    assert tune_overpace(1.5, 1.0) == OVERPACE_MIN
    assert tune_overpace(2.0, 0.5) == 2.0
    assert tune_smoothing(0.3, 0.1) == pytest.approx(0.3 / 1.3)
    assert tune_smoothing(0.3, 0.01) == pytest.approx(0.315)
    assert tune_smoothing(0.3, 0.06) == 0.3


def test_a_day_spent_too_early_brakes_the_next_one() -> None:
    half = control_pace(PaceState(), _pace(spent=1_000 * COST))
    assert roll_pace(half).overpace == pytest.approx(3.0)
    late = control_pace(PaceState(), _pace(spent=1_000 * COST, seconds_left=2_000.0))
    assert roll_pace(late).overpace == pytest.approx(1.9)
    assert roll_pace(PaceState()).overpace == pytest.approx(1.9)
    assert roll_pace(half).throttle == 0


@pytest.mark.parametrize(
    "more", [{"daily_budget": 3_000 * COST}, {"window": 1, "spent": 0}], ids=["raised", "another window"]
)
def test_a_budget_of_which_there_is_more_again_was_not_spent_too_early(more: dict[str, float]) -> None:
    spent = control_pace(PaceState(), _pace(spent=1_000 * COST))

    state = control_pace(spent, _pace(now=5.0, **{"spent": 1_000 * COST, **more}))

    assert roll_pace(state).overpace == pytest.approx(1.9)


def _pace(**changes: float) -> Pace:
    fields = {
        "now": 1_000.0,
        "daily_budget": 1_000 * COST,
        "spent": 0,
        "cost": COST,
        "price": COST,
        "window": 0,
        "share": 0.5,
        "volume": 1.0,
        "offers": 20,
        "requests": 20,
        "seconds_left": 43_200.0,
    }
    return Pace(**{**fields, **changes})  # pyright: ignore[reportArgumentType]  numbers all


def _run(state: PaceState, *, steps: int, at: float, **changes: float) -> PaceState:
    for number in range(steps):
        state = control_pace(state, _pace(now=at + 5 * number, **changes))
    return state


def test_nothing_is_left_out_before_the_traffic_is_known() -> None:
    assert control_pace(PaceState(), _pace(spent=900 * COST)).throttle == 0


def test_a_pause_and_another_budget_begin_anew() -> None:
    state = _run(PaceState(), steps=40, at=0.0, spent=900 * COST)
    assert state.error_sum == -1
    assert _run(state, steps=1, at=1_200.0, spent=900 * COST, offers=0).error_sum == 0
    again = _run(state, steps=1, at=200.0, spent=900 * COST, daily_budget=2_000 * COST)
    assert abs(again.error_sum) < 0.5
    assert again.rate == pytest.approx(state.rate, rel=0.01)


def test_a_state_of_an_older_version_goes_on() -> None:
    known = {"rate": 2.0, "rates": 9, "rate_since": 990.0, "requests_all": 900, "at": 995.0, "throttle": 0.5}
    state = msgspec.convert({**known, "plan": (1_000 * COST, COST)}, PaceState)

    state = _run(state, steps=20, at=1_000.0, spent=500 * COST, requests=5)

    assert state.rate == pytest.approx(1.0)
    assert 0 <= state.throttle <= THROTTLE_MAX


def test_a_long_gap_is_a_pause_only_if_far_fewer_offers_were_made_in_it() -> None:
    state = _run(PaceState(), steps=40, at=0.0, requests=50)

    seldom = control_pace(state, _pace(now=795.0, offers=6_000, requests=6_000))
    pause = control_pace(state, _pace(now=795.0, offers=5, requests=5))

    assert seldom.rate == pytest.approx(10.0)
    assert (seldom.since, pause.since) == (0.0, 795.0)
    assert pause.throttle == 0


def test_while_all_is_stopped_the_rate_is_what_it_was() -> None:
    state = _run(PaceState(), steps=40, at=0.0, requests=50)
    stopped = _run(state, steps=1, at=200.0, spent=1_000 * COST, requests=50)
    stopped = _run(stopped, steps=4, at=205.0, spent=1_000 * COST, offers=0, requests=0)
    assert _run(stopped, steps=1, at=225.0, requests=50).rate == pytest.approx(10.0)


def test_the_end_of_budget_or_day_stops_all() -> None:
    assert control_pace(PaceState(), _pace(spent=1_000 * COST)).throttle == STOPPED
    assert control_pace(PaceState(), _pace(seconds_left=0.0)).throttle == STOPPED


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.integers(0, 10**6), st.floats(0, 1), st.integers(0, 10**5)),
        max_size=60,
    ),
    st.floats(60, 86_400),
)
def test_a_throttle_is_a_share_whatever_happens(
    steps: list[tuple[float, int, float, int]], day_seconds: float
) -> None:
    state, now = PaceState(), 0.0
    for seconds, spent, share, requests in steps:
        now += seconds
        pace = _pace(now=now, spent=spent, share=share, requests=requests, day_seconds=day_seconds)
        state = control_pace(state, pace)
        assert 0 <= state.throttle <= THROTTLE_MAX or state.throttle == STOPPED
        assert OVERPACE_MIN <= state.overpace <= OVERPACE_MAX


@pytest.mark.parametrize("day_seconds", [86_400, 600])
@pytest.mark.parametrize(("rate", "offers"), [(2.0, 20_000), (0.5, 5_000), (0.05, 500)])
def test_a_day_is_spent_along_its_shape(rate: float, offers: int, day_seconds: int) -> None:
    """Nothing is left at the end, and within the day spend stays near the plan."""
    scale = 86_400 / day_seconds
    curve = build_day_curve(TrafficShape(HOURS, HOURS), DAY, DAY + timedelta(days=1))
    chance = random.Random(7)  # noqa: S311 - a simulation
    state, spent, budget, worst, weighed = PaceState(), 0, offers * COST, 0.0, 0.0
    step = 5 / scale
    for number in range(1, int(day_seconds / step) + 1):
        moment = DAY + timedelta(seconds=number * step * scale)
        expected = rate * 5 * curve.get_volume(moment)
        requests = max(0, round(chance.gauss(expected, math.sqrt(expected))))
        passed = sum(chance.random() >= state.throttle for _ in range(requests))
        spent = min(budget, spent + passed * COST)
        weighed += passed / (1 - state.throttle) if passed else 0.0
        made, weighed = int(weighed), weighed % 1
        state = control_pace(
            state,
            Pace(
                now=number * step,
                daily_budget=budget,
                window=1,
                spent=spent,
                cost=COST,
                price=COST,
                share=curve.compute_share(moment),
                volume=curve.get_volume(moment),
                offers=passed,
                requests=made,
                day_seconds=float(day_seconds),
                seconds_left=day_seconds - number * step,
            ),
        )
        if number * step > day_seconds / 24:
            worst = max(worst, abs(spent / budget - curve.compute_share(moment)))
    assert spent >= 0.999 * budget
    assert worst < 0.03
