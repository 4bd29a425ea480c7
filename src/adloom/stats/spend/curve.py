"""The curve of a day's spend: spent by each hour, and allowed by then."""

# pure

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.core.money import Micros
from adloom.schedule.budget_day import BudgetDay
from adloom.schedule.pacing import PacingStrategy, compute_allowance

ONE_HOUR: Final = timedelta(hours=1)
# The line of smooth pacing bends between hours: a quarter of an hour is fine enough.
STEP: Final = timedelta(minutes=15)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Daily budgets that are spread over the day, those that are not, and the bound of both together."""

    smooth: Micros = Micros(0)
    accelerated: Micros = Micros(0)
    most: Micros | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.smooth or self.accelerated)

    def find_allowed(self, moment: datetime, day: BudgetDay) -> Micros | None:
        """Return what may be spent by a moment; None without a budget."""
        if self.is_empty:
            return self.most
        smooth = compute_allowance(moment, strategy=PacingStrategy.SMOOTH, daily_budget=self.smooth, day=day)
        planned = Micros(smooth + self.accelerated)
        return planned if self.most is None else min(planned, self.most)


class SpendPoint(msgspec.Struct, frozen=True):
    """A moment of the day; its spend is None in the future."""

    at: datetime
    spent: Micros | None
    line: Micros | None


def compute_curve(
    day: BudgetDay, by_hour: Mapping[datetime, Micros], plan: Plan, *, spent: Micros, now: datetime
) -> list[SpendPoint]:
    """Return the points of the day: past hours, now, and what is ahead.

    `by_hour` are sums of UTC hours; `spent` is the exact spend of the day so far.
    """
    marks = {day.starts_at, day.ends_at, *_list_steps(day)}
    now = min(max(now, day.starts_at), day.ends_at)
    return [
        SpendPoint(at, _sum_spent_by(at, day, by_hour, spent=spent, now=now), plan.find_allowed(at, day))
        for at in sorted({*marks, now})
        # Between hours the spend is unknown; without a line there is nothing to draw.
        if at == now or _is_drawn(at, day, now) or not plan.is_empty
    ]


def _list_steps(day: BudgetDay) -> Sequence[datetime]:
    count = (day.ends_at - day.starts_at) // STEP
    return [day.starts_at + number * STEP for number in range(count)]


def _is_drawn(at: datetime, day: BudgetDay, now: datetime) -> bool:
    return at in {day.starts_at, day.ends_at} or (at <= now and (at.minute, at.second) == (0, 0))


def _sum_spent_by(
    at: datetime, day: BudgetDay, by_hour: Mapping[datetime, Micros], *, spent: Micros, now: datetime
) -> Micros | None:
    if at > now:
        return None
    if at == now:
        return spent
    if not _is_drawn(at, day, now):
        return None
    summed = sum(
        amount for hour, amount in by_hour.items() if day.starts_at <= hour and hour + ONE_HOUR <= at
    )
    return Micros(min(summed, spent))
