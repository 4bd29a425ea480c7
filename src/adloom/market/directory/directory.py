"""The directory: category → campaigns, kept in step with the catalog. One actor for all.

Every change of a campaign gives its categories a new version and goes to their distributors. Every minute all
categories are sent again, and those that have changed every few seconds: messages may get lost.
"""

# pure

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple, assert_never

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
from adloom.market.routing import make_distributor_address
from adloom.runtime.actors.actor import Effect, RecordRow, StepResult, Tell, Wake

RECONCILE_EVERY: Final = timedelta(seconds=60)
REPEAT_CHANGED_EVERY: Final = timedelta(seconds=5)

_changed = msgspec.structs.replace


class DirectoryState(msgspec.Struct, frozen=True, kw_only=True):
    """Campaigns by id and by category; `gone` has the versions in which campaigns ended."""

    demands: dict[CampaignId, CampaignDemand] = {}
    by_category: dict[str, dict[CampaignId, CampaignDemand]] = {}
    versions: dict[str, int] = {}
    gone: dict[CampaignId, int] = {}
    repeat_at: datetime | None = None
    changed: frozenset[str] = frozenset()  # Categories that have changed since all were said.
    repeat_changed_at: datetime | None = None


def step(
    state: DirectoryState, message: DirectoryMessage, now: datetime, chance: Chance
) -> StepResult[DirectoryState]:
    del chance
    effects: list[Effect] = []
    match message:
        case LoadDemand():
            state = _load(message)
        case CampaignReady(demand=demand):
            state = _apply(state, [_CampaignChange(demand.campaign_id, demand, demand.version)], effects)
        case CampaignGone(campaign_id=campaign_id, version=version):
            state = _apply(state, [_CampaignChange(campaign_id, None, version)], effects)
        case AllDemand():
            state = _reconcile(state, message, effects)
        case CheckClock():
            pass
        case _:
            assert_never(message)
    state = _repeat(state, now, effects)
    effects.append(Wake(min(filter(None, (state.repeat_at, state.repeat_changed_at)))))
    return StepResult(state, tuple(effects))


def _repeat(state: DirectoryState, now: datetime, effects: list[Effect]) -> DirectoryState:
    """Say all again when it is time, or what has changed since then; also when the clock was set back."""
    if state.repeat_at is None or not state.repeat_at - RECONCILE_EVERY <= now < state.repeat_at:
        effects += (_push(state, category) for category in sorted(state.by_category))
        return _changed(state, repeat_at=now + RECONCILE_EVERY, changed=frozenset(), repeat_changed_at=None)
    if state.repeat_changed_at is not None and now >= state.repeat_changed_at:
        effects += (_push(state, category) for category in sorted(state.changed))
        state = _changed(state, repeat_changed_at=None)
    if state.changed and state.repeat_changed_at is None:
        state = _changed(state, repeat_changed_at=now + REPEAT_CHANGED_EVERY)
    return state


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


class _CampaignChange(NamedTuple):
    """The demand of a campaign now; without any it bids no more."""

    campaign_id: CampaignId
    demand: CampaignDemand | None
    version: int


def _apply(
    state: DirectoryState, changes: Iterable[_CampaignChange], effects: list[Effect]
) -> DirectoryState:
    """Apply changes of campaigns, unless a newer one is known; each touched category is pushed once."""
    demands, gone, by_category = dict(state.demands), dict(state.gone), dict(state.by_category)
    touched: set[str] = set()
    for campaign_id, demand, version in changes:
        known = demands.get(campaign_id)
        newest = gone.get(campaign_id, -1) if known is None else known.version
        if version < newest or (known is None and demand is None):
            continue
        if demand is None:
            del demands[campaign_id]
            gone[campaign_id] = version
        else:
            demands[campaign_id] = demand
            gone.pop(campaign_id, None)
        if known is not None and demand is not None and _changed(known, version=version) == demand:
            continue  # Sent again, for example after a restart: no auction changes.
        effects.append(RecordRow(DemandRow(campaign_id, version, demand)))
        before = frozenset[str]() if known is None else known.wanted
        after = frozenset[str]() if demand is None else demand.wanted
        for category in before | after:
            if category not in touched:
                touched.add(category)
                by_category[category] = dict(by_category.get(category, {}))
            by_category[category].pop(campaign_id, None)
            if demand is not None and category in after:
                by_category[category][campaign_id] = demand
    versions = dict(state.versions) if touched else state.versions
    for category in sorted(touched):
        versions[category] = versions.get(category, 0) + 1
        effects.append(RecordRow(CategoryVersionRow(category, versions[category])))
    state = _changed(
        state,
        demands=demands,
        gone=gone,
        by_category=by_category,
        versions=versions,
        changed=state.changed | touched,
    )
    effects += (_push(state, category) for category in sorted(touched))
    return state


def _reconcile(state: DirectoryState, catalog: AllDemand, effects: list[Effect]) -> DirectoryState:
    """Take all that differs from what is known and is not older; what was ended long ago need not be remembered."""
    listed = {demand.campaign_id for demand in catalog.demands}
    ended = [_CampaignChange(one, None, catalog.version) for one in state.demands if one not in listed]
    bidding = (_CampaignChange(demand.campaign_id, demand, demand.version) for demand in catalog.demands)
    state = _apply(state, [*ended, *bidding], effects)
    gone = {campaign_id: version for campaign_id, version in state.gone.items() if version >= catalog.version}
    return _changed(state, gone=gone)


def _push(state: DirectoryState, category: str) -> Tell:
    campaigns = tuple(state.by_category[category].values())
    demand = CategoryDemand(category, state.versions[category], campaigns)
    return Tell(make_distributor_address(category), demand)
