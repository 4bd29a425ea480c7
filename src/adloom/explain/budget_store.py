"""Reading how the budgets of candidates stand, as their brains have kept it."""

from collections.abc import Iterable
from datetime import datetime

from adloom.budgets.addresses import advertiser_address, campaign_address
from adloom.budgets.status_store import load_states
from adloom.explain.budget import lacking
from adloom.runtime.actors.effects import Address
from adloom.runtime.postgres import Connection
from adloom.serving.index.rows import AssignmentRow


async def lacking_budgets(
    connection: Connection, rows: Iterable[AssignmentRow], *, now: datetime
) -> dict[int, str]:
    """Tell which campaigns lack a budget for an offer, and which."""
    costly = {row.campaign_key: row for row in rows if row.is_limited and row.price.cost > 0}
    states = await load_states(connection, _addresses(costly.values()))
    found: dict[int, str] = {}
    for key, row in costly.items():
        campaign = states.get(campaign_address(row.campaign_id, row.advertiser_id))
        payer = None if row.advertiser_id is None else states.get(advertiser_address(row.advertiser_id))
        # One that is not known yet has spent nothing.
        reason = None if campaign is None else lacking(campaign, payer, cost=row.price.cost, now=now)
        if reason is not None:
            found[key] = reason
    return found


def _addresses(rows: Iterable[AssignmentRow]) -> set[Address]:
    addresses: set[Address] = set()
    for row in rows:
        addresses.add(campaign_address(row.campaign_id, row.advertiser_id))
        if row.advertiser_id is not None:
            addresses.add(advertiser_address(row.advertiser_id))
    return addresses
