"""How far a campaign has used its daily budget, and what all of them come to. Pure."""

# pure

from collections.abc import Iterable
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.errors import NotFoundError
from adloom.core.money import Micros
from adloom.schedule.pacing import PacingStrategy

NOUN: Final = "budget"


class BudgetNotFoundError(NotFoundError):
    """The campaign has no daily budget, so there is nothing to pace."""

    code = "BUDGET_NOT_FOUND"


class Paced(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign with a daily budget; `last_updated` is when its budget or its spend was last written."""

    campaign_id: UUID
    strategy: PacingStrategy
    daily_budget: Micros
    last_updated: datetime


class Pacer(msgspec.Struct, frozen=True, kw_only=True):
    """How far a campaign has used its daily budget: today, or since somebody has opened a new window."""

    paced: Paced
    spent: Micros

    @property
    def remaining(self) -> Micros:
        """What is not spent."""
        return Micros(max(0, self.paced.daily_budget - self.spent))

    @property
    def utilization_percent(self) -> float:
        """What is spent of a hundred; nothing of a budget of nothing."""
        budget = self.paced.daily_budget
        return round(100 * self.spent / budget, 4) if budget else 0.0

    @property
    def is_exceeded(self) -> bool:
        """Whether all of it is spent."""
        return 0 < self.paced.daily_budget <= self.spent


class Budgets(msgspec.Struct, frozen=True, kw_only=True):
    """What the daily budgets come to."""

    campaigns: int
    daily_budget: Micros
    spent: Micros = Micros(0)
    utilization_sum: float = 0.0
    exceeded: int = 0

    @property
    def average_utilization(self) -> float:
        """What is spent of a hundred, on average over the campaigns."""
        return round(self.utilization_sum / self.campaigns, 4) if self.campaigns else 0.0

    def with_spent(self, pacers: Iterable[Pacer]) -> "Budgets":
        """Add what some of the campaigns have spent; those that have spent nothing need not be among them."""
        known = list(pacers)
        return msgspec.structs.replace(
            self,
            spent=Micros(self.spent + sum(one.spent for one in known)),
            utilization_sum=self.utilization_sum + sum(one.utilization_percent for one in known),
            exceeded=self.exceeded + sum(one.is_exceeded for one in known),
        )
