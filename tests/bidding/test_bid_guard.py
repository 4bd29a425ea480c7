"""The guard's formula, and that it needs no trust in any net."""

from hypothesis import given
from hypothesis import strategies as some

from adloom.bidding import guard

money = some.floats(0, 1e9)


def test_more_than_one_is_paid_out_of_what_the_day_has_saved() -> None:
    slack = guard.compute_slack(100.0, 5.0, 400.0, tolerance=0.0, budget=3000.0)

    assert slack == 100.0
    assert guard.compute_limit(slack, 60.0) == 1.0 + 0.3 * 100.0 / 60.0


def test_the_tolerance_is_a_share_of_the_budget() -> None:
    assert guard.compute_slack(100.0, 5.0, 900.0, tolerance=0.1, budget=3000.0) == 300.0


def test_a_window_is_expected_to_bring_the_days_rate_and_half_the_pace_at_least() -> None:
    rate = guard.expect_window(target=100.0, value=10.0, budget=1000.0, share=0.01, passed=0.5)
    floor = guard.expect_window(target=100.0, value=0.1, budget=1000.0, share=0.01, passed=0.5)

    assert rate == 20.0
    assert floor == 5.0


@given(money, money, some.floats(1e-3, 1e9), some.floats(1e-4, 1), some.floats(0, 1))
def test_without_slack_the_limit_is_one(
    cost: float, extra: float, budget: float, share: float, passed: float
) -> None:
    slack = guard.compute_slack(1.0, cost, cost + extra, tolerance=0.0, budget=budget)
    expected = guard.expect_window(target=1.0, value=cost, budget=budget, share=share, passed=passed)

    assert guard.compute_limit(slack, expected) == 1.0
