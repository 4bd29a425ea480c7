"""A distributor: takes the campaigns of its categories to all stripes of their bidders, a few categories at once.

Of one category only the newest is said. A bidder that does not answer in time gets it with the next repetition.
"""

# pure

from datetime import datetime, timedelta
from typing import Final, assert_never

import msgspec

from adloom.budgets.messages import CheckClock
from adloom.core.random import Chance
from adloom.market.messages import CategoryDemand, DemandTaken, DistributorMessage
from adloom.market.routing import STRIPES, bidder_address
from adloom.runtime.actors.actor import Effect, StepResult, Tell, Wake

AT_ONCE: Final = 5
ANSWER_WITHIN: Final = timedelta(seconds=5)

_changed = msgspec.structs.replace


class Push(msgspec.Struct, frozen=True):
    """A category that is being told: which stripes have not answered yet."""

    version: int
    unanswered: frozenset[int]
    until: datetime


class DistributorState(msgspec.Struct, frozen=True, kw_only=True):
    """What waits, the newest of each category, and what is under way."""

    waiting: dict[str, CategoryDemand] = {}
    pushes: dict[str, Push] = {}
    unanswered: int = 0  # Pushes that a stripe did not answer in time.


def step(
    state: DistributorState, message: DistributorMessage, now: datetime, chance: Chance
) -> StepResult[DistributorState]:
    del chance
    match message:
        case CategoryDemand():
            state = _changed(state, waiting={**state.waiting, message.category: _merge(state, message)})
        case DemandTaken():
            state = _mark_answered(state, message)
        case CheckClock():
            pass
        case _:
            assert_never(message)
    late = [category for category, push in state.pushes.items() if now >= push.until]
    state = _changed(
        state,
        pushes={category: push for category, push in state.pushes.items() if now < push.until},
        unanswered=state.unanswered + len(late),
    )
    effects: list[Effect] = []
    state = _begin(state, now, effects)
    effects.append(Wake(min((push.until for push in state.pushes.values()), default=None)))
    return StepResult(state, tuple(effects))


def _merge(state: DistributorState, demand: CategoryDemand) -> CategoryDemand:
    """Keep the newest of what waits; an edit that waits stays one."""
    waiting = state.waiting.get(demand.category)
    if waiting is None:
        return demand
    newest = demand if demand.version >= waiting.version else waiting
    return _changed(newest, is_edit=demand.is_edit or waiting.is_edit)


def _mark_answered(state: DistributorState, taken: DemandTaken) -> DistributorState:
    push = state.pushes.get(taken.category)
    if push is None or taken.version < push.version:
        return state
    unanswered = push.unanswered - {taken.stripe}
    pushes = dict(state.pushes)
    if unanswered:
        pushes[taken.category] = _changed(push, unanswered=unanswered)
    else:
        del pushes[taken.category]
    return _changed(state, pushes=pushes)


def _begin(state: DistributorState, now: datetime, effects: list[Effect]) -> DistributorState:
    waiting, pushes = dict(state.waiting), dict(state.pushes)
    for category in list(waiting):
        if len(pushes) >= AT_ONCE:
            break
        if category in pushes:
            continue  # Its next version is said when this one is done.
        demand = waiting.pop(category)
        pushes[category] = Push(demand.version, frozenset(range(STRIPES)), now + ANSWER_WITHIN)
        effects += (Tell(bidder_address(category, stripe), demand) for stripe in range(STRIPES))
    return _changed(state, waiting=waiting, pushes=pushes)
