"""When a campaign's budgets are spent, if it goes on as it does today."""

# pure

from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.budgets.status import PROJECTED_FROM_MICROSECONDS, BudgetStatus
from adloom.core.money import Micros

# Further ahead nothing is known: prices, traffic and plans change.
LOOKED_AHEAD: Final = timedelta(days=366)


class SpentAt(msgspec.Struct, frozen=True):
    """The moments; None where a budget lasts, or where nothing is spent."""

    daily: datetime | None = None
    total: datetime | None = None


NEVER: Final = SpentAt()


def find_spent_at(status: BudgetStatus, *, now: datetime, ends_at: datetime | None = None) -> SpentAt:
    """Extrapolate what is spent today: the day's budget within the day, the total budget over days like this one.

    A budget that is spent already was spent by now. One that outlasts the campaign is not spent.
    """
    day = status.budget_day
    elapsed = max(day.compute_elapsed_micros(now), PROJECTED_FROM_MICROSECONDS)
    rate = status.spent_today / elapsed  # Micros of money by a microsecond.
    daily = _find_within(_compute_left(status.daily_budget, status.spent_window), rate, now)
    if daily is not None and daily >= day.ends_at:
        daily = None
    total = _find_total(status, rate, now)
    return SpentAt(_take_if_before(daily, ends_at), _take_if_before(total, ends_at))


def _find_total(status: BudgetStatus, rate: float, now: datetime) -> datetime | None:
    left = _compute_left(status.total_budget, status.spent_total)
    if left is None:
        return None
    day = status.budget_day
    rest = (day.ends_at - now) / timedelta(microseconds=1)
    today = rate * max(0.0, rest)
    left_today = _compute_left(status.daily_budget, status.spent_window)
    if left_today is not None:
        today = min(today, left_today)
    if left <= today:
        return _find_within(left, rate, now)
    a_day = rate * day.length_micros
    if status.daily_budget is not None:
        a_day = min(a_day, status.daily_budget)
    if a_day <= 0:
        return None
    days = (left - today) / a_day
    return None if days > LOOKED_AHEAD.days else day.ends_at + timedelta(days=days)


def _find_within(left: Micros | None, rate: float, now: datetime) -> datetime | None:
    if left is None:
        return None
    if left == 0:
        return now
    if rate <= 0 or left / rate > LOOKED_AHEAD / timedelta(microseconds=1):
        return None
    return now + timedelta(microseconds=left / rate)


def _compute_left(budget: Micros | None, spent: Micros) -> Micros | None:
    return None if budget is None else Micros(max(0, budget - spent))


def _take_if_before(at: datetime | None, ends_at: datetime | None) -> datetime | None:
    return None if at is None or (ends_at is not None and at >= ends_at) else at
