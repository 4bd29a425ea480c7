"""Refunds: given back once, never more than was charged, and the budgets allow as much again."""

from datetime import timedelta
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.bidding.window import BidDecision, BidStrategy
from adloom.budgets.addresses import ADVERTISER, CAMPAIGN
from adloom.budgets.bid_model import BidsDecided, MultiplierRequest
from adloom.budgets.messages import (
    BudgetVerdict,
    CampaignExhausted,
    CampaignRestored,
    CheckClock,
    DayRefund,
    DayTotal,
    MoneyKind,
    Refund,
    RefundPart,
    SpendReport,
    SpendUpdate,
)
from adloom.core.ids import BannerId, PlacementId, RequestId
from adloom.core.money import Micros
from adloom.schedule.pacing import PacingStrategy
from tests.budgets.builders import ADVERTISER_ID, CAMPAIGN_ID, NOON, UNIT, CampaignBench, a_campaign

TODAY = NOON.date()
DAY = timedelta(days=1)


def a_part(units: float = 1, **fields: object) -> RefundPart:
    return msgspec.structs.replace(
        RefundPart(
            day=TODAY,
            day_spent=Micros(3 * UNIT),
            window=1,
            hour=int(NOON.timestamp()),
            banner_id=BannerId(UUID(int=7)),
            placement_id=PlacementId(UUID(int=8)),
            amount=Micros(int(units * UNIT)),
        ),
        **fields,
    )


def a_refund(*parts: RefundPart, number: int = 1_000) -> Refund:
    return Refund(refund_id=RequestId(UUID(int=number)), parts=parts)


def a_bench(charged: int, **config: object) -> CampaignBench:
    """A campaign that was charged so many units."""
    bench = CampaignBench(a_campaign(**config))
    for _ in range(charged):
        bench.take(bench.offered())
    bench.wait(1)
    assert bench.charged == charged * UNIT
    return bench


def test_a_refund_lowers_the_spend_of_total_day_and_window() -> None:
    bench = a_bench(3)

    bench.take(a_refund(a_part(1), a_part(0.5)))

    state = bench.state
    assert (state.spent_total, state.spent_today, state.spent_window) == (1.5 * UNIT,) * 3
    rows = [row for row in bench.rows if row.kind is MoneyKind.REFUND]
    assert [(row.amount, row.slot, row.request_id) for row in rows] == [
        (UNIT, 0, UUID(int=1_000)),
        (UNIT // 2, 1, UUID(int=1_000)),
    ]
    assert {row.second for row in rows} == {int(NOON.timestamp())}, "the hour that was charged"
    assert bench.recorded(DayTotal) == [
        DayTotal(kind=CAMPAIGN, id=CAMPAIGN_ID, day=TODAY, spent=Micros(3 * UNIT // 2))
    ]
    [update] = bench.published(SpendUpdate)
    assert update.spent_total == 1.5 * UNIT
    assert bench.is_persisted


def test_a_repeated_refund_is_given_back_once() -> None:
    bench = a_bench(3)

    for _ in range(3):
        bench.take(a_refund(a_part(1)))

    assert bench.state.spent_total == 2 * UNIT


@pytest.mark.parametrize(
    "parts",
    [
        [a_part(4)],
        [a_part(2), a_part(2)],
        [a_part(2, day=TODAY - DAY), a_part(2, day=TODAY - 2 * DAY)],
    ],
)
def test_more_than_was_spent_is_not_given_back(parts: list[RefundPart]) -> None:
    bench = a_bench(3)
    before = bench.state

    bench.take(a_refund(*parts))

    assert bench.state == before
    assert not [row for row in bench.rows if row.kind is MoneyKind.REFUND]


def test_a_campaign_that_has_spent_its_budget_serves_again_after_a_refund() -> None:
    bench = CampaignBench(a_campaign(daily_budget=Micros(2 * UNIT), total_budget=Micros(2 * UNIT)))
    lease = bench.answered(want=Micros(2 * UNIT)).lease
    for _ in range(2):
        bench.take(bench.offered(lease))
    bench.wait(1)
    exhausted = bench.answered(session=2)
    assert exhausted.verdict is BudgetVerdict.TOTAL_BUDGET

    bench.take(a_refund(a_part(1)))

    assert bench.published(CampaignRestored)
    assert bench.answered(session=2, report=2).granted == UNIT
    assert bench.state.spent_total + bench.state.outstanding <= 2 * UNIT


def test_a_refund_of_an_earlier_window_does_not_open_the_day_again() -> None:
    bench = a_bench(3)
    window = bench.state.window

    bench.take(a_refund(a_part(1, window=window - 1)))

    assert (bench.state.spent_window, bench.state.spent_total) == (3 * UNIT, 2 * UNIT)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_day_that_is_over_is_corrected_for_campaign_and_advertiser(*, is_known: bool) -> None:
    bench = a_bench(3, advertiser_id=ADVERTISER_ID)
    bench.take(CheckClock(), after=3 * DAY)
    if not is_known:  # As when its leases were settled on a later day; a campaign that rests knows it still.
        bench.state = msgspec.structs.replace(bench.state, spent_by_day={})

    bench.take(a_refund(a_part(1)))

    assert (bench.state.spent_total, bench.state.spent_today) == (2 * UNIT, 0)
    assert bench.recorded(DayRefund) == [
        DayRefund(kind=CAMPAIGN, id=CAMPAIGN_ID, day=TODAY, amount=UNIT),
        DayRefund(kind=ADVERTISER, id=ADVERTISER_ID, day=TODAY, amount=UNIT),
    ]
    assert not bench.recorded(DayTotal)


@pytest.mark.parametrize("days", [0, 2])
def test_the_advertiser_hears_of_a_refund_of_a_recent_day(days: int) -> None:
    bench = a_bench(3, advertiser_id=ADVERTISER_ID)
    bench.take(CheckClock(), after=days * DAY)
    spent = bench.state.spent_by_day if not days else {}  # As when the leases of the day are settled.
    bench.state = msgspec.structs.replace(bench.state, report=None, spent_by_day=spent)

    bench.take(a_refund(a_part(1)))

    [report] = bench.sent(SpendReport)
    assert report.spent_by_day == {TODAY: 2 * UNIT}
    assert [one.spent for one in bench.recorded(DayTotal)] == [2 * UNIT]
    assert not bench.recorded(DayRefund)


def a_decision(request: MultiplierRequest) -> BidsDecided:
    """A decision to bid in full."""
    return BidsDecided(
        day=request.day,
        window=request.window.window,
        strategy=request.strategy,
        decision=BidDecision(multiplier=1.0, reason="pacer"),
        memory=request.memory,
        shadows={},
        counts=request.counts,
        counted_before=request.counted_before,
    )


actions = st.lists(
    st.tuples(
        st.sampled_from(["charge", "refund", "again", "wait", "day"]), st.integers(1, 3), st.integers(0, 2)
    ),
    max_size=40,
)


@given(actions=actions, budget=st.integers(1, 6))
def test_spend_is_the_sum_of_the_ledger_never_negative_and_never_over_budget(
    actions: list[tuple[str, int, int]], budget: int
) -> None:
    """The law of refunds, over any order of charges, refunds, repeated refunds and days."""
    total = Micros(budget * UNIT)
    bench = CampaignBench(a_campaign(daily_budget=Micros(3 * UNIT), total_budget=total))
    refunds = [a_refund(a_part(1))]
    for number, (action, amount, days_ago) in enumerate(actions):
        match action:
            case "charge":
                bench.take(bench.offered(amount=Micros(amount * UNIT)))
            case "refund":
                day, window = bench.state.day - days_ago * DAY, bench.state.window - days_ago
                spent = Micros(
                    sum(
                        row.amount * (1 if row.kind is MoneyKind.CHARGE else -1)
                        for row in bench.rows
                        if row.day == day and row.kind in {MoneyKind.CHARGE, MoneyKind.REFUND}
                    )
                )
                part = a_part(amount, day=day, window=window, day_spent=spent)
                refunds.append(a_refund(part, number=5_000 + number))
                bench.take(refunds[-1])
            case "again":
                bench.take(refunds[-amount % len(refunds)])
            case "wait":
                bench.wait(1)
            case _:
                bench.now += DAY
        state = bench.state
        buffered = sum(row.amount for row in state.buffer if row.kind is MoneyKind.CHARGE)
        refunded = sum(row.amount for row in bench.rows if row.kind is MoneyKind.REFUND)
        assert state.spent_total == bench.charged + buffered - refunded
        assert 0 <= state.spent_total <= total
        assert 0 <= state.spent_window <= 3 * UNIT
        assert all(spent >= 0 for spent in state.spent_by_day.values())
        assert not (bench.published(CampaignExhausted) and bench.published(CampaignRestored))


@given(steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=15))
def test_what_was_charged_lately_is_the_same_after_a_refund(steps: list[tuple[int, int]]) -> None:
    """To give money back is no sign that offers cost less: pace and bids go on from what was charged."""
    config = a_campaign(
        pacing=PacingStrategy.SMOOTH,
        daily_budget=Micros(1_000 * UNIT),
        has_bid=True,
        bid_strategy=BidStrategy.PACER,
    )
    benches = [CampaignBench(config), CampaignBench(config)]
    leases, costs = [0, 0], [list[float](), list[float]()]
    given_back = 0
    for number, (charged, refunded) in enumerate(steps):
        for place, bench in enumerate(benches):
            usage = {"report": number + 1, "lease": leases[place], "offers": charged, "requests": charged}
            leases[place] = bench.answered(want=Micros(10 * UNIT), **usage).lease
            for request in bench.published(MultiplierRequest):
                costs[place].append(request.window.window_cost)
                bench.take(a_decision(request))
            for _ in range(charged):
                bench.take(bench.offered(leases[place]))
            bench.wait(400)
        if refunded * UNIT <= (spent := benches[1].state.spent_today):
            part = a_part(refunded, day_spent=spent, window=benches[1].state.window)
            benches[1].take(a_refund(part, number=5_000 + number))
            given_back += refunded

    plain, refunding = (bench.state for bench in benches)
    assert refunding.spent_today == plain.spent_today - given_back * UNIT
    assert costs[1] == costs[0]
    if steps:
        assert plain.pace is not None
        assert refunding.pace is not None
        assert (refunding.pace.charged, refunding.pace.offers) == (plain.pace.charged, plain.pace.offers)
