"""Which campaigns have spent their budgets: they bid, but take no place of one that can pay.

Read from the totals of the money ledger. Delivery goes by its leases; a standing that is a minute old costs nothing but
the order of a shortlist.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from adloom.core.money import Micros, impression_cost, micros_from_paisa
from adloom.runtime.postgres import Connection
from adloom.schedule.budget_day import find_budget_day

TWO_DAYS: Final = timedelta(days=2)
RECENT: Final = "SELECT id, day, spent_micros FROM spend_days WHERE day >= $1"
EVER: Final = """
    SELECT id, sum(spent_micros)::bigint FROM spend_days WHERE kind = 'campaign' AND id = ANY ($1::uuid[]) GROUP BY id
"""


class CampaignBudgets(msgspec.Struct, frozen=True, kw_only=True):
    """The budgets that a campaign spends: its own of a day and in all, and its advertiser's of a day."""

    campaign_id: UUID
    advertiser_id: UUID | None
    max_cpm: Micros
    daily_paisa: int | None
    total_paisa: int | None
    zone: str
    advertiser_daily_paisa: int | None
    advertiser_zone: str | None


async def find_spent(connection: Connection, campaigns: Sequence[CampaignBudgets]) -> frozenset[UUID]:
    """Return the campaigns that cannot pay for another impression."""
    limited = [
        one
        for one in campaigns
        if not (one.daily_paisa is one.total_paisa is one.advertiser_daily_paisa is None)
    ]
    if not limited:
        return frozenset()
    now: datetime = await connection.fetchval("SELECT now()")
    recent = {
        (owner_id, day): spent
        for owner_id, day, spent in await connection.fetch(RECENT, now.date() - TWO_DAYS)
    }
    in_all = {one.campaign_id for one in limited if one.total_paisa is not None}
    ever: dict[UUID, int] = {row[0]: row[1] for row in await connection.fetch(EVER, in_all)} if in_all else {}
    return frozenset(one.campaign_id for one in limited if is_spent(one, recent, ever, now))


def is_spent(
    one: CampaignBudgets, recent: dict[tuple[UUID, date], int], ever: dict[UUID, int], now: datetime
) -> bool:
    """Whether a budget is left with less than an impression costs at the campaign's bid."""
    cost = impression_cost(one.max_cpm)
    budgets: Iterable[tuple[int | None, int]] = (
        (one.daily_paisa, _spent_today(one.campaign_id, one.zone, recent, now)),
        (one.total_paisa, ever.get(one.campaign_id, 0)),
        (one.advertiser_daily_paisa, _spent_today(one.advertiser_id, one.advertiser_zone, recent, now)),
    )
    return any(paisa is not None and micros_from_paisa(paisa) - spent < cost for paisa, spent in budgets)


def _spent_today(
    owner_id: UUID | None, zone: str | None, recent: dict[tuple[UUID, date], int], now: datetime
) -> int:
    if owner_id is None or zone is None:
        return 0
    return recent.get((owner_id, find_budget_day(now, zone).day), 0)
