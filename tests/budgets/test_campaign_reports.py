"""A campaign and its advertiser: reports are repeated until they are answered; an allotment answers the last one."""

from datetime import timedelta
from typing import Any

from adloom.budgets.campaign.reports import retry_delay
from adloom.budgets.messages import (
    Allotment,
    BudgetVerdict,
    CheckClock,
    GiveBack,
    OpenWindow,
    Recall,
    SpendReport,
    SpendUpdate,
)
from adloom.core.money import Micros
from tests.budgets.builders import ADVERTISER_ID, NOON, SECOND, UNIT, CampaignBench, a_campaign, a_usage
from tests.support.for_each import for_each

TODAY = NOON.date()


def an_allotted_campaign(**fields: Any) -> CampaignBench:
    """A campaign of an advertiser with a budget of its own."""
    return CampaignBench(a_campaign(advertiser_id=ADVERTISER_ID, is_allotted=True, **fields))


def answer(bench: CampaignBench, allotted: int) -> None:
    bench.take(Allotment(sequence=bench.state.sequence, day=bench.state.day, allotted=Micros(allotted)))


@for_each(("attempt", "seconds"), [(1, 0.1), (2, 0.2), (3, 0.4), (4, 0.8), (5, 1.6), (6, 3.2), (7, 5.0)])
def test_the_delay_between_attempts_doubles_up_to_five_seconds(attempt: int, seconds: float) -> None:
    assert retry_delay(attempt) == timedelta(seconds=seconds)


def test_a_report_is_repeated_five_times_and_then_every_two_minutes() -> None:
    bench = an_allotted_campaign()
    sent: list[float] = []
    before = bench.now

    for _ in range(8):
        assert bench.woken_at is not None
        bench.now = bench.woken_at
        sent.append(round((bench.now - before).total_seconds(), 3))
        before = bench.now
        bench.take(CheckClock())
        assert len(bench.sent(SpendReport)) == 1

    assert sent == [0.1, 0.2, 0.4, 0.8, 1.6, 120, 120, 120]


def test_an_unanswered_report_is_sent_again_after_a_restart() -> None:
    bench = an_allotted_campaign()
    assert bench.is_persisted
    assert bench.state.report is not None

    bench.take(CheckClock(), after=timedelta(hours=1))

    assert len(bench.sent(SpendReport)) == 1


def test_an_answered_report_is_not_repeated() -> None:
    bench = an_allotted_campaign()

    answer(bench, 0)

    assert bench.woken_at is None
    assert bench.state.report is None


def test_every_report_has_a_higher_sequence_and_totals_instead_of_differences() -> None:
    bench = an_allotted_campaign()
    answer(bench, 10 * UNIT)
    lease = bench.answered(want=Micros(2 * UNIT)).lease
    answer(bench, 10 * UNIT)
    sent: list[SpendReport] = []
    for _ in range(2):
        bench.take(bench.offered(lease))
        bench.take(CheckClock(), after=SECOND)
        sent += bench.sent(SpendReport)
        answer(bench, 10 * UNIT)

    assert [report.spent_by_day for report in sent] == [{TODAY: UNIT}, {TODAY: 2 * UNIT}]
    assert sent[1].sequence == sent[0].sequence + 1


def test_what_was_spent_by_the_time_of_a_reset_is_reported() -> None:
    bench = an_allotted_campaign()
    answer(bench, 10 * UNIT)
    bench.take(bench.offered())

    bench.take(OpenWindow(reason="again"))

    assert [one.spent_by_day for one in bench.sent(SpendReport)] == [{TODAY: UNIT}]


def test_only_one_report_is_under_way_and_the_next_follows_its_answer() -> None:
    bench = an_allotted_campaign()
    answer(bench, 10 * UNIT)
    lease = bench.answered(want=Micros(2 * UNIT)).lease
    answer(bench, 10 * UNIT)
    bench.take(bench.offered(lease))
    bench.take(CheckClock(), after=SECOND)
    under_way = bench.state.sequence

    bench.take(bench.offered(lease))
    bench.take(CheckClock(), after=timedelta(milliseconds=50))
    assert bench.sent(SpendReport) == []
    bench.state = flush_charges(bench)
    bench.take(Allotment(sequence=under_way, day=TODAY, allotted=Micros(10 * UNIT)))

    assert [report.spent_by_day for report in bench.sent(SpendReport)] == [{TODAY: 2 * UNIT}]


def flush_charges(bench: CampaignBench) -> Any:
    for _ in range(19):
        bench.take(bench.offered(0, Micros(0)))
    return bench.state


def test_only_the_answer_to_the_last_report_counts() -> None:
    bench = an_allotted_campaign()
    old = bench.state.sequence
    bench.take(CheckClock(), after=SECOND)  # It was not answered, so it is sent again.

    bench.take(Allotment(sequence=old, day=TODAY, allotted=Micros(10 * UNIT)))

    assert bench.state.allotted == 0
    assert bench.state.report is not None


def test_without_an_allotment_nothing_is_granted_and_a_report_asks_for_one() -> None:
    bench = an_allotted_campaign()
    answer(bench, 0)

    granted = bench.answered(want=Micros(3 * UNIT), is_needed=True)

    assert granted.verdict is BudgetVerdict.ADVERTISER_BUDGET
    [report] = bench.sent(SpendReport)
    assert (report.target, report.committed, report.is_needed) == (3 * UNIT, 0, True)


def test_an_allotment_is_published_to_refused_processes() -> None:
    bench = an_allotted_campaign()
    answer(bench, 0)
    lease = bench.answered(want=Micros(3 * UNIT), is_needed=True).lease

    answer(bench, 3 * UNIT)

    assert len(bench.published(SpendUpdate)) == 1
    assert bench.answered(report=2, lease=lease, want=Micros(3 * UNIT)).granted > 0


def test_more_is_asked_for_ahead_of_need() -> None:
    bench = an_allotted_campaign()
    answer(bench, 10 * UNIT)

    granted = bench.answered(want=Micros(9 * UNIT))

    [report] = bench.sent(SpendReport)
    assert granted.granted == 9 * UNIT
    assert (report.target, report.is_needed) == (18 * UNIT, False)


def test_a_campaign_asks_its_advertiser_for_no_more_than_its_own_budget() -> None:
    bench = an_allotted_campaign(daily_budget=Micros(2 * UNIT))
    answer(bench, 0)

    bench.answered(want=Micros(9 * UNIT))

    assert [report.target for report in bench.sent(SpendReport)] == [2 * UNIT]


def test_an_exhausted_advertiser_is_asked_once_a_second() -> None:
    bench = an_allotted_campaign()
    answer(bench, 0)
    reports = 0
    lease = 0
    for number in range(1, 41):
        lease = bench.answered(report=number, lease=lease, is_needed=True).lease
        reports += len(bench.sent(SpendReport))
        answer(bench, 0)
        bench.now += SECOND / 10

    assert reports == 4


def test_a_campaign_gives_back_its_allotment_except_what_is_committed() -> None:
    bench = an_allotted_campaign()
    answer(bench, 10 * UNIT)
    bench.answered(want=Micros(2 * UNIT))
    bench.now += 5 * SECOND

    bench.take(GiveBack())

    assert [recall.session for recall in bench.published(Recall)] == [1]
    assert [report.target for report in bench.sent(SpendReport)] == [2 * UNIT]
    assert bench.state.allotted == 2 * UNIT, "even if the report is lost"


def test_a_campaign_recalls_busy_leases_only_if_all_must_be_given_back() -> None:
    bench = an_allotted_campaign()
    answer(bench, 10 * UNIT)
    bench.answered(want=Micros(2 * UNIT), is_needed=True)

    bench.take(GiveBack())
    assert bench.published(Recall) == [], "the lease is in use"
    bench.take(GiveBack(is_all=True))

    assert [recall.session for recall in bench.published(Recall)] == [1]


def test_a_returned_lease_goes_back_to_an_advertiser_that_asked_for_it() -> None:
    bench = an_allotted_campaign()
    answer(bench, 10 * UNIT)
    lease = bench.answered(want=Micros(2 * UNIT)).lease
    bench.take(GiveBack())
    answer(bench, 2 * UNIT)

    bench.take(a_usage(report=2, lease=lease, want=Micros(0)))

    assert [report.target for report in bench.sent(SpendReport)] == [0]


def test_a_campaign_in_need_gives_back_an_allotment_that_covers_no_offer() -> None:
    bench = an_allotted_campaign()
    answer(bench, 0)
    bench.answered(is_needed=True, want=Micros(3 * UNIT))
    answer(bench, UNIT // 2)

    bench.take(GiveBack())

    assert [report.target for report in bench.sent(SpendReport)] == [0]


def test_a_new_day_begins_without_an_allotment() -> None:
    bench = an_allotted_campaign()
    answer(bench, 10 * UNIT)

    bench.take(CheckClock(), after=timedelta(days=1))

    assert bench.state.allotted == 0
    assert [report.day for report in bench.sent(SpendReport)] == [TODAY + timedelta(days=1)]


def test_a_campaign_follows_its_advertiser_into_the_next_day() -> None:
    bench = an_allotted_campaign()

    bench.take(
        Allotment(sequence=bench.state.sequence, day=TODAY + timedelta(days=1), allotted=Micros(10 * UNIT))
    )

    assert bench.state.day == TODAY + timedelta(days=1)
    assert len(bench.published(SpendUpdate)) == 1


def test_an_allotment_of_yesterday_does_not_roll_the_day_back() -> None:
    bench = an_allotted_campaign()
    late = Allotment(sequence=bench.state.sequence, day=TODAY, allotted=Micros(10 * UNIT))
    bench.take(CheckClock(), after=timedelta(days=1))

    bench.take(late)

    assert bench.state.day == TODAY + timedelta(days=1)
    assert bench.state.allotted == 0


def test_a_process_in_need_triggers_another_report_to_a_silent_advertiser() -> None:
    bench = an_allotted_campaign()
    for _ in range(6):
        assert bench.woken_at is not None
        bench.take(CheckClock(), after=bench.woken_at - bench.now)
    silent = bench.state.sequence

    bench.take(a_usage(is_needed=True), after=6 * SECOND)

    assert bench.state.sequence == silent + 1


def test_a_campaign_without_an_advertiser_sends_no_reports() -> None:
    bench = CampaignBench()

    bench.take(bench.offered())
    bench.take(CheckClock(), after=SECOND)

    assert bench.sent(SpendReport) == []
