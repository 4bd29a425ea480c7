"""Incidents of an earlier system, as tests that they cannot happen here."""

from datetime import timedelta
from uuid import UUID

import msgspec

from adloom.budgets.campaign.headroom import compute_headroom
from adloom.budgets.campaign.state import CampaignState
from adloom.budgets.messages import (
    Allotment,
    AskBudget,
    BudgetVerdict,
    CampaignExhausted,
    CampaignRestored,
    CheckClock,
    LeaseAnswer,
    MoneyKind,
    SpendUpdate,
)
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.builders import (
    ADVERTISER_ID,
    CAMPAIGN_ID,
    NOON,
    SECOND,
    UNIT,
    AdvertiserBench,
    CampaignBench,
    a_campaign,
    a_report,
    a_usage,
    an_advertiser,
)

MIDNIGHT = NOON.replace(hour=0) + timedelta(days=1)
OTHER = CampaignId(UUID(int=101))
TODAY = NOON.date()
TOMORROW = MIDNIGHT.date()


def test_incident_1_midnight_blackout() -> None:
    """A campaign without spend rolled its day without an update; yesterday's figures throttled it all day."""
    bench = CampaignBench()
    bench.now = MIDNIGHT

    bench.take(CheckClock())

    [update] = bench.published(SpendUpdate)
    assert (update.day, update.spent_window, update.spent_today) == (TOMORROW, 0, 0)
    assert bench.is_persisted
    assert bench.answered(report=1).verdict is BudgetVerdict.GRANTED


def test_incident_2_the_latch() -> None:
    """Flags of exhausted campaigns were never cleared: 36 minutes without ads, until a restart."""
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    lease = bench.answered().lease
    bench.take(bench.offered(lease))
    bench.wait(1)
    assert bench.state.exhausted is BudgetVerdict.DAILY_BUDGET

    bench.wait((MIDNIGHT - bench.now).total_seconds())  # No message arrives.

    assert bench.state.exhausted is None
    assert bench.state.day == TOMORROW
    assert len(bench.published(CampaignRestored)) == 1


def test_incident_3_exhaustion_drag() -> None:
    """Exhausted campaigns stayed in an average that throttled the running ones."""
    spent, running = CAMPAIGN_ID, OTHER
    bench = AdvertiserBench(an_advertiser(daily_budget=Micros(10 * UNIT)))
    bench.take(
        a_report(
            campaign_id=spent,
            spent_by_day={TODAY: 4 * UNIT},
            committed=Micros(4 * UNIT),
            target=Micros(4 * UNIT),
        )
    )

    for sequence in range(1, 20):
        committed = bench.state.slices[running].allotted if running in bench.state.slices else 0
        bench.take(
            a_report(
                campaign_id=running,
                sequence=sequence,
                spent_by_day={TODAY: committed},
                committed=Micros(committed),
                target=Micros(committed + 3 * UNIT),
                is_needed=True,
            ),
            after=SECOND,
        )

    assert bench.state.slices[running].get_spent(TODAY) == 6 * UNIT


def test_incident_4_a_rest_that_covers_no_offer() -> None:
    """The rest of a budget was below every price: the campaign could not serve, and was never marked exhausted."""
    bench = CampaignBench(a_campaign(daily_budget=Micros(UNIT + UNIT // 2)))
    lease = bench.answered().lease

    bench.take(bench.offered(lease))

    [update] = bench.published(CampaignExhausted)
    assert update.verdict is BudgetVerdict.DAILY_BUDGET
    assert (
        bench.answered(report=2, lease=lease, given=((bench.second, UNIT),)).verdict
        is BudgetVerdict.DAILY_BUDGET
    )


def test_incident_5_pending_spend_counted_twice() -> None:
    """Spend on its way to the advertiser counted as pending and as spent: pacing saw it double."""
    bench = CampaignBench(a_campaign(daily_budget=Micros(10 * UNIT)))
    lease = bench.answered(want=Micros(4 * UNIT)).lease
    before = compute_headroom(bench.state, bench.now).amount

    bench.take(bench.offered(lease))  # Charged, and not flushed yet.
    buffered = compute_headroom(bench.state, bench.now).amount
    bench.wait(1)

    assert before == buffered == compute_headroom(bench.state, bench.now).amount == 6 * UNIT
    assert bench.state.spent_today + bench.state.outstanding == 4 * UNIT


def test_incident_6_spend_cache_presence_loop() -> None:
    """Evicted figures counted as no budget, and a campaign without a budget was never asked again."""
    bench = CampaignBench(a_campaign(daily_budget=Micros(10 * UNIT)))
    lease = bench.answered(want=Micros(4 * UNIT)).lease
    bench.take(bench.offered(lease))
    bench.wait(1)

    # Unloaded, and loaded again by the next message.
    bench.state = msgspec.msgpack.decode(msgspec.msgpack.encode(bench.state), type=CampaignState)
    bench.take(AskBudget())
    status = bench.replied()

    assert isinstance(status, SpendUpdate)
    assert (status.spent_today, status.leased) == (UNIT, 3 * UNIT)
    assert bench.answered(session=2).verdict is BudgetVerdict.GRANTED, "a new process gets a lease"


def test_incident_7_backward_day_roll() -> None:
    """A report after midnight rolled the advertiser back to yesterday and erased today's spend."""
    bench = AdvertiserBench()
    bench.now = MIDNIGHT + SECOND
    bench.take(a_report(day=TOMORROW, spent_by_day={TOMORROW: 3 * UNIT}, committed=Micros(3 * UNIT)))

    late = a_report(campaign_id=OTHER, spent_by_day={TODAY: UNIT}, committed=UNIT, target=UNIT)
    bench.take(late)

    assert bench.state.day == TOMORROW
    assert bench.state.spent == 3 * UNIT
    assert bench.state.get_spent(TODAY) == UNIT, "the late report counts for yesterday"


def test_incident_7_a_late_confirm_is_charged_to_the_day_of_its_offer() -> None:
    """Also for a campaign: a confirm after midnight counts for yesterday and does not roll the day back."""
    bench = CampaignBench(a_campaign(daily_budget=UNIT), MIDNIGHT - SECOND)
    lease = bench.answered().lease
    confirm = bench.offered(lease)

    bench.take(confirm, after=2 * SECOND)
    bench.wait(1)

    assert [(row.kind, row.day) for row in bench.rows] == [(MoneyKind.CHARGE, TODAY)]
    assert (bench.state.day, bench.state.spent_window) == (TOMORROW, 0)
    assert bench.answered(session=2).verdict is BudgetVerdict.GRANTED, "today's budget is whole"


def test_incident_8_flush_id_reuse() -> None:
    """Flush numbers restarted at 0; the advertiser took new spend for repeated spend, and spend froze."""
    bench = AdvertiserBench()
    bench.take(a_report(incarnation=5, sequence=40, spent_by_day={TODAY: UNIT}, committed=UNIT, target=UNIT))

    bench.take(
        a_report(
            incarnation=6,
            sequence=1,
            spent_by_day={TODAY: 2 * UNIT},
            committed=Micros(2 * UNIT),
            target=Micros(2 * UNIT),
        )
    )

    assert bench.state.spent == 2 * UNIT
    assert [one.sequence for one in bench.sent(Allotment)] == [1]


def test_incident_9_phantom_reservations() -> None:
    """Reservations for impressions that never came were lost forever."""
    bench = CampaignBench(a_campaign(daily_budget=UNIT, hold_seconds=300))
    lease = bench.answered().lease
    bench.take(a_usage(report=2, lease=lease, given=((bench.second, UNIT),), want=Micros(0)))
    assert bench.answered(session=2).verdict is BudgetVerdict.DAILY_BUDGET

    bench.wait(300)

    assert [(row.kind, row.amount) for row in bench.rows] == [(MoneyKind.RELEASE, UNIT)]
    assert bench.answered(session=2, report=2, lease=bench.state.leases_made).granted == UNIT


def test_incident_9_a_refused_report_reserves_nothing() -> None:
    """A denied reservation was granted at the second request and never charged."""
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    bench.answered()

    for report in (1, 1, 2, 3):
        bench.take(a_usage(session=2, report=report, lease=0 if report == 1 else bench.state.leases_made))
        [answer] = bench.published(LeaseAnswer)
        assert (answer.granted, answer.verdict) == (0, BudgetVerdict.DAILY_BUDGET)

    assert bench.state.outstanding == UNIT


def test_incident_3_a_smooth_campaign_depends_on_its_own_pace_only() -> None:
    """The spend of other campaigns does not throttle a campaign."""
    config = a_campaign(
        advertiser_id=ADVERTISER_ID,
        pacing=PacingStrategy.SMOOTH,
        is_allotted=True,
        daily_budget=Micros(24 * UNIT),
    )
    bench = CampaignBench(config)
    bench.take(Allotment(sequence=bench.state.sequence, day=TODAY, allotted=Micros(24 * UNIT)))

    assert compute_headroom(bench.state, bench.now, is_paced=True).amount == 24 * UNIT * 12 // 20
