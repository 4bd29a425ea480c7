"""What went wrong in the original (entities-reference, 6.4), so that it does not go wrong here."""

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
    """A campaign that had spent nothing rolled silently; figures of yesterday throttled it to nothing all day."""
    bench = CampaignBench()
    bench.now = MIDNIGHT

    bench.take(CheckClock())

    [update] = bench.published(SpendUpdate)
    assert (update.day, update.spent_window, update.spent_today) == (TOMORROW, 0, 0)
    assert bench.is_persisted
    assert bench.answered(report=1).verdict is BudgetVerdict.GRANTED


def test_incident_2_the_latch() -> None:
    """Flags of exhausted campaigns were cleared by nobody: 36 minutes dark, until somebody restarted everything."""
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    lease = bench.answered().lease
    bench.take(bench.offered(lease))
    bench.wait(1)
    assert bench.state.exhausted is BudgetVerdict.DAILY_BUDGET

    bench.wait((MIDNIGHT - bench.now).total_seconds())  # Nobody says anything.

    assert bench.state.exhausted is None
    assert bench.state.day == TOMORROW
    assert len(bench.published(CampaignRestored)) == 1


def test_incident_3_exhaustion_drag() -> None:
    """Campaigns that had spent everything stayed in an average by which the living ones were throttled."""
    spent, alive = CAMPAIGN_ID, OTHER
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
        committed = bench.state.slices[alive].allotted if alive in bench.state.slices else 0
        bench.take(
            a_report(
                campaign_id=alive,
                sequence=sequence,
                spent_by_day={TODAY: committed},
                committed=Micros(committed),
                target=Micros(committed + 3 * UNIT),
                is_needed=True,
            ),
            after=SECOND,
        )

    assert bench.state.slices[alive].spent_on(TODAY) == 6 * UNIT


def test_incident_4_dust_budget() -> None:
    """What was left was less than any price: the campaign could not serve and never said that it was exhausted."""
    bench = CampaignBench(a_campaign(daily_budget=Micros(UNIT + UNIT // 2)))
    lease = bench.answered().lease

    bench.take(bench.offered(lease))

    [news] = bench.published(CampaignExhausted)
    assert news.verdict is BudgetVerdict.DAILY_BUDGET
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
    """Figures that a cache had dropped were taken for no budget, and whoever has no budget was never asked again."""
    bench = CampaignBench(a_campaign(daily_budget=Micros(10 * UNIT)))
    lease = bench.answered(want=Micros(4 * UNIT)).lease
    bench.take(bench.offered(lease))
    bench.wait(1)

    # Put to sleep, forgotten, and read again when somebody asks.
    bench.state = msgspec.msgpack.decode(msgspec.msgpack.encode(bench.state), type=CampaignState)
    bench.take(AskBudget())
    standing = bench.replied()

    assert isinstance(standing, SpendUpdate)
    assert (standing.spent_today, standing.leased) == (UNIT, 3 * UNIT)
    assert bench.answered(session=2).verdict is BudgetVerdict.GRANTED, "a process that knows nothing is told"


def test_incident_7_backward_day_roll() -> None:
    """A report that arrived after midnight rolled the advertiser back to yesterday and wiped out what today had."""
    bench = AdvertiserBench()
    bench.now = MIDNIGHT + SECOND
    bench.take(a_report(day=TOMORROW, spent_by_day={TOMORROW: 3 * UNIT}, committed=Micros(3 * UNIT)))

    late = a_report(campaign_id=OTHER, spent_by_day={TODAY: UNIT}, committed=UNIT, target=UNIT)
    bench.take(late)

    assert bench.state.day == TOMORROW
    assert bench.state.spent == 3 * UNIT
    assert bench.state.spent_on(TODAY) == UNIT, "and yesterday has what is yesterday's"


def test_incident_7_a_late_confirm_is_charged_to_the_day_of_its_offer() -> None:
    """The same from below: a confirm after midnight is of yesterday, and rolls nothing back."""
    bench = CampaignBench(a_campaign(daily_budget=UNIT), MIDNIGHT - SECOND)
    lease = bench.answered().lease
    confirm = bench.offered(lease)

    bench.take(confirm, after=2 * SECOND)
    bench.wait(1)

    assert [(row.kind, row.day) for row in bench.rows] == [(MoneyKind.CHARGE, TODAY)]
    assert (bench.state.day, bench.state.spent_window) == (TOMORROW, 0)
    assert bench.answered(session=2).verdict is BudgetVerdict.GRANTED, "today's budget is whole"


def test_incident_8_flush_id_reuse() -> None:
    """Flush numbers began at 0 again after a restart; the advertiser took new spend for old, and spend froze."""
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
    assert [one.sequence for one in bench.told(Allotment)] == [1]


def test_incident_9_phantom_reservations() -> None:
    """What was reserved for impressions that never came was gone for ever."""
    bench = CampaignBench(a_campaign(daily_budget=UNIT, hold_seconds=300))
    lease = bench.answered().lease
    bench.take(a_usage(report=2, lease=lease, given=((bench.second, UNIT),), want=Micros(0)))
    assert bench.answered(session=2).verdict is BudgetVerdict.DAILY_BUDGET

    bench.wait(300)

    assert [(row.kind, row.amount) for row in bench.rows] == [(MoneyKind.RELEASE, UNIT)]
    assert bench.answered(session=2, report=2, lease=bench.state.leases_made).granted == UNIT


def test_incident_9_who_is_turned_away_has_reserved_nothing() -> None:
    """A reservation that was denied, and asked for again, was granted and never charged."""
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    bench.answered()

    for report in (1, 1, 2, 3):
        bench.take(a_usage(session=2, report=report, lease=0 if report == 1 else bench.state.leases_made))
        [answer] = bench.published(LeaseAnswer)
        assert (answer.granted, answer.verdict) == (0, BudgetVerdict.DAILY_BUDGET)

    assert bench.state.outstanding == UNIT


def test_a_smooth_campaign_sees_its_own_pace_only() -> None:
    """Incident 3 once more: what others have spent does not slow anybody down."""
    config = a_campaign(
        advertiser_id=ADVERTISER_ID,
        pacing=PacingStrategy.SMOOTH,
        is_allotted=True,
        daily_budget=Micros(24 * UNIT),
    )
    bench = CampaignBench(config)
    bench.take(Allotment(sequence=bench.state.sequence, day=TODAY, allotted=Micros(24 * UNIT)))

    assert compute_headroom(bench.state, bench.now, is_paced=True).amount == 24 * UNIT * 12 // 20
