"""Leases for the campaigns of a delivery process, in place of a worker."""

from datetime import UTC, datetime
from typing import Final

from adloom.budgets.messages import BudgetVerdict, LeaseAnswer
from adloom.core.money import Micros
from adloom.serving.leases.local_leases import LocalLeases

NEVER: Final = datetime(2100, 1, 1, tzinfo=UTC)
LEASE: Final = 9  # Its number.


def grant_leases(  # noqa: PLR0913 - what an answer says
    leases: LocalLeases,
    amount: int,
    *,
    second: int,
    impressions: int = 0,
    throttle: float = 0.0,
    ends_at: datetime = NEVER,
) -> None:
    """Grant a lease of `amount` micros, and of so many impressions, to every campaign that asks."""
    for terms, usage in leases.collect_reports(second=second, at=1.0, most=100, is_wanted=lambda _: True):
        answer = LeaseAnswer(
            campaign_id=terms.campaign_id,
            session=1,
            report=usage.report,
            lease=LEASE,
            granted=Micros(amount),
            given=Micros(0),
            impressions_granted=impressions,
            ends_at=ends_at,
            verdict=BudgetVerdict.GRANTED,
            throttle=throttle,
        )
        leases.on_answer(answer, second=second, at=1.0)
