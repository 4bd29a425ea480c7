"""How much of a daily budget may be spent by now."""

from datetime import datetime
from enum import StrEnum

from adloom.core.money import Micros
from adloom.schedule.budget_day import BudgetDay


class PacingStrategy(StrEnum):
    """How a campaign spreads its budget over a day."""

    SMOOTH = "Smooth"
    ACCELERATED = "Accelerated"


def compute_allowance(
    now: datetime, *, strategy: PacingStrategy, daily_budget: Micros, day: BudgetDay
) -> Micros:
    """Return what may be spent by a moment: smooth pacing allows 20 % more than its share of the day, at least an hour's worth.

    `daily budget * min(1, max(1/24, 1.2 * elapsed share of the day))`, rounded down.
    """
    if strategy is PacingStrategy.ACCELERATED or now >= day.ends_at:
        return daily_budget
    ahead = daily_budget * 12 * day.compute_elapsed_micros(now) // max(1, 10 * day.length_micros)
    return Micros(min(daily_budget, max(daily_budget // 24, ahead)))
