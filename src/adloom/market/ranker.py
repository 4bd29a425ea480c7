"""A ranker: the impressions and clicks of a category on a site, or on all sites."""

# pure

from datetime import datetime, timedelta
from typing import Final, assert_never

import msgspec

from adloom.budgets.messages import CheckClock
from adloom.core.random import Chance
from adloom.market.messages import LoadResults, Quote, Quoted, RankerMessage, RecordResults, ResultsRow
from adloom.market.routing import make_auctioneer_address
from adloom.market.weights import DecayingCounts
from adloom.runtime.actors.actor import Effect, RecordRow, StepResult, Tell, Wake

FLUSH_AFTER: Final = timedelta(seconds=5)
_changed = msgspec.structs.replace


class RankerState(msgspec.Struct, frozen=True, kw_only=True):
    """Counts, and when those that are not recorded yet will be."""

    category: str
    site: str
    counts: DecayingCounts = DecayingCounts()
    through: int = 0  # The last row of the results that is in them.
    flush_at: datetime | None = None


def make_ranker(key: str, now: datetime) -> RankerState:
    del now
    category, _, site = key.rpartition("|")
    return RankerState(category=category, site=site)


def step(
    state: RankerState, message: RankerMessage, now: datetime, chance: Chance
) -> StepResult[RankerState]:
    del chance
    effects: list[Effect] = []
    match message:
        case LoadResults():
            counts = DecayingCounts(message.impressions, message.clicks, message.at)
            state = _changed(state, counts=counts, through=message.through)
        case RecordResults():
            state = _record(state, message, now)
        case Quote():
            known = DecayingCounts() if state.counts.is_forgotten(now) else state.counts
            effects.append(
                Tell(make_auctioneer_address(message.site_id), Quoted(state.category, state.site, known))
            )
        case CheckClock():
            pass
        case _:
            assert_never(message)
    # A clock that was set back would let them wait.
    if state.flush_at is not None and not state.flush_at - FLUSH_AFTER <= now < state.flush_at:
        counts = state.counts
        assert counts.at is not None, "something was recorded"
        row = ResultsRow(
            state.category, state.site, counts.impressions, counts.clicks, counts.at, state.through
        )
        effects.append(RecordRow(row))
        state = _changed(state, flush_at=None)
    effects.append(Wake(state.flush_at))
    return StepResult(state, tuple(effects))


def _record(state: RankerState, results: RecordResults, now: datetime) -> RankerState:
    """Add new results; those not recorded before a worker died are sent again, from the last recorded row on."""
    if results.through <= state.through:
        return state
    return _changed(
        state,
        counts=state.counts.with_results(results.impressions, results.clicks, results.at),
        through=results.through,
        flush_at=state.flush_at or now + FLUSH_AFTER,
    )
