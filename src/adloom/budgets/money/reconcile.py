"""Reconciliation of a day: four independent records of what was charged.

    bill = sum of charges = sum over campaigns = sum over advertisers, and over campaigns that have none

The bill and its charges are rows of the money ledger. Campaigns and advertisers wrote their own totals,
each in the transaction that persisted its state.
"""

from datetime import date
from uuid import UUID

import msgspec

from adloom.core.money import Micros


class SpendDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign or advertiser whose own total disagrees with the money ledger."""

    kind: str
    id: UUID
    charged: Micros
    reported: Micros


class DayReconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """A day's totals; bill a day with differences only after they are explained."""

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
        """Whether all four agree, in total and one by one."""
        return (
            not self.differences
            and self.bill == self.campaigns_reported == self.advertisers_reported + self.without_advertiser
        )
