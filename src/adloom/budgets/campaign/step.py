"""What a campaign does with a message: a pure step.

Every touch looks at the clock first: the day rolls, holds come back. What is granted is durable
before the process hears of it, and what is charged before anybody is told.
"""

# pure

from datetime import date, datetime
from typing import assert_never

import msgspec

from adloom.budgets.campaign.charges import (
    all_confirmed,
    confirmed,
    flushed,
    flushed_and_said,
    flushed_when_due,
)
from adloom.budgets.campaign.headroom import room
from adloom.budgets.campaign.leases import (
    IDLE_SECONDS,
    recalled,
    released,
    session_closed,
    used,
    without_settled,
)
from adloom.budgets.campaign.reports import allotted, given_back, reported, reported_again
from adloom.budgets.campaign.state import NOTHING, CampaignState, day_at, today_of
from adloom.budgets.campaign.updates import judged, said, spend_update
from adloom.budgets.messages import (
    Allotment,
    AskBudget,
    CampaignMessage,
    ConfigureCampaign,
    Confirm,
    Confirms,
    GiveBack,
    Look,
    OpenWindow,
    SessionOver,
    Usage,
    Verdict,
)
from adloom.core.random import Chance
from adloom.runtime.actors.effects import Effect, Persist, Reply, StepResult, Wake

_changed = msgspec.structs.replace


def step(
    state: CampaignState, message: CampaignMessage, now: datetime, chance: Chance
) -> StepResult[CampaignState]:
    """Take a message."""
    del chance
    effects: list[Effect] = []
    before = state
    if isinstance(message, ConfigureCampaign):
        state = _configured(state, message)
    if state.config is None:
        return StepResult(state)
    state = _looked(state, now, effects)
    if isinstance(message, ConfigureCampaign):
        state = _reconfigured(state, before, now, effects)
    else:
        state = _taken(state, message, now, effects)
    state = judged(state, now, effects)
    effects.append(Wake(_due(state, now)))
    return StepResult(state, tuple(effects))


def before_keeping(state: CampaignState, now: datetime) -> StepResult[CampaignState]:
    """Write charges down with the state that has them, whoever has asked for it to be kept.

    So an offer is in the money ledger, or nothing of its charge is kept: who confirms it again can tell.
    """
    if not state.buffer:
        return StepResult(state)
    effects: list[Effect] = []
    state = flushed_and_said(state, now, effects)
    effects.append(Wake(_due(state, now)))
    return StepResult(state, tuple(effects))


def as_of(state: CampaignState, now: datetime) -> CampaignState:
    """Bring a state that was read up to the clock, for whoever only wants to know."""
    return state if state.config is None else _looked(state, now, [])


def _taken(  # noqa: C901, PLR0911 - one a message
    state: CampaignState, message: CampaignMessage, now: datetime, effects: list[Effect]
) -> CampaignState:
    match message:
        case Confirm():
            return confirmed(state, message, now, effects)
        case Confirms(confirms=confirms):
            return all_confirmed(state, confirms, now, effects)
        case Usage():
            return used(state, message, now, effects)
        case SessionOver():
            return session_closed(state, message, effects)
        case Allotment():
            return allotted(_rolled(state, message.day, now, effects), message, now, effects)
        case GiveBack(is_all=is_all):
            recalled(state, effects, idle_until=None if is_all else int(now.timestamp()) - IDLE_SECONDS)
            return given_back(state, now, effects, is_all=is_all)
        case OpenWindow():
            return _window_opened(state, now, effects)
        case Look():
            return reported_again(flushed_when_due(state, now, effects), now, effects)
        case AskBudget():
            effects.append(Reply(spend_update(state, now)))
            return state
        case ConfigureCampaign():
            return state  # Taken before all others, because without one there is nothing to look at.
        case _:
            assert_never(message)


def _looked(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Bring the state up to the clock."""
    return released(_rolled(state, day_at(state, now), now, effects), now, effects)


def _rolled(state: CampaignState, day: date, now: datetime, effects: list[Effect]) -> CampaignState:
    """Begin a new day, with a budget of its own; days never go back."""
    if day <= state.day:
        return state
    state = flushed(without_settled(state), effects)
    state = _changed(
        state,
        day=day,
        window=state.window + 1,
        spent_window=NOTHING,
        allotted=NOTHING,
        wanted=NOTHING,
        is_giving_back=False,
    )
    # Always, also where nothing was spent: whoever keeps figures of yesterday waits for this.
    effects += [Persist(), said(state, now)]
    return reported(state, now, effects)


def _configured(state: CampaignState, config: ConfigureCampaign) -> CampaignState:
    if state.config is not None and config.version < state.config.version:
        return state
    return _changed(state, config=config)


def _reconfigured(
    state: CampaignState, before: CampaignState, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Take back what may no longer be given, and say how we stand; nothing, where nothing has changed."""
    config = state.config
    assert config is not None
    if before.config is not None and _changed(before.config, version=config.version) == config:
        return state
    if not config.is_running or room(state, now).amount == NOTHING:
        recalled(state, effects)
    effects.append(Persist())
    if state.day > before.day:
        return state  # The new day was said, and how we stand with it.
    effects.append(said(state, now))
    return reported(state, now, effects)


def _window_opened(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Begin a new daily window; what was leased in the old one is still of the old one."""
    recalled(state, effects)
    state = _changed(flushed(state, effects), window=state.window + 1, spent_window=NOTHING)
    effects += [Persist(), said(state, now)]
    return state


def _due(state: CampaignState, now: datetime) -> datetime | None:
    """Tell when something falls due next; an idle campaign sets no timer."""
    assert state.config is not None
    due: list[datetime] = []
    if state.flush_at is not None:
        due.append(state.flush_at)
    if state.report is not None:
        due.append(state.report.again_at)
    if state.held_since is not None:
        expires_at = datetime.fromtimestamp(state.held_since + state.config.hold_seconds, now.tzinfo)
        due.append(max(now, expires_at))
    if state.exhausted is Verdict.DAILY_BUDGET:
        due.append(today_of(state).ends_at)
    return min(due, default=None)
