"""Unconfirmed holds expire, and refused processes are notified."""

from datetime import timedelta

import pytest

from adloom.budgets.messages import (
    Allotment,
    BudgetVerdict,
    CampaignCounts,
    CheckClock,
    GiveBack,
    MoneyKind,
    OpenWindow,
    SpendReport,
    SpendUpdate,
)
from adloom.core.money import Micros
from tests.budgets.builders import ADVERTISER_ID, UNIT, CampaignBench, a_campaign, a_usage
from tests.serving.lease_world import PLACEMENT, LeaseWorld

HOLD_SECONDS = 300
NOTHING = Micros(0)


def a_bench_with_a_hold(**fields: object) -> CampaignBench:
    """Return a campaign whose whole budget is held by one unconfirmed offer."""
    bench = CampaignBench(a_campaign(daily_budget=UNIT, hold_seconds=HOLD_SECONDS, **fields))
    if bench.state.config is not None and bench.state.config.is_allotted:
        bench.answered(want=UNIT)
        bench.take(Allotment(sequence=bench.state.sequence, day=bench.state.day, allotted=UNIT))
    lease = bench.answered(report=2, want=UNIT).lease
    bench.take(a_usage(report=3, lease=lease, given=((bench.second, UNIT),), want=NOTHING))
    assert bench.state.held == UNIT
    return bench


def test_an_expired_hold_is_published_to_refused_processes() -> None:
    bench = a_bench_with_a_hold()
    assert bench.answered(session=2).verdict is BudgetVerdict.DAILY_BUDGET

    bench.wait(HOLD_SECONDS)

    assert [(update.held, update.spent_today) for update in bench.published(SpendUpdate)] == [(0, 0)]
    assert [row.kind for row in bench.rows] == [MoneyKind.RELEASE], "it is durable before it is published"
    assert bench.answered(session=2, report=2).granted == UNIT


def test_nothing_is_published_before_a_hold_expires_or_later() -> None:
    bench = a_bench_with_a_hold()

    bench.take(CheckClock(), after=timedelta(seconds=HOLD_SECONDS - 1))
    before = bench.published(SpendUpdate)
    bench.wait(1)
    bench.take(CheckClock(), after=timedelta(hours=1))

    assert (before, bench.published(SpendUpdate)) == ([], [])
    assert bench.woken_at is None, "an idle campaign sets no timer"


def test_a_confirmed_hold_does_not_expire() -> None:
    bench = a_bench_with_a_hold()
    bench.take(bench.offered(lease=next(iter(bench.state.leases))))
    bench.wait(1)

    bench.take(CheckClock(), after=timedelta(seconds=HOLD_SECONDS))

    assert bench.published(SpendUpdate) == []
    assert bench.charged == UNIT


def test_an_expired_hold_is_given_back_to_an_advertiser_that_asked_for_it() -> None:
    bench = a_bench_with_a_hold(advertiser_id=ADVERTISER_ID, is_allotted=True)
    bench.take(GiveBack())
    while bench.state.report is not None:
        bench.take(Allotment(sequence=bench.state.sequence, day=bench.state.day, allotted=UNIT))
    assert bench.state.allotted == UNIT, "it is committed"

    bench.wait(HOLD_SECONDS)

    assert [(report.committed, report.target) for report in bench.sent(SpendReport)] == [(0, 0)]


@pytest.mark.parametrize("message", [OpenWindow(reason="again"), CheckClock()])
def test_a_lease_of_which_the_process_never_heard_comes_back_from_an_earlier_window(
    message: OpenWindow | CheckClock,
) -> None:
    bench = CampaignBench(a_campaign(total_budget=Micros(10 * UNIT), impression_cap=10))
    bench.now = bench.now.replace(hour=23, minute=59, second=59)
    bench.take(CampaignCounts(impressions=0, clicks=0, until="1-0"))
    assert bench.answered(want=Micros(4 * UNIT), want_impressions=4).granted == 4 * UNIT, "the answer is lost"
    bench.take(message, after=timedelta(seconds=1))
    lease = bench.answered(want=Micros(2 * UNIT), want_impressions=2).lease
    assert bench.state.leased == 6 * UNIT

    bench.take(a_usage(report=2, lease=lease, want=Micros(2 * UNIT), want_impressions=2))

    assert bench.state.leased == 2 * UNIT
    assert sum(one.outstanding for one in bench.state.offers.values()) == 2


def test_an_expired_hold_is_offered_again_within_a_second() -> None:
    world = LeaseWorld(daily={7: 1}, hold_seconds=100)
    first = offered_at(world, 7, seconds=5)
    assert first is not None

    second = offered_at(world, 7, seconds=110)

    assert second is not None
    assert 99 <= second - first <= 101


def test_an_expired_hold_is_offered_by_another_campaign_of_the_advertiser() -> None:
    world = LeaseWorld(daily={1: 9, 2: 9}, advertiser_daily=1, hold_seconds=100)
    first = offered_at(world, 1, seconds=5)
    assert first is not None

    for process in world.processes:
        process.leases.update({PLACEMENT: {2: world.terms[2]}}, at=world.at)
    second = offered_at(world, 2, seconds=110)

    assert second is not None
    assert 99 <= second - first <= 102


def offered_at(world: LeaseWorld, key: int, *, seconds: float) -> float | None:
    """Let visitors come to all processes until there is an offer; return its time."""
    for _ in world.run(seconds):
        if any(world.offer(process, key) for process in world.processes):
            return world.at
    return None


def test_a_process_without_visitors_sends_no_report_when_a_hold_expires() -> None:
    world = LeaseWorld(processes=2, daily={7: 1}, hold_seconds=30)
    assert offered_at(world, 7, seconds=5) is not None
    world.wait(10)
    for process in world.processes:
        process.has_visitors = False
    before = world.exchanges

    world.wait(60)

    assert world.exchanges == before
