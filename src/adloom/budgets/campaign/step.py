"""How a campaign handles a message: a pure step.

Every message first brings the state up to the clock: the day rolls, holds expire. Grants are durable
before the process learns of them, and charges before they are published.
"""

# pure

from datetime import date, datetime
from typing import assert_never

import msgspec

from adloom.budgets.bid_model import BidsDecided
from adloom.budgets.campaign.bids import apply_decision
from adloom.budgets.campaign.caps import apply_counts, apply_seen, find_release_second, forget_counts
from adloom.budgets.campaign.charges import (
    apply_confirm,
    apply_confirms,
    flush,
    flush_and_publish,
    flush_if_due,
    settle_waiting,
)
from adloom.budgets.campaign.headroom import compute_headroom, compute_offers_left, is_click_cap_reached
from adloom.budgets.campaign.leases import (
    IDLE_SECONDS,
    apply_usage,
    close_session,
    drop_settled,
    recall,
    release_expired,
)
from adloom.budgets.campaign.pace import start_pace_of_day
from adloom.budgets.campaign.refunds import apply_refund
from adloom.budgets.campaign.reports import (
    apply_allotment,
    build_spend_update,
    give_back,
    publish_spend,
    publish_transition,
    queue_report,
    repeat_report_if_due,
)
from adloom.budgets.campaign.state import NOTHING, CampaignState, find_current_day, find_day
from adloom.budgets.messages import (
    Allotment,
    AskBudget,
    BudgetVerdict,
    CampaignCounts,
    CampaignMessage,
    CheckClock,
    ConfigureCampaign,
    Confirm,
    Confirms,
    CountedImpressions,
    GiveBack,
    LeaseUsage,
    OpenWindow,
    Refund,
    SessionOver,
)
from adloom.core.random import Chance
from adloom.runtime.actors.actor import Effect, Persist, Reply, StepResult, Wake

_changed = msgspec.structs.replace


def step(
    state: CampaignState, message: CampaignMessage, now: datetime, chance: Chance
) -> StepResult[CampaignState]:
    del chance
    effects: list[Effect] = []
    before = state
    if isinstance(message, ConfigureCampaign):
        state = _configure(state, message)
    if state.config is None:
        return StepResult(state)
    state = _advance(state, now, effects)
    if isinstance(message, ConfigureCampaign):
        state = _apply_configuration(state, before, now, effects)
    else:
        state = _apply(state, message, now, effects)
    if state.waiting:
        state = settle_waiting(state, now, effects)
    state = publish_transition(state, now, effects)
    effects.append(Wake(_find_next_due(state, now)))
    return StepResult(state, tuple(effects))


def flush_before_persisting(state: CampaignState, now: datetime) -> StepResult[CampaignState]:
    """Write charges with the state that has them, whatever the reason to persist it.

    So an offer is in the money ledger, or nothing of its charge is kept.
    """
    if not state.buffer:
        return StepResult(state)
    effects: list[Effect] = []
    state = flush_and_publish(state, now, effects)
    effects.append(Wake(_find_next_due(state, now)))
    return StepResult(state, tuple(effects))


def advance_to(state: CampaignState, now: datetime) -> CampaignState:
    """Bring a stored state up to the clock, for readers."""
    return state if state.config is None else _advance(state, now, [])


def _apply(  # noqa: C901, PLR0911, PLR0912 - one a message
    state: CampaignState, message: CampaignMessage, now: datetime, effects: list[Effect]
) -> CampaignState:
    match message:
        case Confirm():
            return apply_confirm(state, message, now, effects)
        case Confirms(confirms=confirms):
            return apply_confirms(state, confirms, now, effects)
        case CountedImpressions():
            return apply_seen(state, message, effects)
        case CampaignCounts():
            return release_expired(apply_counts(state, message, now, effects), now, effects)
        case LeaseUsage():
            return apply_usage(state, message, now, effects)
        case SessionOver():
            return close_session(state, message, effects)
        case Allotment():
            return apply_allotment(_roll_day(state, message.day, now, effects), message, now, effects)
        case GiveBack(is_all=is_all):
            recall(state, effects, idle_until=None if is_all else int(now.timestamp()) - IDLE_SECONDS)
            return give_back(state, now, effects, is_all=is_all)
        case OpenWindow(was_window=was_window):
            is_open = was_window not in {None, state.window}
            return state if is_open else _open_window(state, now, effects)
        case Refund():
            return apply_refund(state, message, now, effects)
        case BidsDecided():
            return apply_decision(state, message, now, effects)
        case CheckClock():
            return repeat_report_if_due(flush_if_due(state, now, effects), now, effects)
        case AskBudget():
            effects.append(Reply(build_spend_update(state, now)))
            return state
        case ConfigureCampaign():
            return state  # Taken before all others, because without one there is nothing to look at.
        case _:
            assert_never(message)


def _advance(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    return release_expired(_roll_day(state, find_day(state, now), now, effects), now, effects)


def _roll_day(state: CampaignState, day: date, now: datetime, effects: list[Effect]) -> CampaignState:
    """Start a new day with its own budget; days never go back."""
    if day <= state.day:
        return state
    state = flush(drop_settled(state), effects)
    state = _changed(
        state,
        day=day,
        window=state.window + 1,
        spent_window=NOTHING,
        allotted=NOTHING,
        wanted=NOTHING,
        is_giving_back=False,
        pace=start_pace_of_day(state),
    )
    # Even if nothing was spent: listeners wait for this to close yesterday.
    effects += [Persist(), publish_spend(state, now)]
    return queue_report(state, now, effects)


def _configure(state: CampaignState, config: ConfigureCampaign) -> CampaignState:
    if state.config is not None and config.version < state.config.version:
        return state
    return forget_counts(_changed(state, config=config), state.config)


def _apply_configuration(
    state: CampaignState, before: CampaignState, now: datetime, effects: list[Effect]
) -> CampaignState:
    """Recall what may no longer be given, and publish; nothing if nothing changed."""
    config = state.configured
    if before.config is not None and _changed(before.config, version=config.version) == config:
        return state
    has_room = compute_headroom(state, now).amount != NOTHING and not is_click_cap_reached(state)
    if config.impression_cap is not None:
        has_room &= compute_offers_left(state) > 0
    if not config.is_running or not has_room:
        recall(state, effects)
    effects.append(Persist())
    if state.day > before.day:
        return state  # The change of day has already published the state.
    effects.append(publish_spend(state, now))
    return queue_report(state, now, effects)


def _open_window(state: CampaignState, now: datetime, effects: list[Effect]) -> CampaignState:
    """Start a new daily window; leases of the old window stay with it."""
    recall(state, effects)
    state = _changed(flush(state, effects), window=state.window + 1, spent_window=NOTHING)
    effects += [Persist(), publish_spend(state, now)]
    return queue_report(state, now, effects)


def _find_next_due(state: CampaignState, now: datetime) -> datetime | None:
    """When something falls due next; an idle campaign sets no timer."""
    due: list[datetime] = []
    if state.flush_at is not None:
        due.append(state.flush_at)
    if state.report is not None:
        due.append(state.report.again_at)
    due += [one.until for one in state.waiting[:1]]
    if state.held_since is not None:
        expires_at = datetime.fromtimestamp(state.held_since + state.configured.hold_seconds, now.tzinfo)
        due.append(max(now, expires_at))
    if (release_second := find_release_second(state, int(now.timestamp()))) is not None:
        due.append(datetime.fromtimestamp(release_second, now.tzinfo))
    if state.exhausted is BudgetVerdict.DAILY_BUDGET:
        due.append(find_current_day(state).ends_at)
    return min(due, default=None)
