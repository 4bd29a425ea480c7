"""The status of a budget: figures that add up, at any time."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adloom.budgets.messages import ConfigureCampaign, OpenWindow
from adloom.budgets.status import build_advertiser_status, build_campaign_status, compute_pace, project_spend
from adloom.core.money import Micros
from adloom.schedule.budget_day import build_budget_day
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.builders import (
    ADVERTISER_ID,
    NOON,
    UNIT,
    AdvertiserBench,
    CampaignBench,
    a_campaign,
    an_advertiser,
)
from tests.support.for_each import for_each

TODAY = NOON.date()
TOMORROW = TODAY + timedelta(days=1)
MIDNIGHT = datetime(2026, 11, 16, tzinfo=UTC)


def units(amount: float) -> Micros:
    return Micros(int(amount * UNIT))


def a_busy_campaign(
    config: ConfigureCampaign, *, charged: int = 2, held: int = 3, leased: int = 4, now: datetime = NOON
) -> CampaignBench:
    """A campaign with one lease: a part is charged, a part is held, a part is not offered yet."""
    bench = CampaignBench(config, now)
    wanted = 2 * (
        charged + held + leased
    )  # A process gets half of what is left, so it asks for twice as much.
    answer = bench.answered(want=units(wanted))
    given = ((bench.second, units(charged + held)),)
    bench.answered(report=2, lease=answer.lease, given=given, want=units(leased))
    for _ in range(charged):
        bench.take(bench.offered(answer.lease))
    return bench


def test_a_campaign_without_a_state_has_its_whole_budget() -> None:
    status = build_campaign_status(None, a_campaign(total_budget=units(500)), now=NOON)

    assert status.day == TODAY
    assert (status.daily_budget, status.total_budget) == (units(100), units(500))
    assert (status.spent_today, status.spent_total, status.held, status.leased) == (0, 0, 0, 0)
    assert (status.remaining_today, status.pace, status.projected) == (units(100), None, 0)


def test_spent_held_and_remaining_add_up_to_the_budget() -> None:
    bench = a_busy_campaign(a_campaign())

    status = build_campaign_status(bench.state, a_campaign(), now=bench.now)

    assert (status.spent_today, status.spent_total) == (units(2), units(2))
    assert (status.held, status.leased, status.remaining_today) == (units(3), units(4), units(95))


def test_a_charge_ahead_of_its_report_was_leased_and_is_not_held() -> None:
    bench = CampaignBench()
    answer = bench.answered(want=units(5))
    bench.take(bench.offered(answer.lease))

    status = build_campaign_status(bench.state, a_campaign(), now=bench.now)

    assert (status.spent_today, status.held, status.leased) == (units(1), 0, units(4))
    assert status.remaining_today == units(99)


@pytest.mark.parametrize(
    ("budgets", "remaining"),
    [
        ({"daily_budget": units(100), "total_budget": None}, units(95)),
        ({"daily_budget": None, "total_budget": units(50)}, units(45)),
        ({"daily_budget": units(100), "total_budget": units(50)}, units(45)),
        ({"daily_budget": units(50), "total_budget": units(100)}, units(45)),
        ({"daily_budget": units(4), "total_budget": None}, 0),  # Lowered below what is spent and held.
        ({"daily_budget": None, "total_budget": None}, None),
    ],
)
def test_the_budget_with_the_smaller_rest_decides_what_remains(
    budgets: dict[str, Any], remaining: int | None
) -> None:
    bench = a_busy_campaign(a_campaign())

    status = build_campaign_status(bench.state, a_campaign(version=2, **budgets), now=bench.now)

    assert status.remaining_today == remaining


def test_the_status_after_midnight_is_of_the_new_day_without_a_message() -> None:
    bench = a_busy_campaign(a_campaign(), now=MIDNIGHT - timedelta(seconds=10))

    status = build_campaign_status(bench.state, a_campaign(), now=MIDNIGHT)

    assert (status.day, status.spent_today, status.spent_total) == (TOMORROW, 0, units(2))
    # Offers made before midnight belong to yesterday, and may still be charged to it.
    assert (status.held, status.remaining_today) == (units(3), units(100))


def test_unconfirmed_holds_expire_in_the_status_without_a_message() -> None:
    bench = a_busy_campaign(a_campaign(hold_seconds=300))

    before, after = (
        build_campaign_status(bench.state, a_campaign(hold_seconds=0), now=NOON + timedelta(seconds=seconds))
        for seconds in (299, 301)
    )

    assert (before.held, before.remaining_today) == (units(3), units(95))
    assert (after.held, after.remaining_today) == (0, units(98))


def test_a_new_window_has_a_whole_daily_budget_and_keeps_the_spend_of_the_day() -> None:
    bench = a_busy_campaign(a_campaign(), held=0, leased=0)
    bench.take(OpenWindow(reason="a test"))

    status = build_campaign_status(bench.state, a_campaign(), now=bench.now)

    assert (status.spent_today, status.remaining_today) == (units(2), units(100))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # At noon 0.6 of the day's budget may be spent, a fifth ahead of the clock.
        ({"pacing": PacingStrategy.SMOOTH}, 30 / 60),
        ({"pacing": PacingStrategy.SMOOTH, "daily_budget": units(50)}, 30 / 30),
        ({"pacing": PacingStrategy.SMOOTH, "daily_budget": units(25)}, 30 / 15),
        ({"pacing": PacingStrategy.SMOOTH, "daily_budget": Micros(0)}, None),
        ({"pacing": PacingStrategy.SMOOTH, "daily_budget": None}, None),
        ({"pacing": PacingStrategy.ACCELERATED}, None),
    ],
)
def test_the_pace_is_the_spend_divided_by_the_allowance_of_now(
    fields: dict[str, Any], expected: float | None
) -> None:
    bench = a_busy_campaign(a_campaign(), charged=30, held=0, leased=0)

    status = build_campaign_status(bench.state, a_campaign(version=2, **fields), now=NOON)

    assert status.pace == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("spent", "allowance", "expected"), [(0, 5, 0.0), (5, 5, 1.0), (6, 5, 1.2), (5, 0, None)]
)
def test_a_pace_is_the_spend_divided_by_the_allowance(
    spent: int, allowance: int, expected: float | None
) -> None:
    assert compute_pace(Micros(spent), allowance) == expected


@for_each(
    ("spent", "hours", "left", "expected"),
    [
        (0, 12, None, 0),
        (100, 12, None, 200),
        (100, 6, None, 400),
        (100, 12, 1_000, 200),
        (100, 12, 50, 150),  # The budget ends it.
        (100, 12, 0, 100),  # Nothing is left, or the campaign does not run.
        (100, 24, 1_000, 100),  # The day is over.
        (100, 1, None, 2_400),
        (100, 0.5, None, 100 + 2_350),  # In the first hour the rate is that of a whole hour.
        (100, 0, None, 100 + 2_400),
    ],
)
def test_spend_is_projected_at_the_rate_of_the_day_so_far(
    spent: int, hours: float, left: int | None, expected: int
) -> None:
    day = build_budget_day(TODAY, "UTC")
    now = day.starts_at + timedelta(hours=hours)

    assert project_spend(Micros(spent), day, now=now, left=None if left is None else Micros(left)) == expected


def test_spend_is_projected_to_the_end_of_a_day_of_25_hours() -> None:
    day = build_budget_day(date(2026, 10, 25), "Europe/Berlin")

    assert project_spend(Micros(100), day, now=day.starts_at + timedelta(hours=5), left=None) == 500


@pytest.mark.parametrize(("is_running", "expected"), [(True, units(4)), (False, units(2))])
def test_a_campaign_that_does_not_run_is_projected_to_spend_no_more(is_running: bool, expected: int) -> None:  # noqa: FBT001 - a column of the table
    bench = a_busy_campaign(a_campaign(), held=0, leased=0)

    status = build_campaign_status(bench.state, a_campaign(version=2, is_running=is_running), now=NOON)

    assert status.projected == expected


def test_the_spend_and_holds_of_an_advertiser_are_the_sums_of_its_campaigns() -> None:
    config = a_campaign(advertiser_id=ADVERTISER_ID)
    one, other = a_busy_campaign(config), a_busy_campaign(config, charged=5, held=1)

    spend = build_advertiser_status(None, [one.state, other.state], an_advertiser(), now=NOON)

    assert (spend.day, spend.daily_budget) == (TODAY, units(100))
    assert (spend.spent, spend.held, spend.remaining) == (units(7), units(4), units(89))


def test_an_advertiser_without_campaigns_and_budget_has_an_empty_status() -> None:
    spend = build_advertiser_status(None, [], an_advertiser(daily_budget=None), now=NOON)

    assert (spend.day, spend.spent, spend.held, spend.remaining) == (TODAY, 0, 0, None)


def test_an_advertisers_day_is_in_its_zone_and_never_goes_back() -> None:
    late = datetime(2026, 11, 15, 23, tzinfo=UTC)
    bench = AdvertiserBench(an_advertiser(timezone="Europe/Berlin"), now=late)

    ahead = build_advertiser_status(bench.state, [], an_advertiser(timezone="Europe/Berlin"), now=late)
    moved = build_advertiser_status(bench.state, [], an_advertiser(timezone="America/New_York"), now=late)

    assert (ahead.day, moved.day) == (TOMORROW, TOMORROW)
    assert (
        build_advertiser_status(None, [], an_advertiser(timezone="America/New_York"), now=late).day == TODAY
    )


def test_holds_of_yesterday_do_not_reduce_an_advertisers_budget_of_today() -> None:
    bench = a_busy_campaign(a_campaign(advertiser_id=ADVERTISER_ID), now=MIDNIGHT - timedelta(seconds=10))

    spend = build_advertiser_status(None, [bench.state], an_advertiser(), now=MIDNIGHT)

    assert (spend.day, spend.spent, spend.held, spend.remaining) == (TOMORROW, 0, units(3), units(100))
