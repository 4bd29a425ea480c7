"""The books of a day: what was charged, as four that keep it apart from each other say.

    bill = Σ charges = Σ of the campaigns = Σ of the advertisers, and of campaigns that have none

The bill and its charges are rows of the money ledger; what campaigns and advertisers say of a day they have
written themselves, each in the transaction that kept its state.
"""

from datetime import date
from uuid import UUID

import msgspec

from adloom.core.money import Micros


class SpendDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One of whom the money ledger says something else than they themselves."""

    kind: str
    id: UUID
    charged: Micros
    reported: Micros


class DayReconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """A day in the books; a difference makes it one that nobody may be billed for before it is explained."""

    day: date
    charges: int
    bill: Micros
    campaigns: int
    campaigns_reported: Micros
    advertisers: int
    advertisers_reported: Micros
    without_advertiser: Micros
    unbilled: Micros
    released: Micros
    differences: tuple[SpendDifference, ...]

    @property
    def is_balanced(self) -> bool:
        """Whether everybody says the same, in all and one by one."""
        return (
            not self.differences
            and self.bill == self.campaigns_reported == self.advertisers_reported + self.without_advertiser
        )
