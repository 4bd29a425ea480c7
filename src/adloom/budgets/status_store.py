"""Reads budget status from the stored states of budget actors."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import structlog

from adloom.budgets.addresses import CAMPAIGN, make_advertiser_address, make_campaign_address
from adloom.budgets.config.catalog_store import load_rows
from adloom.budgets.config.configuration import build_advertiser_config, build_campaign_config
from adloom.budgets.kinds import make_kinds
from adloom.budgets.status import (
    AdvertiserBudgetStatus,
    BudgetStatus,
    build_advertiser_status,
    build_campaign_status,
)
from adloom.core.errors import UnavailableError
from adloom.core.ids import AdvertiserId, CampaignId
from adloom.runtime.actors.actor import Address, UnreadableActorStateError
from adloom.runtime.postgres import Connection, Record

STATES: Final = """
    SELECT kind, key, format, state FROM brain_states
      JOIN unnest($1::text[], $2::text[]) AS asked (kind, key) USING (kind, key)
"""
# A campaign's key begins with its advertiser's; the key is ordered by its bytes, in which `}` follows `|`.
OF_AN_ADVERTISER: Final = """
    SELECT kind, key, format, state FROM brain_states
     WHERE kind = $1 AND key >= $2 || '|' AND key < $2 || '}'
"""
HOLDS_NOTHING: Final = 0  # For how long holds last, where there are none.

_KINDS: Final = {kind.name: kind for kind in make_kinds()}

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def load_states(connection: Connection, addresses: Iterable[Address]) -> dict[Address, Any]:
    """Addresses without a state are left out; None is a state that this version cannot read."""
    asked = sorted(set(addresses))
    if not asked:
        return {}
    kinds, keys = [address.kind for address in asked], [address.key for address in asked]
    return _decode_states(await connection.fetch(STATES, kinds, keys))


async def load_campaign_status(
    connection: Connection, campaign_id: CampaignId, *, now: datetime
) -> BudgetStatus:
    return (await load_campaign_statuses(connection, [campaign_id], now=now))[campaign_id]


async def load_campaign_statuses(
    connection: Connection, campaign_ids: Sequence[CampaignId], *, now: datetime
) -> dict[CampaignId, BudgetStatus]:
    """Campaigns that are not in the catalog are left out."""
    rows = (await load_rows(connection, campaign_ids, [])).campaigns
    configs = [build_campaign_config(row, version=0, hold_seconds=HOLDS_NOTHING, now=now) for row in rows]
    addresses = {
        one.campaign_id: make_campaign_address(one.campaign_id, one.advertiser_id) for one in configs
    }
    states = _require_readable(await load_states(connection, addresses.values()))
    return {
        one.campaign_id: build_campaign_status(states.get(addresses[one.campaign_id]), one, now=now)
        for one in configs
    }


async def load_window(connection: Connection, address: Address) -> int | None:
    state = _require_readable(await load_states(connection, [address])).get(address)
    return None if state is None else state.window


async def load_advertiser_status(
    connection: Connection, advertiser_id: AdvertiserId, *, now: datetime
) -> AdvertiserBudgetStatus:
    [row] = (await load_rows(connection, [], [advertiser_id])).advertisers
    config = build_advertiser_config(row, version=0)
    address = make_advertiser_address(advertiser_id)
    own = _require_readable(await load_states(connection, [address]))
    campaigns = _require_readable(
        _decode_states(await connection.fetch(OF_AN_ADVERTISER, CAMPAIGN, str(advertiser_id)))
    )
    return build_advertiser_status(own.get(address), campaigns.values(), config, now=now)


def _decode_states(rows: Iterable[Record]) -> dict[Address, Any]:
    states: dict[Address, Any] = {}
    for kind, key, number, state in rows:
        try:
            states[Address(kind, key)] = _KINDS[kind].decode(state, format_number=number)
        except UnreadableActorStateError as error:
            log.warning("budget_state_unreadable", kind=kind, key=key, error=str(error))
            states[Address(kind, key)] = None
    return states


def _require_readable(states: dict[Address, Any]) -> dict[Address, Any]:
    """Fail if one is unreadable: leaving it out would claim that nothing was spent."""
    if any(state is None for state in states.values()):
        raise UnavailableError(
            "The budget is kept by another version of Adloom than this one. Try again later."
        )
    return states
