"""When budgets are spent, if a day goes on as it does."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from adloom.budgets.spent_at import NEVER, SpentAt, find_spent_at
from adloom.budgets.status import BudgetStatus
from adloom.core.money import Micros
from adloom.schedule.budget_day import build_budget_day
from tests.support.for_each import for_each

NOON = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
DAY = build_budget_day(NOON.date(), "UTC")
amounts = st.integers(0, 10**12)


def a_status(
    *, daily: int | None = None, total: int | None = None, today: int = 0, before: int = 0
) -> BudgetStatus:
    return BudgetStatus(
        day=DAY.day,
        daily_budget=None if daily is None else Micros(daily),
        total_budget=None if total is None else Micros(total),
        spent_today=Micros(today),
        spent_window=Micros(today),
        spent_total=Micros(today + before),
        held=Micros(0),
        leased=Micros(0),
        remaining_today=None,
        pace=None,
        projected=Micros(0),
        budget_day=DAY,
    )


@for_each(
    ("status", "found"),
    [
        # Half of the day is over.
        (a_status(daily=150, today=100), SpentAt(daily=NOON + timedelta(hours=6))),
        (a_status(daily=100, today=100), SpentAt(daily=NOON)),
        (a_status(daily=300, today=100), NEVER),
        (a_status(daily=100), NEVER),
        (a_status(today=100), NEVER),
        (a_status(total=150, today=100), SpentAt(total=NOON + timedelta(hours=6))),
        (a_status(total=600, today=100), SpentAt(total=DAY.ends_at + timedelta(days=2))),
        (a_status(total=600, today=100, before=500), SpentAt(total=NOON)),
        # The day's budget slows it down: 100 are left, 50 a day.
        (a_status(daily=50, total=150, today=50), SpentAt(daily=NOON, total=DAY.ends_at + timedelta(days=2))),
        (a_status(total=10**9, today=1), NEVER),
    ],
)
def test_a_budget_is_spent_when_the_rate_of_today_says_so(status: BudgetStatus, found: SpentAt) -> None:
    assert find_spent_at(status, now=NOON) == found


def test_a_budget_that_outlasts_the_campaign_is_not_spent() -> None:
    status = a_status(total=600, today=100)

    assert find_spent_at(status, now=NOON, ends_at=NOON + timedelta(days=1)) == NEVER


@given(st.none() | amounts, st.none() | amounts, amounts, amounts, st.integers(0, 86_399))
def test_the_moments_are_never_in_the_past_and_the_day_ends_with_its_day(
    daily: int | None, total: int | None, today: int, before: int, second: int
) -> None:
    now = DAY.starts_at + timedelta(seconds=second)

    found = find_spent_at(a_status(daily=daily, total=total, today=today, before=before), now=now)

    assert found.daily is None or now <= found.daily < DAY.ends_at
    assert found.total is None or now <= found.total
    if daily is not None and today >= daily:
        assert found.daily == now
    if total is not None and today + before >= total:
        assert found.total == now
    if today == 0:
        assert found.total is None or total == before or (total or 0) <= before


@given(amounts.filter(bool), amounts.filter(bool), amounts)
def test_a_larger_budget_never_ends_sooner(today: int, total: int, more: int) -> None:
    sooner = find_spent_at(a_status(total=total, today=today), now=NOON).total
    later = find_spent_at(a_status(total=total + more, today=today), now=NOON).total

    assert later is None or (sooner is not None and sooner <= later + timedelta(microseconds=1))
