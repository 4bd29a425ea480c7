"""What may go wrong with budgets, beside what may go wrong with everything."""

from random import Random  # noqa: TID251 - for its type
from typing import Final

from simulation.faults import FaultRates, Faults
from simulation.trace import Trace


class MoneyFaultRates(FaultRates, frozen=True, kw_only=True):
    """How often what goes wrong: shares of calls and messages, and mean seconds between others."""

    died: float = 0.0  # A process ends at this very await: before it, or after it has worked.
    mail_lost: float = 0.0
    mail_repeated: float = 0.0
    mail_delayed: float = 0.0  # By seconds, so that others overtake it.
    owned_twice: float = 0.0  # A worker takes the budget actors while another has them.
    unseen: float = 0.0  # An offer that nobody ever looks at.
    seen_late: float = 0.0  # One that is looked at when its hold may be over.
    change_seconds_between: float = float("inf")  # Of somebody changing a budget, or a campaign.
    index_seconds_max: float = 0.0  # Until a delivery process has heard of it.


NO_MONEY_FAULTS: Final = MoneyFaultRates()
ROUGH_MONEY: Final = MoneyFaultRates(
    refused=0.01,
    answer_lost=0.02,
    hung=0.002,
    late=0.01,
    repeated=0.1,
    life_seconds_mean=20.0,
    outage_seconds_between=30.0,
    outage_seconds_mean=2.0,
    clock_seconds_between=20.0,
    clock_hours_max=0.02,
    readers_forgotten=0.3,
    died=0.005,
    mail_lost=0.05,
    mail_repeated=0.05,
    mail_delayed=0.03,
    owned_twice=0.1,
    unseen=0.3,
    seen_late=0.1,
    change_seconds_between=3.0,
    index_seconds_max=2.0,
)


class MoneyFaults(Faults):
    """Decides by chance what goes wrong, and keeps count."""

    def __init__(self, rates: MoneyFaultRates, chance: Random, trace: Trace) -> None:
        super().__init__(rates, chance, trace)
        self.money = rates

    def end(self) -> None:
        """Let everything go well from now on."""
        super().end()
        self.money = NO_MONEY_FAULTS
