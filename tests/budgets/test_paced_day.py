"""A smooth campaign spends its day along the traffic, whatever share of requests it wins and whatever it pays for them."""

from datetime import date

import pytest

from adloom.budgets.campaign.headroom import compute_pacing_allowance
from adloom.schedule.traffic_shape import FLAT
from tests.budgets.paced_day import SHAPED, Market, PacedDays


@pytest.mark.slow
@pytest.mark.parametrize(
    ("market", "furthest"),
    [
        pytest.param(Market(offers=2_000, demand=1.2), 0.02, id="hardly enough"),
        pytest.param(Market(offers=2_000, hours=SHAPED), 0.02, id="twice as much"),
        pytest.param(Market(offers=1_000, demand=50, hours=SHAPED), 0.03, id="fifty times as much"),
        pytest.param(Market(offers=2_000, demand=1.2, win_rate=0.1, price=0.3), 0.02, id="one win in ten"),
        pytest.param(
            Market(offers=500, demand=50, win_rate=0.1, price=0.3), 0.04, id="one win in ten of many"
        ),
        pytest.param(Market(offers=100, demand=3, hours=SHAPED), 0.1, id="a hundred a day"),
        pytest.param(Market(offers=10_000, demand=1.3, click_rate=0.01, hours=SHAPED), 0.1, id="clicks"),
        pytest.param(
            Market(offers=10_000, click_rate=0.01, predicted=0.2), 0.1, id="more clicks than expected"
        ),
        pytest.param(Market(offers=10_000, demand=4, click_rate=0.01, predicted=3), 0.1, id="fewer clicks"),
    ],
)
def test_a_day_with_enough_traffic_is_spent_along_it(market: Market, furthest: float) -> None:
    world, half, spent = PacedDays(market), 0.0, 0.0

    for minute, moment in enumerate(world.run(), start=1):
        assert moment.of_budget <= 1
        if moment.of_traffic <= 0.5:
            half = moment.of_budget
        if 60 <= minute < 1_440:
            ahead = moment.of_budget - moment.of_traffic
            assert abs(ahead) <= furthest, f"{ahead:+.1%} of the budget away from the plan at minute {minute}"
            spent = moment.of_budget

    assert 0.4 <= half <= 0.6
    assert spent >= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("hours", [FLAT, SHAPED])
def test_nothing_is_left_out_of_too_little_traffic(hours: tuple[float, ...]) -> None:
    world = PacedDays(Market(offers=4_000, demand=0.5, win_rate=0.5, price=0.6, hours=hours))

    *_, last, _ = world.run()

    assert last.of_budget >= 0.47


@pytest.mark.slow
def test_a_day_of_25_hours_is_spent_along_its_traffic_under_its_allowance() -> None:
    market = Market(offers=3_000, price=0.6, spread=0.5, hours=SHAPED, processes=3)
    world = PacedDays(market, date(2026, 10, 25), "Europe/Berlin")

    for minute, moment in enumerate(world.run(), start=1):
        assert world.state.spent_window <= compute_pacing_allowance(world.state, world.now)
        assert minute < 60 or abs(moment.of_budget - moment.of_traffic) < 0.02

    assert world.state.spent_window > 0.99 * world.budget


@pytest.mark.slow
def test_the_next_day_is_spent_as_the_first() -> None:
    world = PacedDays(Market(offers=2_000, win_rate=0.5, price=0.6, spread=0.5, hours=SHAPED))

    moments = list(world.run(days=2))

    first, second = moments[:1_439], moments[1_440:-1]
    assert first[-1].of_budget >= 0.97
    assert second[-1].of_budget >= 0.97
    assert all(abs(one.of_budget - one.of_traffic) < 0.02 for one in first[60:] + second[60:])
