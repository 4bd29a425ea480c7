"""Clicks: an offer holds what it is expected to cost, and a click is charged only where it fits what is left."""

from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.messages import (
    UNHELD_LEASE,
    Allotment,
    BudgetVerdict,
    CampaignMessage,
    ChargeKind,
    ConfigureCampaign,
    Confirm,
    MoneyKind,
    OpenWindow,
    SessionOver,
    SpendReport,
)
from adloom.core.money import Micros
from tests.budgets.builders import (
    ADVERTISER_ID,
    NOON,
    UNIT,
    AdvertiserBench,
    CampaignBench,
    a_campaign,
    a_confirm,
    a_usage,
    an_advertiser,
)

HOLD = Micros(UNIT * 36 // 1_000)  # Of an offer whose click costs one unit.


def by_click(bench: CampaignBench, lease: int = 0, amount: Micros = UNIT, **fields: Any) -> Confirm:
    """A click on an offer that is made now."""
    return msgspec.structs.replace(bench.offered(lease, amount), kind=ChargeKind.CLICK, **fields)


def a_bench(units: int = 100, **config: Any) -> tuple[CampaignBench, int]:
    """A campaign that pays a unit a click, and the lease of its one process."""
    bench = CampaignBench(a_campaign(daily_budget=Micros(units * UNIT), **config))
    return bench, bench.answered(want=Micros(16 * HOLD), cost=HOLD, price=UNIT).lease


def kinds(bench: CampaignBench) -> list[MoneyKind]:
    return [row.kind for row in bench.rows if row.kind is not MoneyKind.RELEASE]


def test_clicks_are_charged_until_the_budget_is_spent_and_then_marked_over_budget() -> None:
    bench, lease = a_bench(2)

    for _ in range(3):
        bench.take(by_click(bench, lease))
    bench.wait(1)

    assert kinds(bench) == [MoneyKind.CHARGE, MoneyKind.CHARGE, MoneyKind.OVER_BUDGET]
    assert bench.charged == bench.state.spent_total == 2 * UNIT


def test_an_offer_holds_its_expected_cost_and_the_rest_of_the_budget_can_be_offered() -> None:
    bench, lease = a_bench(1)
    bench.take(
        a_usage(
            report=2, lease=lease, given=((bench.second, 5 * HOLD),), want=Micros(0), cost=HOLD, price=UNIT
        )
    )

    assert bench.state.held == 5 * HOLD
    assert bench.answered(session=2, want=HOLD, cost=HOLD, price=UNIT).granted == HOLD


def test_a_click_is_charged_also_where_all_of_the_budget_is_held_for_others() -> None:
    bench = CampaignBench(a_campaign(daily_budget=UNIT))
    for session in range(1, 40):
        bench.answered(session=session, want=UNIT, cost=HOLD, price=UNIT)
    assert bench.answered(session=40, want=HOLD, cost=HOLD, price=UNIT).verdict is BudgetVerdict.DAILY_BUDGET

    bench.take(by_click(bench, next(iter(bench.state.leases))))
    bench.wait(1)

    assert kinds(bench) == [MoneyKind.CHARGE]


def test_nothing_is_granted_where_the_rest_of_the_budget_pays_for_no_click() -> None:
    bench, lease = a_bench(2, total_budget=Micros(UNIT * 3 // 2))

    bench.take(by_click(bench, lease))
    answer = bench.answered(session=2, want=HOLD, cost=HOLD, price=UNIT)

    assert (answer.granted, answer.verdict) == (0, BudgetVerdict.TOTAL_BUDGET)
    assert bench.state.exhausted is BudgetVerdict.TOTAL_BUDGET


def test_a_click_takes_the_hold_of_its_offer() -> None:
    bench, lease = a_bench()
    bench.take(
        a_usage(report=2, lease=lease, given=((bench.second, HOLD),), want=Micros(0), cost=HOLD, price=UNIT)
    )

    bench.take(by_click(bench, lease))
    bench.wait(1)

    assert bench.state.held == 0
    assert bench.state.outstanding == 0
    assert bench.charged == UNIT


def test_a_click_after_the_hold_is_charged_where_it_fits() -> None:
    bench, lease = a_bench()
    click = by_click(bench, lease)
    bench.take(
        a_usage(report=2, lease=lease, given=((bench.second, HOLD),), want=Micros(0), cost=HOLD, price=UNIT)
    )

    bench.wait(600)
    bench.take(click)
    bench.wait(1)

    assert kinds(bench) == [MoneyKind.CHARGE]


def test_impressions_that_are_held_are_charged_whatever_clicks_cost() -> None:
    bench = CampaignBench(a_campaign(daily_budget=Micros(2 * UNIT)))
    lease = bench.answered(want=UNIT, cost=UNIT).lease
    bench.take(a_usage(report=2, lease=lease, given=((bench.second, UNIT),), want=Micros(0), cost=UNIT))
    shown = bench.offered(lease)

    # The campaign pays for clicks from now on.
    clicks = bench.answered(session=1, report=3, want=HOLD, cost=HOLD, price=UNIT)
    assert clicks.lease != lease
    for _ in range(2):
        bench.take(by_click(bench, clicks.lease))
    bench.take(shown)
    bench.wait(1)

    assert kinds(bench) == [MoneyKind.CHARGE, MoneyKind.OVER_BUDGET, MoneyKind.CHARGE]


def test_a_lease_of_the_other_kind_has_ended() -> None:
    bench, lease = a_bench()

    answer = bench.answered(report=2, lease=lease, want=UNIT, cost=UNIT)

    assert answer.lease == lease
    assert answer.ends_at <= bench.now


def test_a_click_of_another_day_is_charged_to_the_day_on_which_it_comes() -> None:
    bench, lease = a_bench(1)
    click, late = by_click(bench, lease), by_click(bench, lease)
    bench.take(click)

    bench.take(late, after=timedelta(hours=12))
    bench.wait(1)

    assert [row.day - NOON.date() for row in bench.rows if row.kind is MoneyKind.CHARGE] == [
        timedelta(0),
        timedelta(days=1),
    ]


class ReportingBench(CampaignBench):
    """A campaign whose reports to its advertiser are on their way."""

    def __init__(self, config: ConfigureCampaign) -> None:
        self.reports: list[SpendReport] = []
        super().__init__(config)

    def take(self, message: CampaignMessage, *, after: timedelta = timedelta()) -> None:
        super().take(message, after=after)
        self.reports += self.sent(SpendReport)


class Pair:
    """A campaign and its advertiser, whose messages arrive at once."""

    def __init__(self, units: int) -> None:
        self.advertiser = AdvertiserBench(an_advertiser(daily_budget=Micros(units * UNIT)))
        config = a_campaign(daily_budget=None, advertiser_id=ADVERTISER_ID, is_allotted=True)
        self.campaign = ReportingBench(config)
        self.deliver()

    def deliver(self) -> None:
        while self.campaign.reports:
            self.advertiser.now = self.campaign.now
            self.advertiser.take(self.campaign.reports.pop(0))
            for answer in self.advertiser.sent(Allotment):
                self.campaign.take(answer)

    def take(self, message: Any) -> None:
        self.campaign.take(message)
        self.deliver()

    def wait(self, seconds: float) -> None:
        self.campaign.wait(seconds)
        self.deliver()


def test_clicks_that_come_together_wait_for_the_budget_of_the_advertiser() -> None:
    pair = Pair(10)
    bench = pair.campaign
    pair.take(a_usage(want=Micros(16 * HOLD), cost=HOLD, price=UNIT))
    lease = next(iter(bench.state.leases))

    clicks = [by_click(bench, lease) for _ in range(12)]
    for click in clicks:
        bench.take(click)
        bench.take(click)  # Repeated.
        pair.deliver()
    pair.wait(10)

    assert kinds(bench).count(MoneyKind.CHARGE) == 10
    assert kinds(bench).count(MoneyKind.OVER_BUDGET) == 2
    assert bench.state.waiting == ()


def test_impressions_without_a_hold_wait_for_the_budget_of_the_advertiser_too() -> None:
    pair = Pair(10)
    bench = pair.campaign

    for number in range(12):
        confirm = a_confirm(number, lease=UNHELD_LEASE)
        bench.take(confirm)
        bench.take(confirm)  # Repeated.
        pair.deliver()
    pair.wait(10)

    assert kinds(bench).count(MoneyKind.CHARGE) == 10
    assert kinds(bench).count(MoneyKind.UNBILLED) == 2
    assert bench.state.waiting == ()


def test_a_click_that_waits_is_persisted_and_not_forgotten() -> None:
    pair = Pair(10)
    bench = pair.campaign
    bench.take(by_click(bench))

    assert bench.is_persisted
    assert len(bench.state.waiting) == 1
    pair.deliver()
    pair.wait(1)

    assert kinds(bench) == [MoneyKind.CHARGE]


@given(
    daily=st.integers(0, 6),
    total=st.none() | st.integers(0, 9),
    actions=st.lists(
        st.tuples(
            st.sampled_from(
                ["ask", "asks to pay impressions", "give", "click", "see", "window", "over", "wait", "budget"]
            ),
            st.integers(1, 3),
            st.integers(1, 4),
        ),
        max_size=60,
    ),
)
def test_whatever_is_offered_and_clicked_no_budget_is_exceeded(
    daily: int, total: int | None, actions: list[tuple[str, int, int]]
) -> None:
    """Budgets only rise here: what was charged before one was lowered stays charged."""
    config = a_campaign(
        daily_budget=Micros(daily * UNIT), total_budget=None if total is None else Micros(total * UNIT)
    )
    bench = CampaignBench(config)
    reports = dict.fromkeys(range(1, 4), 0)
    for number, (action, session, amount) in enumerate(actions):
        _act(bench, action, session, amount, reports)
        if action == "budget":
            config = a_campaign(
                version=number + 2,
                daily_budget=Micros((config.daily_budget or 0) + amount * UNIT),
                total_budget=config.total_budget,
            )
            bench.take(config)
        assert bench.state.spent_window <= (config.daily_budget or 0)
        assert config.total_budget is None or bench.state.spent_total <= config.total_budget
    bench.wait(1)
    assert bench.charged == bench.state.spent_total


def _act(bench: CampaignBench, action: str, session: int, amount: int, reports: dict[int, int]) -> None:
    lease = next((one for one in bench.state.leases.values() if one.session == session), None)
    match action:
        case "ask" | "asks to pay impressions" if session not in bench.state.sessions_over:
            reports[session] += 1
            price = UNIT if action == "ask" else Micros(0)
            cost = HOLD if price else UNIT
            bench.take(
                a_usage(
                    session=session,
                    report=reports[session],
                    want=Micros(amount * UNIT),
                    cost=cost,
                    price=price,
                )
            )
        case "give" if lease is not None and lease.closed_second is None and lease.unassigned > lease.ahead:
            reports[session] += 1
            cost, price = (HOLD, UNIT) if lease.is_by_click else (UNIT, Micros(0))
            gives = min(lease.unassigned - lease.ahead, amount * cost)
            bench.take(
                a_usage(
                    session=session,
                    report=reports[session],
                    lease=lease.number,
                    given=((bench.second, gives),),
                    want=Micros(lease.unassigned - gives),
                    cost=cost,
                    price=price,
                )
            )
        case "click":
            for _ in range(amount):
                bench.take(by_click(bench, lease.number if lease else 0))
        case "see":
            bench.take(bench.offered(lease.number if lease else 0))
        case "window":
            bench.take(OpenWindow(reason="once more"))
        case "over":
            bench.take(SessionOver(session=session, second=bench.second))
        case _:
            bench.wait(40 * amount)
