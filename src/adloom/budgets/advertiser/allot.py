"""How an advertiser divides its day among its campaigns.

Campaigns commit only what the advertiser has allotted, so together they never exceed its budget. If one
does not use its allotment and another needs it, the advertiser asks for it back.
"""

# pure

from datetime import datetime, timedelta
from typing import Final

import msgspec

from adloom.budgets.addresses import make_campaign_address
from adloom.budgets.advertiser.state import NOTHING, AdvertiserState, Slice
from adloom.budgets.messages import Allotment, GiveBack
from adloom.core.ids import CampaignId
from adloom.core.money import Micros
from adloom.runtime.actors.actor import Effect, Tell

ASK_BACK_AFTER: Final = timedelta(milliseconds=500)  # Since the last time: giving back takes a while.

_changed = msgspec.structs.replace


def replace_slice(state: AdvertiserState, campaign_id: CampaignId, one: Slice) -> AdvertiserState:
    known = state.slices.get(campaign_id)
    day = state.day
    spent, allotted = (0, 0) if known is None else (known.get_spent(day), known.get_allotted(day))
    return _changed(
        state,
        slices={**state.slices, campaign_id: one},
        spent=Micros(state.spent - spent + one.get_spent(day)),
        allotted=Micros(state.allotted - allotted + one.get_allotted(day)),
        cost_max=max(state.cost_max, one.cost),
    )


def serve(
    state: AdvertiserState, campaign_id: CampaignId, effects: list[Effect], *, is_needed: bool
) -> AdvertiserState:
    """Answer a campaign's report, after the campaigns that have waited longer."""
    state = _changed(state, waiting=tuple(one for one in state.waiting if one != campaign_id))
    state = serve_waiting(state, effects)
    if is_needed or not state.waiting:
        state = _allot(state, campaign_id)
    one = state.slices[campaign_id]
    if is_needed and one.day == state.day and not _has_an_offer(one):
        state = _changed(state, waiting=(*state.waiting, campaign_id))
    effects.append(_build_allotment(state, campaign_id))
    return state


def serve_waiting(state: AdvertiserState, effects: list[Effect]) -> AdvertiserState:
    for campaign_id in state.waiting:
        if compute_unallotted(state) == NOTHING:
            break
        state = _allot(state, campaign_id)
        if _has_an_offer(state.slices[campaign_id]):
            state = _changed(state, waiting=tuple(one for one in state.waiting if one != campaign_id))
            effects.append(_build_allotment(state, campaign_id))
    return state


def ask_back(
    state: AdvertiserState, now: datetime, effects: list[Effect], *, for_campaign: CampaignId
) -> AdvertiserState:
    """Ask the others for what they do not use, not more often than they can answer."""
    if _was_just_asked(state, now):
        return state
    effects += [_build_give_back(state, one) for one in _list_unspent(state) if one != for_campaign]
    return _changed(state, asked_back_at=now)


def ask_all_back(state: AdvertiserState, effects: list[Effect]) -> None:
    """Ask all campaigns for everything unspent: the budget is below what was allotted."""
    effects += [_build_give_back(state, one, is_all=True) for one in _list_unspent(state)]


def ask_back_again(
    state: AdvertiserState, campaign_id: CampaignId, now: datetime, effects: list[Effect]
) -> AdvertiserState:
    """Ask a campaign that keeps more than it has committed: what all were asked may be lost."""
    one = state.slices[campaign_id]
    if one.get_allotted(state.day) <= one.committed or _was_just_asked(state, now):
        return state
    effects.append(_build_give_back(state, campaign_id, is_all=True))
    return _changed(state, asked_back_at=now)


def is_over_budget(state: AdvertiserState) -> bool:
    """Whether more is allotted than may be spent, since the budget was lowered."""
    config = state.configured
    return not config.is_active or (config.daily_budget is not None and state.allotted > config.daily_budget)


def _was_just_asked(state: AdvertiserState, now: datetime) -> bool:
    return state.asked_back_at is not None and now < state.asked_back_at + ASK_BACK_AFTER


def _list_unspent(state: AdvertiserState) -> list[CampaignId]:
    day = state.day
    return [key for key, one in state.slices.items() if one.get_allotted(day) > one.get_spent(day)]


def _build_give_back(state: AdvertiserState, campaign_id: CampaignId, *, is_all: bool = False) -> Tell:
    return Tell(make_campaign_address(campaign_id, state.configured.advertiser_id), GiveBack(is_all=is_all))


def compute_unallotted(state: AdvertiserState) -> Micros | None:
    """None is unlimited."""
    if not state.configured.is_active:
        return NOTHING
    if state.configured.daily_budget is None:
        return None
    return Micros(max(0, state.configured.daily_budget - state.allotted))


def _allot(state: AdvertiserState, campaign_id: CampaignId) -> AdvertiserState:
    one = state.slices[campaign_id]
    if one.day != state.day or one.target <= one.allotted:
        return state
    allotted = _size_allotment(one, compute_unallotted(state))
    return (
        state
        if allotted <= one.allotted
        else replace_slice(state, campaign_id, _changed(one, allotted=allotted))
    )


def _size_allotment(one: Slice, unallotted: Micros | None) -> Micros:
    """At most half of what is left, but at least one offer while there is one; whole offers only."""
    if unallotted is None:
        return one.target
    cost = max(1, one.cost)
    most = max(unallotted // 2, one.committed + cost - one.allotted)
    more = min(one.target - one.allotted, unallotted, most)
    offers = (one.allotted + more - one.committed) // cost
    return Micros(one.committed + offers * cost)


def _has_an_offer(one: Slice) -> bool:
    return one.allotted >= one.committed + max(1, one.cost)


def _build_allotment(state: AdvertiserState, campaign_id: CampaignId) -> Tell:
    one = state.slices[campaign_id]
    allotment = Allotment(
        sequence=one.sequence, day=max(one.day, state.day), allotted=Micros(one.get_allotted(state.day))
    )
    return Tell(make_campaign_address(campaign_id, state.configured.advertiser_id), allotment)
