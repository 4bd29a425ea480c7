"""A distributor: takes the campaigns of its categories to all stripes of their bidders, a few categories at once.

Of a category only the newest version is sent. Stripes that do not answer in time get it again, after what waits by then.
"""

# pure

from datetime import datetime, timedelta
from typing import Final, assert_never

import msgspec

from adloom.budgets.messages import CheckClock
from adloom.core.random import Chance
from adloom.market.messages import CategoryDemand, DemandTaken, DistributorMessage
from adloom.market.routing import STRIPES, make_bidder_address
from adloom.runtime.actors.actor import Effect, StepResult, Tell, Wake

AT_ONCE: Final = 5
REPEATED_AT_ONCE: Final = AT_ONCE - 1  # Bidders that never answer hold nothing up.
ANSWER_WITHIN: Final = timedelta(seconds=5)
ALL_STRIPES: Final = frozenset(range(STRIPES))

_changed = msgspec.structs.replace


class Push(msgspec.Struct, frozen=True):
    """A category that is being told: which stripes have not answered yet."""

    demand: CategoryDemand
    unanswered: frozenset[int]
    until: datetime
    is_repeated: bool = False


class DistributorState(msgspec.Struct, frozen=True, kw_only=True):
    """What waits, the newest of each category, and what is under way.

    Where only some stripes wait, `stripes` has them: the others have answered.
    """

    waiting: dict[str, CategoryDemand] = {}
    stripes: dict[str, frozenset[int]] = {}
    pushes: dict[str, Push] = {}
    unanswered: int = 0  # Pushes that a stripe did not answer in time.


def step(
    state: DistributorState, message: DistributorMessage, now: datetime, chance: Chance
) -> StepResult[DistributorState]:
    del chance
    match message:
        case CategoryDemand():
            state = _changed(
                state,
                waiting={**state.waiting, message.category: _merge(state, message)},
                stripes={one: some for one, some in state.stripes.items() if one != message.category},
            )
        case DemandTaken():
            state = _mark_answered(state, message)
        case CheckClock():
            pass
        case _:
            assert_never(message)
    state = _repeat_late(state, now)
    effects: list[Effect] = []
    state = _begin(state, now, effects)
    effects.append(Wake(min((push.until for push in state.pushes.values()), default=None)))
    return StepResult(state, tuple(effects))


def _repeat_late(state: DistributorState, now: datetime) -> DistributorState:
    """Let pushes wait again for the stripes that have not answered, unless something newer waits for all."""
    # One of a later time than now is of before the clock was set back.
    late = {
        category: push
        for category, push in state.pushes.items()
        if not push.until - ANSWER_WITHIN <= now < push.until
    }
    if not late:
        return state
    again = {category: push for category, push in late.items() if category not in state.waiting}
    return _changed(
        state,
        pushes={category: push for category, push in state.pushes.items() if category not in late},
        waiting=state.waiting | {category: push.demand for category, push in again.items()},
        stripes=state.stripes | {category: push.unanswered for category, push in again.items()},
        unanswered=state.unanswered + len(late),
    )


def _merge(state: DistributorState, demand: CategoryDemand) -> CategoryDemand:
    """Keep the newest of what waits."""
    waiting = state.waiting.get(demand.category)
    return demand if waiting is None or demand.version >= waiting.version else waiting


def _mark_answered(state: DistributorState, taken: DemandTaken) -> DistributorState:
    push = state.pushes.get(taken.category)
    if push is None or taken.version < push.demand.version:
        return state
    unanswered = push.unanswered - {taken.stripe}
    pushes = dict(state.pushes)
    if unanswered:
        pushes[taken.category] = _changed(push, unanswered=unanswered)
    else:
        del pushes[taken.category]
    return _changed(state, pushes=pushes)


def _begin(state: DistributorState, now: datetime, effects: list[Effect]) -> DistributorState:
    waiting, stripes, pushes = dict(state.waiting), dict(state.stripes), dict(state.pushes)
    repeated = sum(push.is_repeated for push in pushes.values())
    for category in sorted(waiting, key=lambda one: one in stripes):
        is_repeated = category in stripes
        if len(pushes) >= AT_ONCE or (is_repeated and repeated >= REPEATED_AT_ONCE):
            break
        if category in pushes:
            continue  # Its next version is said when this one is done.
        repeated += is_repeated
        demand = waiting.pop(category)
        told = stripes.pop(category, ALL_STRIPES)
        pushes[category] = Push(demand, told, now + ANSWER_WITHIN, is_repeated)
        effects += (Tell(make_bidder_address(category, stripe), demand) for stripe in sorted(told))
    return _changed(state, waiting=waiting, stripes=stripes, pushes=pushes)
