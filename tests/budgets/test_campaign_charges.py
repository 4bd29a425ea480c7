"""Charges: each offer once, durable before it is published, and never more than was granted."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.messages import (
    BudgetVerdict,
    CampaignExhausted,
    CheckClock,
    Confirms,
    DayTotal,
    MoneyKind,
    SessionOver,
    SpendUpdate,
)
from adloom.core.money import Micros, micros_from_paisa, price_impression
from adloom.runtime.actors.actor import Persist, RecordRow
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.builders import NOON, UNIT, CampaignBench, a_campaign, a_confirm, a_usage

HALF_A_SECOND = timedelta(milliseconds=500)


def confirms_of(leases: st.SearchStrategy[int]) -> "st.SearchStrategy[list[tuple[int, int, int, int]]]":
    """The lease, second, price and number of each offer."""
    return st.lists(st.tuples(leases, st.integers(0, 4), st.integers(1, 2), st.integers(1, 15)), max_size=19)


def a_bench(offers: int, **config: object) -> tuple[CampaignBench, int]:
    """A campaign with one process that has a lease for `offers` offers; and the lease."""
    bench = CampaignBench(a_campaign(**{"daily_budget": Micros(2 * offers * UNIT), **config}))
    return bench, bench.answered(want=Micros(offers * UNIT)).lease


@pytest.mark.parametrize("budget", [1, 2])
def test_a_budget_for_one_or_two_impressions_allows_exactly_as_many(
    budget: int,
) -> None:
    cost = price_impression(Micros(1000 * UNIT))  # CPM 1000.
    bench = CampaignBench(a_campaign(daily_budget=micros_from_paisa(100 * budget)))
    given = 0

    for session in range(1, 5):
        answer = bench.answered(session=session, want=Micros(10 * cost), cost=cost)
        given += answer.granted // cost
        for _ in range(answer.granted // cost):
            bench.take(bench.offered(answer.lease, cost))
    bench.wait(1)

    assert given == budget
    assert bench.charged == budget * UNIT
    assert bench.answered(session=5, cost=cost).verdict is BudgetVerdict.DAILY_BUDGET


def test_charges_are_flushed_when_there_are_20() -> None:
    bench, lease = a_bench(30)

    for number in range(1, 20):
        bench.take(bench.offered(lease))
        assert not bench.is_persisted, number
    bench.take(bench.offered(lease))

    assert bench.is_persisted
    assert len(bench.rows) == 20
    assert [update.spent_today for update in bench.published(SpendUpdate)] == [20 * UNIT]
    assert bench.state.buffer == ()


def test_confirms_in_one_message_are_charged_as_in_many() -> None:
    together, lease = a_bench(30)
    apart, _ = a_bench(30)
    confirms = tuple(together.offered(lease) for _ in range(25))

    together.take(Confirms((*confirms, confirms[-1])))
    for confirm in confirms:
        apart.take(confirm)
    for bench in (together, apart):
        bench.wait(1)

    assert together.rows == apart.rows
    assert together.charged == 25 * UNIT
    assert together.state == apart.state


@given(
    given=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=3),
    shown=st.one_of(confirms_of(st.integers(1, 2)), confirms_of(st.integers(0, 3))),
    is_over=st.booleans(),
)
def test_any_confirms_are_charged_alike_together_and_one_by_one(
    given: list[tuple[int, int]], shown: list[tuple[int, int, int, int]], *, is_over: bool
) -> None:
    def bench() -> CampaignBench:
        """A campaign with two leases, one with reported offers, whose session may have ended."""
        bench = CampaignBench(a_campaign(daily_budget=Micros(20 * UNIT)))
        first = bench.answered(want=Micros(5 * UNIT)).lease
        bench.answered(session=2, want=Micros(5 * UNIT))
        reported = tuple((bench.second + at, amount * UNIT) for at, amount in dict(given).items())
        bench.take(a_usage(report=2, lease=first, given=reported, want=Micros(0)))
        if is_over:
            bench.take(SessionOver(session=1, second=bench.second + 3))
        return bench

    together, apart = bench(), bench()
    leases = [0, *together.state.leases, 99]
    confirms = [
        a_confirm(
            number,
            lease=leases[lease % len(leases)],
            second=together.second + at,
            amount=Micros(units * UNIT),
        )
        for lease, at, units, number in shown
    ]

    together.take(Confirms(tuple(confirms)))
    for confirm in confirms:
        apart.take(confirm)
    for one in (together, apart):
        one.wait(1)

    assert together.rows == apart.rows
    assert together.state == apart.state


def test_charges_are_flushed_half_a_second_after_the_first() -> None:
    bench, lease = a_bench(30)
    bench.take(bench.offered(lease))
    bench.take(bench.offered(lease), after=HALF_A_SECOND / 2)
    assert bench.woken_at == NOON + HALF_A_SECOND

    bench.take(CheckClock(), after=HALF_A_SECOND / 2)

    assert len(bench.rows) == 2
    assert bench.published(SpendUpdate)[0].spent_total == 2 * UNIT
    assert bench.state.flush_at is None


def test_spend_is_published_in_the_step_that_makes_it_durable() -> None:
    bench, lease = a_bench(30)
    bench.take(bench.offered(lease))

    bench.take(CheckClock(), after=HALF_A_SECOND)

    kinds = [type(effect) for effect in bench.effects]
    assert bench.published(SpendUpdate)
    assert Persist in kinds
    assert RecordRow in kinds


def test_a_flush_records_the_total_of_the_day() -> None:
    bench, lease = a_bench(30)
    bench.take(bench.offered(lease))
    bench.wait(1)
    bench.take(bench.offered(lease))

    bench.take(CheckClock(), after=HALF_A_SECOND)

    assert [(one.day, one.spent) for one in bench.recorded(DayTotal)] == [(NOON.date(), 2 * UNIT)]


def test_an_offer_that_is_confirmed_twice_before_a_flush_is_charged_once() -> None:
    bench, lease = a_bench(30)
    confirm = bench.offered(lease)

    bench.take(confirm)
    bench.take(confirm)
    bench.wait(1)

    assert bench.charged == UNIT
    assert bench.state.spent_total == UNIT


def test_different_slots_of_a_request_are_different_offers() -> None:
    bench, lease = a_bench(30)
    first = bench.offered(lease)

    bench.take(first)
    bench.take(msgspec.structs.replace(first, slot=first.slot + 1))
    bench.wait(1)

    assert bench.charged == 2 * UNIT


def test_an_expired_hold_is_charged_late_if_budget_is_left() -> None:
    bench, lease = a_bench(1)
    confirm = bench.offered(lease)
    bench.take(a_usage(report=2, lease=lease, given=((bench.second, UNIT),), want=Micros(0)))
    bench.wait(301)

    bench.take(confirm)
    bench.wait(1)

    assert [(row.kind, row.lease) for row in bench.rows] == [
        (MoneyKind.RELEASE, lease),
        (MoneyKind.CHARGE, 0),
    ]


def test_an_expired_hold_is_unbilled_if_no_budget_is_left() -> None:
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    lease = bench.answered().lease
    confirm = bench.offered(lease)
    bench.take(a_usage(report=2, lease=lease, given=((bench.second, UNIT),), want=Micros(0)))
    bench.wait(301)
    assert bench.answered(session=2).granted == UNIT

    bench.take(confirm)
    bench.wait(1)

    assert [row.kind for row in bench.rows] == [MoneyKind.RELEASE, MoneyKind.UNBILLED]
    assert bench.state.spent_total == 0
    assert bench.state.outstanding == UNIT


def test_a_late_confirm_does_not_use_what_is_leased_to_its_process() -> None:
    bench = CampaignBench(a_campaign(daily_budget=Micros(4 * UNIT)))
    lease = bench.answered(want=Micros(2 * UNIT)).lease
    late = bench.offered(lease)
    bench.take(a_usage(report=2, lease=lease, given=((bench.second, UNIT),), want=UNIT))
    bench.wait(301)
    while bench.answered(session=bench.offers + 100).granted:
        bench.offers += 1  # Other processes take all that is left, and the expired hold.

    bench.take(late)
    bench.take(bench.offered(lease))
    bench.wait(1)

    assert [row.kind for row in bench.rows] == [MoneyKind.RELEASE, MoneyKind.UNBILLED, MoneyKind.CHARGE]


def test_a_late_charge_stays_under_the_pacing_allowance() -> None:
    budget = Micros(24 * UNIT)
    bench = CampaignBench(
        a_campaign(daily_budget=budget, pacing=PacingStrategy.SMOOTH), NOON.replace(hour=0, minute=1)
    )

    bench.take(bench.offered())
    bench.take(bench.offered())
    bench.wait(1)

    assert [row.kind for row in bench.rows] == [MoneyKind.CHARGE, MoneyKind.UNBILLED], (
        "the first hour has a 24th of the budget"
    )


def test_an_offer_without_a_lease_is_charged() -> None:
    bench = CampaignBench(a_campaign(daily_budget=None))

    bench.take(bench.offered())
    bench.wait(1)

    assert bench.charged == UNIT
    assert bench.state.spent_today == UNIT


def test_a_paused_campaign_is_charged_for_its_open_offers() -> None:
    bench, lease = a_bench(2)
    confirm = bench.offered(lease)
    bench.take(a_campaign(version=2, is_running=False))

    bench.take(confirm)
    bench.wait(1)

    assert bench.charged == UNIT


def test_offers_made_before_a_budget_was_lowered_are_charged() -> None:
    bench, lease = a_bench(2)
    confirms = [bench.offered(lease), bench.offered(lease)]
    bench.take(a_campaign(version=2, daily_budget=UNIT))

    for confirm in confirms:
        bench.take(confirm)
    bench.wait(1)

    assert bench.charged == 2 * UNIT
    assert bench.answered(session=2).verdict is BudgetVerdict.DAILY_BUDGET


def test_exhausted_is_published_once_when_the_budget_is_spent() -> None:
    bench, lease = a_bench(2, daily_budget=Micros(2 * UNIT))
    published: list[CampaignExhausted] = []
    for confirm in (bench.offered(lease), bench.offered(lease)):
        assert published == []
        bench.take(confirm)
        published += bench.published(CampaignExhausted)
    bench.take(CheckClock())
    published += bench.published(CampaignExhausted)

    assert [one.verdict for one in published] == [BudgetVerdict.DAILY_BUDGET]


def test_a_spent_total_budget_is_published_and_lasts() -> None:
    bench = CampaignBench(a_campaign(daily_budget=UNIT, total_budget=UNIT))
    lease = bench.answered().lease

    bench.take(bench.offered(lease))
    [update] = bench.published(CampaignExhausted)
    bench.wait(3 * 86_400)
    bench.take(CheckClock())

    assert update.verdict is BudgetVerdict.TOTAL_BUDGET
    assert bench.state.exhausted is BudgetVerdict.TOTAL_BUDGET
    assert bench.woken_at is None, "there is no day to wait for"


def test_charges_of_yesterday_that_were_not_flushed_are_recorded_for_yesterday() -> None:
    bench = CampaignBench(now=NOON.replace(hour=23, minute=59, second=59))
    lease = bench.answered().lease
    confirm = bench.offered(lease)
    bench.take(confirm, after=timedelta(seconds=2))

    bench.wait(301)  # Nothing is left of the lease.

    assert [one.amount for one in bench.rows if one.kind is MoneyKind.CHARGE] == [UNIT]
    assert bench.rows[0].day == NOON.date()
