"""An advertiser's daily budget, divided among its campaigns: they never exceed it, and can spend all of it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from adloom.budgets.advertiser.state import AdvertiserStatus
from adloom.budgets.advertiser.step import advance_to
from adloom.budgets.messages import (
    AdvertiserExhausted,
    AdvertiserRestored,
    Allotment,
    AskBudget,
    CheckClock,
    DayTotal,
    GiveBack,
    SpendReport,
)
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from tests.budgets.builders import NOON, SECOND, UNIT, AdvertiserBench, a_report, an_advertiser

TODAY = NOON.date()
TOMORROW = TODAY + timedelta(days=1)
A, B = CampaignId(UUID(int=100)), CampaignId(UUID(int=101))


def a_request(
    campaign_id: CampaignId, more: int, *, committed: int = 0, sequence: int = 1, **fields: Any
) -> SpendReport:
    return a_report(
        campaign_id=campaign_id,
        sequence=sequence,
        committed=Micros(committed),
        target=Micros(committed + more),
        **fields,
    )


def test_an_advertiser_returns_its_day_its_budget_and_its_spend() -> None:
    bench = AdvertiserBench(an_advertiser())
    bench.take(a_request(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))

    bench.take(AskBudget())

    status = bench.replied()
    assert isinstance(status, AdvertiserStatus)
    assert (status.day, status.daily_budget, status.spent) == (TODAY, 100 * UNIT, UNIT)


def test_a_campaign_is_allotted_what_it_asks_for_if_the_budget_suffices() -> None:
    bench = AdvertiserBench()

    bench.take(a_request(A, 5 * UNIT))

    assert [one.allotted for one in bench.sent(Allotment)] == [5 * UNIT]
    assert bench.is_persisted


def test_allotments_never_exceed_the_budget() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(10 * UNIT)))

    for sequence in range(1, 30):
        for number in range(5):
            bench.take(a_request(CampaignId(UUID(int=number)), 9 * UNIT, sequence=sequence))

    assert bench.state.allotted == 10 * UNIT


def test_allotments_are_whole_offers() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(2 * UNIT + UNIT // 2)))

    bench.take(a_request(A, 9 * UNIT))
    bench.take(a_request(A, 9 * UNIT, sequence=2))
    bench.take(a_request(B, 9 * UNIT))

    assert bench.state.allotted == 2 * UNIT


def test_a_repeated_report_is_answered_again_and_counts_once() -> None:
    bench = AdvertiserBench()
    report = a_request(A, 5 * UNIT, committed=UNIT, spent_by_day={TODAY: UNIT})
    bench.take(report)
    first = bench.sent(Allotment)

    bench.take(report)

    assert bench.sent(Allotment) == first
    assert bench.state.spent == UNIT
    assert bench.recorded(DayTotal) == []


def test_a_report_that_was_overtaken_changes_nothing() -> None:
    bench = AdvertiserBench()
    bench.take(a_request(A, 0, committed=2 * UNIT, sequence=7, spent_by_day={TODAY: 2 * UNIT}))
    before = bench.state

    bench.take(a_request(A, 9 * UNIT, committed=UNIT, sequence=6, spent_by_day={TODAY: UNIT}))

    assert bench.state == before
    assert bench.sent(Allotment) == []


def test_a_campaign_in_need_gets_the_unused_allotment_of_another() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=UNIT))
    bench.take(a_request(A, UNIT))

    bench.take(a_request(B, UNIT, is_needed=True))
    assert len(bench.sent(GiveBack)) == 1
    bench.take(a_request(A, 0, sequence=2))

    assert [(one.sequence, one.allotted) for one in bench.sent(Allotment)] == [(1, UNIT), (2, 0)]
    assert bench.state.slices[B].allotted == UNIT
    assert bench.state.waiting == ()


def test_allotments_are_recalled_at_most_twice_a_second() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=UNIT))
    bench.take(a_request(A, UNIT))
    recalls = 0

    for sequence in range(1, 11):
        bench.take(a_request(B, UNIT, sequence=sequence, is_needed=True), after=SECOND / 10)
        recalls += len(bench.sent(GiveBack))

    assert recalls == 2


def test_a_campaign_in_need_comes_before_one_that_asks_ahead_of_need() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=UNIT))
    bench.take(a_request(A, UNIT))
    bench.take(a_request(B, UNIT, is_needed=True))

    bench.take(a_request(A, 0, sequence=2))
    bench.take(a_request(A, UNIT, sequence=3))

    assert bench.state.slices[B].allotted == UNIT
    assert bench.state.slices[A].allotted == 0


def test_a_raised_budget_is_allotted_to_waiting_campaigns() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(0)))
    bench.take(a_request(A, UNIT, is_needed=True))

    bench.take(an_advertiser(version=2, daily_budget=UNIT))

    assert [one.allotted for one in bench.sent(Allotment)] == [UNIT]
    assert len(bench.published(AdvertiserRestored)) == 1


@pytest.mark.parametrize(
    "change", [{"daily_budget": UNIT}, {"is_active": False}], ids=["lowered", "suspended"]
)
def test_allotments_are_recalled_when_the_budget_is_lowered_or_suspended(change: dict[str, Any]) -> None:
    bench = AdvertiserBench()
    bench.take(a_request(A, 5 * UNIT))

    bench.take(an_advertiser(version=2, **change))

    assert bench.sent(GiveBack) == [GiveBack(is_all=True)]
    bench.take(a_request(B, UNIT))
    assert bench.state.slices[B].allotted == 0

    # That was lost: the campaign still keeps all of it, and is asked again until it does not.
    for sequence, more, asked in ((2, 4 * UNIT, 1), (3, 4 * UNIT, 0), (4, 4 * UNIT, 1), (5, 0, 0)):
        bench.now += timedelta(milliseconds=400)
        bench.take(a_request(A, more, sequence=sequence, committed=UNIT))
        assert bench.sent(GiveBack) == [GiveBack(is_all=True)] * asked


def test_an_older_configuration_of_an_advertiser_is_ignored() -> None:
    bench = AdvertiserBench(an_advertiser(version=3))

    bench.take(an_advertiser(version=2, daily_budget=UNIT))

    assert bench.state.config == an_advertiser(version=3)
    assert not bench.is_persisted


def test_exhausted_and_restored_are_published_on_the_transition_only() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(2 * UNIT)))
    exhausted = restored = 0
    for sequence, spent in enumerate((UNIT, 2 * UNIT, 2 * UNIT), 1):
        bench.take(a_request(A, 0, committed=spent, sequence=sequence, spent_by_day={TODAY: spent}))
        exhausted += len(bench.published(AdvertiserExhausted))
    assert exhausted == 1
    assert bench.woken_at == NOON.replace(hour=0) + timedelta(days=1)

    for _ in range(2):
        bench.now = NOON.replace(hour=0) + timedelta(days=1)
        bench.take(CheckClock())
        restored += len(bench.published(AdvertiserRestored))

    assert restored == 1
    assert bench.woken_at is None


def test_a_budget_that_covers_no_offer_counts_as_exhausted() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(2 * UNIT)))

    bench.take(a_request(A, 0, committed=UNIT + 1, spent_by_day={TODAY: UNIT + 1}))

    assert len(bench.published(AdvertiserExhausted)) == 1


def test_a_report_of_a_new_day_rolls_the_advertiser() -> None:
    bench = AdvertiserBench()
    bench.take(a_request(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))

    bench.take(a_request(A, UNIT, sequence=2, day=TOMORROW, spent_by_day={TODAY: UNIT}))

    assert (bench.state.day, bench.state.spent, bench.state.allotted) == (TOMORROW, 0, UNIT)


def test_the_answer_to_a_report_of_yesterday_names_today() -> None:
    bench = AdvertiserBench(now=NOON + timedelta(days=1))

    bench.take(a_request(A, UNIT, day=TODAY))

    [allotment] = bench.sent(Allotment)
    assert (allotment.day, allotment.allotted) == (TOMORROW, 0)


def test_the_spend_of_an_advertisers_day_is_the_sum_of_its_campaigns() -> None:
    bench = AdvertiserBench()
    bench.take(a_request(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))

    bench.take(a_request(B, 0, committed=2 * UNIT, spent_by_day={TODAY: 2 * UNIT}))

    assert [(one.day, one.spent) for one in bench.recorded(DayTotal)] == [(TODAY, 3 * UNIT)]


def test_campaigns_without_reports_for_days_are_removed() -> None:
    bench = AdvertiserBench()
    bench.take(a_request(A, 0))

    bench.take(CheckClock(), after=timedelta(days=4))
    bench.take(CheckClock(), after=timedelta(days=1))

    assert bench.state.slices == {}


def test_what_was_not_reported_before_an_outage_of_days_is_in_the_total_of_its_day() -> None:
    bench = AdvertiserBench()
    bench.take(a_request(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))
    bench.take(a_request(B, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))
    bench.now += timedelta(days=9)
    later = bench.now.date()

    bench.take(a_request(B, 0, sequence=2, day=later, spent_by_day={TODAY: 5 * UNIT, later: UNIT}))

    assert bench.recorded(DayTotal)[-2:] == [
        DayTotal(
            kind="advertiser", id=bench.state.configured.advertiser_id, day=TODAY, spent=Micros(6 * UNIT)
        ),
        DayTotal(kind="advertiser", id=bench.state.configured.advertiser_id, day=later, spent=UNIT),
    ]


@pytest.mark.parametrize("is_first", [True, False])
def test_a_day_of_which_slices_are_forgotten_keeps_its_total(*, is_first: bool) -> None:
    """A campaign that nobody touched for days goes on to report the last day that it spent on."""
    bench = AdvertiserBench()
    bench.take(a_request(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))
    for _ in range(5):
        bench.take(CheckClock(), after=timedelta(days=1))
    later = TODAY + timedelta(days=5)
    if not is_first:
        bench.take(a_request(A, 0, sequence=2, day=later))

    bench.take(a_request(A, 0, sequence=3, day=later, spent_by_day={TODAY: UNIT, later: 2 * UNIT}))

    assert [(one.day, one.spent) for one in bench.recorded(DayTotal)] == [(later, 2 * UNIT)]


def test_a_loaded_advertiser_can_be_advanced_to_the_current_day() -> None:
    bench = AdvertiserBench()
    bench.take(a_request(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))

    later = advance_to(bench.state, NOON + timedelta(days=1))

    assert (later.day, later.spent) == (TOMORROW, 0)


def test_an_advertiser_without_a_budget_allots_every_amount() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=None))

    bench.take(a_request(A, 10**15))

    assert [one.allotted for one in bench.sent(Allotment)] == [10**15]
