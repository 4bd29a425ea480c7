"""The directory: category → campaigns, kept in step with the catalog. One actor for all.

Every change of a campaign gives its categories a new version and goes to their distributors; every minute all
categories are said again.
"""

# pure

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, assert_never

import msgspec

from adloom.budgets.campaign.demand import CampaignDemand, CampaignGone, CampaignReady
from adloom.budgets.messages import CheckClock
from adloom.core.ids import CampaignId
from adloom.core.random import Chance
from adloom.market.messages import (
    AllDemand,
    CategoryDemand,
    CategoryVersionRow,
    DemandRow,
    DirectoryMessage,
    LoadDemand,
)
from adloom.market.routing import distributor_address
from adloom.runtime.actors.actor import Effect, RecordRow, StepResult, Tell, Wake

RECONCILE_EVERY: Final = timedelta(seconds=60)

_changed = msgspec.structs.replace


class DirectoryState(msgspec.Struct, frozen=True, kw_only=True):
    """Campaigns by id and by category; `gone` has the versions in which campaigns ended."""

    demands: dict[CampaignId, CampaignDemand] = {}
    by_category: dict[str, dict[CampaignId, CampaignDemand]] = {}
    versions: dict[str, int] = {}
    gone: dict[CampaignId, int] = {}
    repeat_at: datetime | None = None


def step(
    state: DirectoryState, message: DirectoryMessage, now: datetime, chance: Chance
) -> StepResult[DirectoryState]:
    del chance
    effects: list[Effect] = []
    match message:
        case LoadDemand():
            state = _load(message)
        case CampaignReady(demand=demand):
            state = _apply(state, demand.campaign_id, demand, demand.version, effects)
        case CampaignGone(campaign_id=campaign_id, version=version):
            state = _apply(state, campaign_id, None, version, effects)
        case AllDemand():
            state = _reconcile(state, message, effects)
        case CheckClock():
            pass
        case _:
            assert_never(message)
    if state.repeat_at is None or now >= state.repeat_at:
        effects += (_push(state, category, is_edit=False) for category in sorted(state.by_category))
        state = _changed(state, repeat_at=now + RECONCILE_EVERY)
    effects.append(Wake(state.repeat_at))
    return StepResult(state, tuple(effects))


def _load(loaded: LoadDemand) -> DirectoryState:
    """Begin with what was recorded; it is said again at once, and is no edit."""
    by_category: dict[str, dict[CampaignId, CampaignDemand]] = {category: {} for category in loaded.versions}
    for demand in loaded.demands:
        for category in demand.wanted:
            by_category.setdefault(category, {})[demand.campaign_id] = demand
    return DirectoryState(
        demands={one.campaign_id: one for one in loaded.demands},
        by_category=by_category,
        versions={category: loaded.versions.get(category, 1) for category in by_category},
    )


def _apply(
    state: DirectoryState,
    campaign_id: CampaignId,
    demand: CampaignDemand | None,
    version: int,
    effects: list[Effect],
) -> DirectoryState:
    """Take what is said of a campaign, unless something newer is known."""
    known = state.demands.get(campaign_id)
    newest = state.gone.get(campaign_id, -1) if known is None else known.version
    if version < newest or (known is None and demand is None):
        return state
    demands, gone = dict(state.demands), dict(state.gone)
    if demand is None:
        del demands[campaign_id]
        gone[campaign_id] = version
    else:
        demands[campaign_id] = demand
        gone.pop(campaign_id, None)
    state = _changed(state, demands=demands, gone=gone)
    if known is not None and demand is not None and _changed(known, version=version) == demand:
        return state  # Said again, for example after a restart: nobody's auction changes.
    effects.append(RecordRow(DemandRow(campaign_id, version, demand)))
    before = frozenset[str]() if known is None else known.wanted
    after = frozenset[str]() if demand is None else demand.wanted
    return _replace(state, campaign_id, demand, sorted(before | after), effects)


def _reconcile(state: DirectoryState, catalog: AllDemand, effects: list[Effect]) -> DirectoryState:
    """Take all that differs from what is known and is not older; what was ended long ago need not be remembered."""
    listed = {demand.campaign_id for demand in catalog.demands}
    for campaign_id in [one for one in state.demands if one not in listed]:
        state = _apply(state, campaign_id, None, catalog.version, effects)
    for demand in catalog.demands:
        known = state.demands.get(demand.campaign_id)
        if known is None or _changed(known, version=demand.version) != demand:
            state = _apply(state, demand.campaign_id, demand, demand.version, effects)
    gone = {campaign_id: version for campaign_id, version in state.gone.items() if version >= catalog.version}
    return _changed(state, gone=gone)


def _replace(
    state: DirectoryState,
    campaign_id: CampaignId,
    demand: CampaignDemand | None,
    touched: Iterable[str],
    effects: list[Effect],
) -> DirectoryState:
    by_category, versions = dict(state.by_category), dict(state.versions)
    for category in touched:
        campaigns = dict(by_category.get(category, {}))
        campaigns.pop(campaign_id, None)
        if demand is not None and category in demand.wanted:
            campaigns[campaign_id] = demand
        by_category[category] = campaigns
        versions[category] = versions.get(category, 0) + 1
        effects.append(RecordRow(CategoryVersionRow(category, versions[category])))
    state = _changed(state, by_category=by_category, versions=versions)
    effects += (_push(state, category, is_edit=True) for category in touched)
    return state


def _push(state: DirectoryState, category: str, *, is_edit: bool) -> Tell:
    campaigns = tuple(state.by_category[category].values())
    demand = CategoryDemand(category, state.versions[category], campaigns, is_edit)
    return Tell(distributor_address(category), demand)
