"""Leases of a campaign: grants, returns, recalls and ends."""

from datetime import timedelta

import pytest

from adloom.budgets.campaign.headroom import compute_headroom
from adloom.budgets.campaign.state import make_campaign_state
from adloom.budgets.messages import (
    BudgetVerdict,
    CampaignRestored,
    LeaseAnswer,
    MoneyKind,
    OpenWindow,
    Recall,
    SessionOver,
    SpendUpdate,
)
from adloom.core.money import Micros
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.builders import NOON, SECOND, UNIT, CampaignBench, a_campaign, a_usage

NOTHING = Micros(0)


def units(number: int) -> Micros:
    return Micros(number * UNIT)


def test_a_process_is_granted_what_it_asks_for_if_the_budget_suffices() -> None:
    bench = CampaignBench()

    answer = bench.answered(want=units(10))

    assert (answer.granted, answer.given, answer.verdict) == (units(10), 0, BudgetVerdict.GRANTED)
    assert answer.ends_at == NOON.replace(hour=0) + timedelta(days=1)
    assert bench.is_persisted, "before the answer is sent"
    more = bench.answered(report=2, lease=answer.lease, want=units(15))
    assert (more.granted, more.given) == (units(15), 0), "with what it has already"


def test_leases_are_small_near_the_end_of_a_budget() -> None:
    bench = CampaignBench(a_campaign(daily_budget=units(8)))

    granted = [bench.answered(session=session, want=units(10)).granted for session in range(1, 9)]

    assert granted == [units(number) for number in (4, 1, 1, 1, 1, 0, 0, 0)]


@pytest.mark.parametrize("budget", [1, 2, 4, 5])
def test_the_only_process_gets_a_budget_of_few_offers_at_once(budget: int) -> None:
    bench = CampaignBench(a_campaign(daily_budget=units(budget)))

    assert bench.answered(want=units(10)).granted == units(min(budget, 4))


def test_the_sum_of_leases_never_exceeds_the_budget() -> None:
    bench = CampaignBench(a_campaign(daily_budget=units(100)))

    for report in range(1, 60):
        for session in range(1, 5):
            lease = bench.state.find_lease(session)
            want = units(7) + (0 if lease is None else lease.unassigned)
            bench.answered(
                session=session, report=report, lease=0 if lease is None else lease.number, want=want
            )

    assert bench.state.outstanding == units(100)


def test_grants_are_whole_offers() -> None:
    bench = CampaignBench(a_campaign(daily_budget=units(8)))

    answer = bench.answered(want=units(10), cost=Micros(3 * UNIT))

    assert answer.granted == units(6)


def test_a_repeated_report_is_answered_again_and_changes_nothing() -> None:
    bench = CampaignBench()
    first = bench.answered(want=units(3))
    before = bench.state

    again = bench.answered(want=units(3))

    assert again == first
    assert bench.state == before


@pytest.mark.parametrize("report", [1, 2])
def test_every_answer_with_a_grant_is_persisted_first(report: int) -> None:
    """A newer budget actor may have granted the same; only the write of the state finds that out."""
    bench = CampaignBench()
    lease = bench.answered(want=units(3)).lease

    answer = bench.answered(report=report, lease=lease if report == 2 else 0, want=units(3))

    assert answer.granted == units(3)
    assert bench.is_persisted


def test_a_repeated_refused_report_gets_the_reason_again() -> None:
    bench = CampaignBench(a_campaign(daily_budget=NOTHING))

    assert bench.answered().verdict is BudgetVerdict.DAILY_BUDGET
    assert bench.answered().verdict is BudgetVerdict.DAILY_BUDGET


def test_an_overtaken_report_is_ignored() -> None:
    bench = CampaignBench()
    lease = bench.answered(report=5, want=units(3)).lease

    bench.take(a_usage(report=4, lease=lease, want=NOTHING))

    assert bench.published(LeaseAnswer) == []
    assert bench.state.leased == units(3)


def test_a_process_that_asks_for_less_than_it_has_returns_the_rest() -> None:
    bench = CampaignBench()
    lease = bench.answered(want=units(5)).lease

    answer = bench.answered(report=2, lease=lease, given=((bench.second, UNIT),), want=units(2))

    assert (answer.granted - answer.given, bench.state.held, bench.state.leased) == (units(2), UNIT, units(2))


def test_a_second_refusal_is_not_persisted() -> None:
    bench = CampaignBench(a_campaign(daily_budget=NOTHING))
    lease = bench.answered().lease
    assert bench.is_persisted, "the number of the lease is persisted"

    bench.take(a_usage(report=2, lease=lease))

    assert not bench.is_persisted


def test_a_process_in_need_gets_the_idle_lease_of_another() -> None:
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    idle = bench.answered(session=1).lease
    bench.now += 5 * SECOND

    assert bench.answered(session=2, is_needed=True).verdict is BudgetVerdict.DAILY_BUDGET
    assert [recall.session for recall in bench.published(Recall)] == [1]
    bench.take(a_usage(session=1, report=2, lease=idle, want=NOTHING))

    assert bench.answered(session=2, report=2, is_needed=True).granted == UNIT


def test_a_new_lease_is_not_recalled() -> None:
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    bench.answered(session=1)

    bench.answered(session=2, is_needed=True)

    assert bench.published(Recall) == []


def test_a_process_in_need_comes_before_one_that_asks_ahead_of_need() -> None:
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    lease = bench.answered(session=1).lease
    bench.answered(session=2, is_needed=True)
    bench.take(a_usage(session=1, report=2, lease=lease, want=NOTHING))

    assert bench.answered(session=3, want=units(2)).granted == 0
    assert bench.answered(session=2, report=2, is_needed=True).granted == UNIT


def test_unreported_offers_of_an_ended_session_are_charged_until_its_holds_expire() -> None:
    bench = CampaignBench(a_campaign(daily_budget=units(2), hold_seconds=300))
    lease = bench.answered(want=units(1)).lease
    given_unreported = bench.offered(lease)

    bench.take(SessionOver(session=1, second=bench.second), after=10 * SECOND)
    bench.take(given_unreported)
    bench.wait(1)

    assert bench.charged == UNIT
    assert bench.state.outstanding == 0
    bench.wait(300)
    assert bench.state.leases == {}, "the lease is removed"


def test_the_unused_lease_of_an_ended_session_is_released() -> None:
    bench = CampaignBench(a_campaign(daily_budget=units(2)))
    bench.answered(want=units(1))

    bench.take(SessionOver(session=1, second=bench.second))
    assert bench.state.held == UNIT
    bench.wait(300)

    assert bench.state.outstanding == 0
    assert compute_headroom(bench.state, bench.now).amount == units(2)
    assert [row.kind for row in bench.rows] == [MoneyKind.RELEASE]


def test_a_process_whose_session_was_ended_gets_a_void_answer() -> None:
    bench = CampaignBench()
    lease = bench.answered().lease
    bench.take(SessionOver(session=1, second=bench.second))

    assert bench.answered(report=2, lease=lease).lease == 0
    assert bench.answered(report=3, lease=0).lease == 0, "a new lease does not reopen the session"
    assert bench.answered(session=2).lease != 0

    bench.take(SessionOver(session=2, second=bench.second))
    assert [bench.answered(report=4, session=session, lease=0).lease for session in (1, 2)] == [0, 0]


def test_a_process_that_offered_more_than_its_lease_gets_a_void_answer() -> None:
    bench = CampaignBench()
    lease = bench.answered(want=units(1)).lease

    answer = bench.answered(report=2, lease=lease, given=((bench.second, 2 * UNIT),))

    assert answer.lease == 0
    assert bench.state.outstanding == UNIT
    assert bench.state.leased == 0


def test_a_report_of_an_unknown_lease_gets_a_void_answer() -> None:
    assert CampaignBench().answered(lease=77).lease == 0


def test_a_lease_ends_with_its_day_and_the_next_day_has_a_new_one() -> None:
    bench = CampaignBench()
    lease = bench.answered(want=units(3)).lease
    bench.now += timedelta(days=1)

    last = bench.answered(report=2, lease=lease, want=NOTHING)
    assert last.ends_at <= bench.now
    again = bench.answered(report=2, lease=lease, want=NOTHING)
    new = bench.answered(report=3, lease=0, want=units(3))

    assert again == last, "also after the lease is removed"
    assert new.lease > lease
    assert new.ends_at > bench.now


def test_a_reset_opens_a_new_window_and_keeps_the_total() -> None:
    bench = CampaignBench(a_campaign(daily_budget=units(2), total_budget=units(3)))
    lease = bench.answered(want=units(1)).lease
    bench.take(bench.offered(lease))
    bench.take(bench.offered(bench.answered(report=2, lease=lease, given=((bench.second, UNIT),)).lease))
    assert bench.state.exhausted is BudgetVerdict.DAILY_BUDGET

    bench.take(OpenWindow(reason="requested by an admin"))

    assert len(bench.published(CampaignRestored)) == 1
    assert len(bench.published(SpendUpdate)) == 1
    left = compute_headroom(bench.state, bench.now)
    assert (left.amount, left.verdict) == (UNIT, BudgetVerdict.TOTAL_BUDGET)
    assert bench.state.spent_today == units(2)


def test_a_reset_that_comes_twice_forgets_nothing_that_was_spent_between() -> None:
    bench = CampaignBench(a_campaign(daily_budget=units(2)))
    reset = OpenWindow(reason="requested by an admin", was_window=bench.state.window)
    bench.take(reset)
    bench.take(bench.offered(bench.answered(want=units(1)).lease))

    bench.take(reset)

    assert bench.state.spent_window == UNIT
    bench.take(OpenWindow(reason="once more", was_window=bench.state.window))
    assert bench.state.spent_window == 0


def test_a_reset_ends_the_leases_of_the_old_window() -> None:
    bench = CampaignBench()
    lease = bench.answered(want=units(3)).lease

    bench.take(OpenWindow(reason="requested by an admin"))
    assert [recall.session for recall in bench.published(Recall)] == [1]
    last = bench.answered(report=2, lease=lease, want=units(9))

    assert (last.granted, last.ends_at <= bench.now) == (units(3), True)
    assert bench.answered(report=3, lease=0).lease > lease


def test_a_raised_budget_is_published() -> None:
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    lease = bench.answered().lease
    bench.take(bench.offered(lease))

    bench.take(a_campaign(version=2, daily_budget=units(2)))

    assert len(bench.published(CampaignRestored)) == 1
    assert len(bench.published(SpendUpdate)) == 1
    assert bench.answered(session=2).granted == UNIT


def test_leases_are_recalled_when_a_budget_is_lowered_below_what_is_committed() -> None:
    bench = CampaignBench()
    bench.answered(want=units(5))

    bench.take(a_campaign(version=2, daily_budget=units(2)))

    assert [recall.session for recall in bench.published(Recall)] == [1]
    assert bench.answered(session=2).verdict is BudgetVerdict.DAILY_BUDGET


def test_a_paused_campaign_grants_nothing_and_recalls_all_leases() -> None:
    bench = CampaignBench()
    lease = bench.answered(want=units(5)).lease

    bench.take(a_campaign(version=2, is_running=False))

    assert [recall.session for recall in bench.published(Recall)] == [1]
    bench.take(a_usage(report=2, lease=lease, want=NOTHING))
    assert bench.answered(report=3, lease=lease).verdict is BudgetVerdict.NOT_RUNNING
    assert bench.state.exhausted is None, "paused is not exhausted"


def test_an_older_configuration_is_ignored() -> None:
    bench = CampaignBench(a_campaign(version=5, daily_budget=UNIT))

    bench.take(a_campaign(version=4, daily_budget=units(9)))

    assert bench.state.config is not None
    assert bench.state.config.daily_budget == UNIT
    assert bench.published(SpendUpdate) == []


def test_the_same_configuration_again_changes_nothing() -> None:
    bench = CampaignBench(a_campaign(version=5))

    bench.take(a_campaign(version=6))

    assert not bench.is_persisted
    assert bench.published(SpendUpdate) == []


def test_a_smooth_campaign_grants_no_more_than_its_pacing_allowance() -> None:
    bench = CampaignBench(a_campaign(daily_budget=units(100), pacing=PacingStrategy.SMOOTH))

    for report in range(1, 200):
        lease = bench.state.find_lease(1)
        bench.answered(report=report, lease=0 if lease is None else lease.number, want=units(100))

    assert bench.state.outstanding == units(60), "half of the budget, and a fifth more"
    answer = bench.answered(session=2)
    assert answer.verdict is BudgetVerdict.PACING


def test_an_offer_confirmed_before_it_was_reported_is_charged_out_of_its_lease() -> None:
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    lease = bench.answered().lease
    second = bench.second

    bench.take(bench.offered(lease))
    answer = bench.answered(report=2, lease=lease, given=((second, UNIT),), want=UNIT)

    assert (answer.granted, answer.given) == (UNIT, UNIT)
    assert bench.state.outstanding == 0
    assert bench.state.spent_total == UNIT


def test_an_idle_campaign_sets_no_timer() -> None:
    bench = CampaignBench()

    bench.answered(want=units(5))

    assert bench.woken_at is None


def test_a_campaign_that_lost_its_state_uses_new_lease_numbers() -> None:
    before, after = make_campaign_state("", NOON), make_campaign_state("", NOON + SECOND)

    assert after.leases_made > before.leases_made, "tokens with old numbers are still valid"
    assert after.incarnation > before.incarnation
    assert after.leases_made < 1 << 32, "a token has four bytes for the number"
