"""How far a campaign has used its daily budget, and totals of that."""

# pure

from collections.abc import Iterable
from datetime import datetime
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.caller import Role
from adloom.core.money import Micros
from adloom.resource.audit.entry import OWNED_NOUNS
from adloom.schedule.pacing import PacingStrategy

NOUN: Final = "budget"  # In the history of its advertiser.
OWNED_NOUNS[Role.ADVERTISER].append(NOUN)


class Pacer(msgspec.Struct, frozen=True, kw_only=True):
    """How far a campaign has used its daily budget: today, or since a new window was opened.

    `last_updated` is the last write of its budget or its spend.
    """

    campaign_id: UUID
    strategy: PacingStrategy
    daily_budget: Micros
    spent_today: Micros
    last_updated: datetime
    cost: Micros = Micros(0)  # What one impression or click costs at most.

    @property
    def id(self) -> UUID:
        """A campaign has one pacer."""
        return self.campaign_id

    @property
    def remaining_budget(self) -> Micros:
        return Micros(max(0, self.daily_budget - self.spent_today))

    @property
    def utilization_percent(self) -> float:
        """Percentage spent; 0 for a budget of 0."""
        return round(100 * self.spent_today / self.daily_budget, 4) if self.daily_budget else 0.0

    @property
    def is_exceeded(self) -> bool:
        """Whether the rest does not pay for one more impression or click."""
        return 0 < self.daily_budget < self.spent_today + max(1, self.cost)


class BudgetTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of daily budgets."""

    total_campaigns: int
    total_daily_budget: Micros
    total_spent_today: Micros = Micros(0)
    utilization_sum: float = 0.0
    campaigns_exceeded: int = 0

    @property
    def average_utilization(self) -> float:
        """Mean percentage spent, over the campaigns."""
        return round(self.utilization_sum / self.total_campaigns, 4) if self.total_campaigns else 0.0

    def with_spent(self, pacers: Iterable[Pacer]) -> "BudgetTotals":
        """Add what campaigns have spent; campaigns without spend may be missing."""
        known = list(pacers)
        return msgspec.structs.replace(
            self,
            total_spent_today=Micros(self.total_spent_today + sum(one.spent_today for one in known)),
            utilization_sum=self.utilization_sum + sum(one.utilization_percent for one in known),
            campaigns_exceeded=self.campaigns_exceeded + sum(one.is_exceeded for one in known),
        )
