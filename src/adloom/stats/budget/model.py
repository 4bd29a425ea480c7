"""How far a campaign has used its daily budget, and totals of that."""

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
    """A campaign with a daily budget; `last_updated` is the last write of its budget or its spend."""

    campaign_id: UUID
    strategy: PacingStrategy
    daily_budget: Micros
    last_updated: datetime


class Pacer(msgspec.Struct, frozen=True, kw_only=True):
    """How far a campaign has used its daily budget: today, or since a new window was opened."""

    paced: Paced
    spent: Micros

    @property
    def remaining(self) -> Micros:
        return Micros(max(0, self.paced.daily_budget - self.spent))

    @property
    def utilization_percent(self) -> float:
        """Percentage spent; 0 for a budget of 0."""
        budget = self.paced.daily_budget
        return round(100 * self.spent / budget, 4) if budget else 0.0

    @property
    def is_exceeded(self) -> bool:
        return 0 < self.paced.daily_budget <= self.spent


class Budgets(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of daily budgets."""

    campaigns: int
    daily_budget: Micros
    spent: Micros = Micros(0)
    utilization_sum: float = 0.0
    exceeded: int = 0

    @property
    def average_utilization(self) -> float:
        """Mean percentage spent, over the campaigns."""
        return round(self.utilization_sum / self.campaigns, 4) if self.campaigns else 0.0

    def with_spent(self, pacers: Iterable[Pacer]) -> "Budgets":
        """Add what campaigns have spent; campaigns without spend may be missing."""
        known = list(pacers)
        return msgspec.structs.replace(
            self,
            spent=Micros(self.spent + sum(one.spent for one in known)),
            utilization_sum=self.utilization_sum + sum(one.utilization_percent for one in known),
            exceeded=self.exceeded + sum(one.is_exceeded for one in known),
        )
