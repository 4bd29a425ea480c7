"""An advertiser's day, divided among its campaigns: together they never pass it, and all of it can be spent."""

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


def wants(
    campaign_id: CampaignId, more: int, *, committed: int = 0, sequence: int = 1, **fields: Any
) -> SpendReport:
    return a_report(
        campaign_id=campaign_id,
        sequence=sequence,
        committed=Micros(committed),
        target=Micros(committed + more),
        **fields,
    )


def test_an_advertiser_has_a_budget_a_day_spend_and_blocked_sites() -> None:
    bench = AdvertiserBench(an_advertiser(blocked_sites=("bad.example",)))
    bench.take(wants(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))

    bench.take(AskBudget())

    standing = bench.replied()
    assert isinstance(standing, AdvertiserStatus)
    assert (standing.day, standing.daily_budget, standing.spent) == (TODAY, 100 * UNIT, UNIT)
    assert bench.state.config is not None
    assert bench.state.config.blocked_sites == ("bad.example",)


def test_a_campaign_is_allotted_what_it_wants_where_there_is_plenty() -> None:
    bench = AdvertiserBench()

    bench.take(wants(A, 5 * UNIT))

    assert [one.allotted for one in bench.told(Allotment)] == [5 * UNIT]
    assert bench.is_persisted


def test_campaigns_are_never_allotted_more_than_there_is() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(10 * UNIT)))

    for sequence in range(1, 30):
        for number in range(5):
            bench.take(wants(CampaignId(UUID(int=number)), 9 * UNIT, sequence=sequence))

    assert bench.state.allotted == 10 * UNIT


def test_nobody_is_allotted_dust() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(2 * UNIT + UNIT // 2)))

    bench.take(wants(A, 9 * UNIT))
    bench.take(wants(A, 9 * UNIT, sequence=2))
    bench.take(wants(B, 9 * UNIT))

    assert bench.state.allotted == 2 * UNIT


def test_the_same_report_again_gets_an_answer_again_and_counts_once() -> None:
    bench = AdvertiserBench()
    report = wants(A, 5 * UNIT, committed=UNIT, spent_by_day={TODAY: UNIT})
    bench.take(report)
    first = bench.told(Allotment)

    bench.take(report)

    assert bench.told(Allotment) == first
    assert bench.state.spent == UNIT
    assert bench.recorded(DayTotal) == []


def test_a_report_that_was_overtaken_changes_nothing() -> None:
    bench = AdvertiserBench()
    bench.take(wants(A, 0, committed=2 * UNIT, sequence=7, spent_by_day={TODAY: 2 * UNIT}))
    before = bench.state

    bench.take(wants(A, 9 * UNIT, committed=UNIT, sequence=6, spent_by_day={TODAY: UNIT}))

    assert bench.state == before
    assert bench.told(Allotment) == []


def test_one_who_needs_it_gets_what_another_does_not_use() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=UNIT))
    bench.take(wants(A, UNIT))

    bench.take(wants(B, UNIT, is_needed=True))
    assert len(bench.told(GiveBack)) == 1
    bench.take(wants(A, 0, sequence=2))

    assert [(one.sequence, one.allotted) for one in bench.told(Allotment)] == [(1, UNIT), (2, 0)]
    assert bench.state.slices[B].allotted == UNIT
    assert bench.state.waiting == ()


def test_others_are_asked_back_twice_a_second_at_most() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=UNIT))
    bench.take(wants(A, UNIT))
    asked = 0

    for sequence in range(1, 11):
        bench.take(wants(B, UNIT, sequence=sequence, is_needed=True), after=SECOND / 10)
        asked += len(bench.told(GiveBack))

    assert asked == 2


def test_who_waits_comes_before_who_only_provides() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=UNIT))
    bench.take(wants(A, UNIT))
    bench.take(wants(B, UNIT, is_needed=True))

    bench.take(wants(A, 0, sequence=2))
    bench.take(wants(A, UNIT, sequence=3))

    assert bench.state.slices[B].allotted == UNIT
    assert bench.state.slices[A].allotted == 0


def test_a_raised_budget_serves_who_waits_at_once() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(0)))
    bench.take(wants(A, UNIT, is_needed=True))

    bench.take(an_advertiser(version=2, daily_budget=UNIT))

    assert [one.allotted for one in bench.told(Allotment)] == [UNIT]
    assert len(bench.published(AdvertiserRestored)) == 1


@pytest.mark.parametrize(
    "change", [{"daily_budget": UNIT}, {"is_active": False}], ids=["lowered", "suspended"]
)
def test_what_may_no_longer_be_spent_is_asked_back_at_once(change: dict[str, Any]) -> None:
    bench = AdvertiserBench()
    bench.take(wants(A, 5 * UNIT))

    bench.take(an_advertiser(version=2, **change))

    assert bench.told(GiveBack) == [GiveBack(is_all=True)]
    bench.take(wants(B, UNIT))
    assert bench.state.slices[B].allotted == 0


def test_an_older_configuration_of_an_advertiser_is_ignored() -> None:
    bench = AdvertiserBench(an_advertiser(version=3))

    bench.take(an_advertiser(version=2, daily_budget=UNIT))

    assert bench.state.config == an_advertiser(version=3)
    assert not bench.is_persisted


def test_exhausted_and_restored_are_said_on_the_transition_only() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(2 * UNIT)))
    exhausted = restored = 0
    for sequence, spent in enumerate((UNIT, 2 * UNIT, 2 * UNIT), 1):
        bench.take(wants(A, 0, committed=spent, sequence=sequence, spent_by_day={TODAY: spent}))
        exhausted += len(bench.published(AdvertiserExhausted))
    assert exhausted == 1
    assert bench.woken_at == NOON.replace(hour=0) + timedelta(days=1)

    for _ in range(2):
        bench.now = NOON.replace(hour=0) + timedelta(days=1)
        bench.take(CheckClock())
        restored += len(bench.published(AdvertiserRestored))

    assert restored == 1
    assert bench.woken_at is None


def test_what_is_left_and_pays_for_nobodys_offer_counts_as_nothing() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(2 * UNIT)))

    bench.take(wants(A, 0, committed=UNIT + 1, spent_by_day={TODAY: UNIT + 1}))

    assert len(bench.published(AdvertiserExhausted)) == 1


def test_a_report_of_a_new_day_rolls_the_advertiser() -> None:
    bench = AdvertiserBench()
    bench.take(wants(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))

    bench.take(wants(A, UNIT, sequence=2, day=TOMORROW, spent_by_day={TODAY: UNIT}))

    assert (bench.state.day, bench.state.spent, bench.state.allotted) == (TOMORROW, 0, UNIT)


def test_a_campaign_that_is_still_in_yesterday_is_told_the_day() -> None:
    bench = AdvertiserBench(now=NOON + timedelta(days=1))

    bench.take(wants(A, UNIT, day=TODAY))

    [allotment] = bench.told(Allotment)
    assert (allotment.day, allotment.allotted) == (TOMORROW, 0)


def test_the_day_of_an_advertiser_is_the_sum_of_its_campaigns() -> None:
    bench = AdvertiserBench()
    bench.take(wants(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))

    bench.take(wants(B, 0, committed=2 * UNIT, spent_by_day={TODAY: 2 * UNIT}))

    assert [(one.day, one.spent) for one in bench.recorded(DayTotal)] == [(TODAY, 3 * UNIT)]


def test_campaigns_that_were_not_heard_of_for_days_are_forgotten() -> None:
    bench = AdvertiserBench()
    bench.take(wants(A, 0))

    bench.take(CheckClock(), after=timedelta(days=5))

    assert bench.state.slices == {}


def test_an_advertiser_that_was_read_is_brought_up_to_the_clock() -> None:
    bench = AdvertiserBench()
    bench.take(wants(A, 0, committed=UNIT, spent_by_day={TODAY: UNIT}))

    later = advance_to(bench.state, NOON + timedelta(days=1))

    assert (later.day, later.spent) == (TOMORROW, 0)


def test_an_advertiser_without_a_budget_allots_whatever_is_wanted() -> None:
    bench = AdvertiserBench(an_advertiser(daily_budget=None))

    bench.take(wants(A, 10**15))

    assert [one.allotted for one in bench.told(Allotment)] == [10**15]
