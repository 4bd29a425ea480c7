"""A bidder: the active campaigns of one category, for the sites of one stripe."""

# pure

from datetime import datetime
from typing import assert_never

import msgspec

from adloom.budgets.campaign.demand import CampaignDemand
from adloom.budgets.messages import CheckClock
from adloom.core.ids import SiteId
from adloom.core.random import Chance
from adloom.market.bids import collect_bids
from adloom.market.messages import (
    BidAnswer,
    BidderMessage,
    BidRequest,
    CategoryDemand,
    DemandChanged,
    DemandTaken,
)
from adloom.market.routing import make_auctioneer_address, make_distributor_address
from adloom.runtime.actors.actor import Effect, StepResult, Tell

_changed = msgspec.structs.replace


class BidderState(msgspec.Struct, frozen=True, kw_only=True):
    """The campaigns of a category, and the sites that have asked for bids since it woke."""

    category: str
    stripe: int
    version: int = 0
    campaigns: tuple[CampaignDemand, ...] = ()
    sites: frozenset[SiteId] = frozenset()


def make_bidder(key: str, now: datetime) -> BidderState:
    del now
    category, _, stripe = key.rpartition("|")
    return BidderState(category=category, stripe=int(stripe))


def step(
    state: BidderState, message: BidderMessage, now: datetime, chance: Chance
) -> StepResult[BidderState]:
    del now, chance
    effects: list[Effect] = []
    match message:
        case CategoryDemand():
            if message.version >= state.version:
                is_new = message.version > state.version
                state = _changed(state, version=message.version, campaigns=message.campaigns)
                if is_new:
                    changed = DemandChanged(state.category, state.version)
                    effects += (Tell(make_auctioneer_address(site), changed) for site in sorted(state.sites))
            taken = DemandTaken(state.category, state.version, state.stripe)
            effects.append(Tell(make_distributor_address(state.category), taken))
        case BidRequest():
            state = _changed(state, sites=state.sites | {message.site_id})
            answer = BidAnswer(
                state.category,
                message.number,
                state.version,
                tuple(collect_bids(state.category, state.campaigns, slot) for slot in message.slots),
            )
            effects.append(Tell(make_auctioneer_address(message.site_id), answer))
        case CheckClock():
            pass
        case _:
            assert_never(message)
    return StepResult(state, tuple(effects))
