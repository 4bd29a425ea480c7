"""How a budget stands, for whoever reads it: figures that add up, at any moment."""

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

TODAY = NOON.date()
TOMORROW = TODAY + timedelta(days=1)
MIDNIGHT = datetime(2026, 11, 16, tzinfo=UTC)


def units(amount: float) -> Micros:
    return Micros(int(amount * UNIT))


def a_busy_campaign(
    config: ConfigureCampaign, *, charged: int = 2, held: int = 3, leased: int = 4, now: datetime = NOON
) -> CampaignBench:
    """A campaign of which one process was granted something: some charged, some held, some not offered yet."""
    bench = CampaignBench(config, now)
    asked = 2 * (charged + held + leased)  # One process gets half of what is left, so it asks for more.
    answer = bench.answered(want=units(asked))
    given = ((bench.second, units(charged + held)),)
    bench.answered(report=2, lease=answer.lease, given=given, want=units(leased))
    for _ in range(charged):
        bench.take(bench.offered(answer.lease))
    return bench


def test_what_was_never_offered_has_spent_nothing_and_has_all_of_its_budget() -> None:
    standing = build_campaign_status(None, a_campaign(total_budget=units(500)), now=NOON)

    assert standing.day == TODAY
    assert (standing.daily_budget, standing.total_budget) == (units(100), units(500))
    assert (standing.spent_today, standing.spent_total, standing.held, standing.leased) == (0, 0, 0, 0)
    assert (standing.remaining_today, standing.pace, standing.projected) == (units(100), None, 0)


def test_what_is_spent_held_and_remaining_is_the_budget() -> None:
    bench = a_busy_campaign(a_campaign())

    standing = build_campaign_status(bench.state, a_campaign(), now=bench.now)

    assert (standing.spent_today, standing.spent_total) == (units(2), units(2))
    assert (standing.held, standing.leased, standing.remaining_today) == (units(3), units(4), units(95))


def test_a_charge_ahead_of_its_report_was_leased_and_is_not_held() -> None:
    bench = CampaignBench()
    answer = bench.answered(want=units(5))
    bench.take(bench.offered(answer.lease))

    standing = build_campaign_status(bench.state, a_campaign(), now=bench.now)

    assert (standing.spent_today, standing.held, standing.leased) == (units(1), 0, units(4))
    assert standing.remaining_today == units(99)


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
def test_the_budget_that_leaves_less_is_the_one_that_counts_as_the_catalog_has_it_now(
    budgets: dict[str, Any], remaining: int | None
) -> None:
    bench = a_busy_campaign(a_campaign())

    standing = build_campaign_status(bench.state, a_campaign(version=2, **budgets), now=bench.now)

    assert standing.remaining_today == remaining


def test_after_midnight_it_is_another_day_though_no_message_has_come() -> None:
    bench = a_busy_campaign(a_campaign(), now=MIDNIGHT - timedelta(seconds=10))

    standing = build_campaign_status(bench.state, a_campaign(), now=MIDNIGHT)

    assert (standing.day, standing.spent_today, standing.spent_total) == (TOMORROW, 0, units(2))
    # What was promised before midnight is yesterday's, and may still be charged to it.
    assert (standing.held, standing.remaining_today) == (units(3), units(100))


def test_holds_that_were_not_confirmed_come_back_though_no_message_has_come() -> None:
    bench = a_busy_campaign(a_campaign(hold_seconds=300))

    before, after = (
        build_campaign_status(bench.state, a_campaign(hold_seconds=0), now=NOON + timedelta(seconds=seconds))
        for seconds in (299, 301)
    )

    assert (before.held, before.remaining_today) == (units(3), units(95))
    assert (after.held, after.remaining_today) == (0, units(98))


def test_a_new_window_leaves_a_whole_daily_budget_and_the_day_as_spent_as_it_was() -> None:
    bench = a_busy_campaign(a_campaign(), held=0, leased=0)
    bench.take(OpenWindow(reason="a test"))

    standing = build_campaign_status(bench.state, a_campaign(), now=bench.now)

    assert (standing.spent_today, standing.remaining_today) == (units(2), units(100))


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
def test_the_pace_is_what_was_spent_of_what_may_be_by_now(
    fields: dict[str, Any], expected: float | None
) -> None:
    bench = a_busy_campaign(a_campaign(), charged=30, held=0, leased=0)

    standing = build_campaign_status(bench.state, a_campaign(version=2, **fields), now=NOON)

    assert standing.pace == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(("spent", "line", "expected"), [(0, 5, 0.0), (5, 5, 1.0), (6, 5, 1.2), (5, 0, None)])
def test_pace(spent: int, line: int, expected: float | None) -> None:
    assert compute_pace(Micros(spent), line) == expected


@pytest.mark.parametrize(
    ("spent", "hours", "left", "expected"),
    [
        (0, 12, None, 0),
        (100, 12, None, 200),
        (100, 6, None, 400),
        (100, 12, 1_000, 200),
        (100, 12, 50, 150),  # The budget ends it.
        (100, 12, 0, 100),  # Nothing is left, or it does not run.
        (100, 24, 1_000, 100),  # The day is over.
        (100, 1, None, 2_400),
        (100, 0.5, None, 100 + 2_350),  # As if it were the first hour's.
        (100, 0, None, 100 + 2_400),
    ],
)
def test_the_end_of_the_day_is_expected_to_be_like_the_day_so_far(
    spent: int, hours: float, left: int | None, expected: int
) -> None:
    day = build_budget_day(TODAY, "UTC")
    now = day.starts_at + timedelta(hours=hours)

    assert project_spend(Micros(spent), day, now=now, left=None if left is None else Micros(left)) == expected


def test_a_day_of_25_hours_is_projected_to_its_end() -> None:
    day = build_budget_day(date(2026, 10, 25), "Europe/Berlin")

    assert project_spend(Micros(100), day, now=day.starts_at + timedelta(hours=5), left=None) == 500


@pytest.mark.parametrize(("is_running", "expected"), [(True, units(4)), (False, units(2))])
def test_a_campaign_that_does_not_run_will_spend_no_more(is_running: bool, expected: int) -> None:  # noqa: FBT001 - a column of the table
    bench = a_busy_campaign(a_campaign(), held=0, leased=0)

    standing = build_campaign_status(bench.state, a_campaign(version=2, is_running=is_running), now=NOON)

    assert standing.projected == expected


def test_an_advertiser_has_spent_and_holds_what_its_campaigns_do() -> None:
    config = a_campaign(advertiser_id=ADVERTISER_ID)
    one, other = a_busy_campaign(config), a_busy_campaign(config, charged=5, held=1)

    spend = build_advertiser_status(None, [one.state, other.state], an_advertiser(), now=NOON)

    assert (spend.day, spend.daily_budget) == (TODAY, units(100))
    assert (spend.spent, spend.held, spend.remaining) == (units(7), units(4), units(89))


def test_an_advertiser_without_campaigns_or_budget_has_nothing_to_tell() -> None:
    spend = build_advertiser_status(None, [], an_advertiser(daily_budget=None), now=NOON)

    assert (spend.day, spend.spent, spend.held, spend.remaining) == (TODAY, 0, 0, None)


def test_an_advertisers_day_is_that_of_its_zone_and_never_goes_back() -> None:
    late = datetime(2026, 11, 15, 23, tzinfo=UTC)
    bench = AdvertiserBench(an_advertiser(timezone="Europe/Berlin"), now=late)

    ahead = build_advertiser_status(bench.state, [], an_advertiser(timezone="Europe/Berlin"), now=late)
    moved = build_advertiser_status(bench.state, [], an_advertiser(timezone="America/New_York"), now=late)

    assert (ahead.day, moved.day) == (TOMORROW, TOMORROW)
    assert (
        build_advertiser_status(None, [], an_advertiser(timezone="America/New_York"), now=late).day == TODAY
    )


def test_what_is_held_of_yesterday_takes_nothing_of_an_advertisers_today() -> None:
    bench = a_busy_campaign(a_campaign(advertiser_id=ADVERTISER_ID), now=MIDNIGHT - timedelta(seconds=10))

    spend = build_advertiser_status(None, [bench.state], an_advertiser(), now=MIDNIGHT)

    assert (spend.day, spend.spent, spend.held, spend.remaining) == (TOMORROW, 0, units(3), units(100))
