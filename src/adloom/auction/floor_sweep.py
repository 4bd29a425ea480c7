"""A floor that finds its own height: try some, keep the one that earned most, and look again later.

Bids say between which prices it is worth looking. Each candidate is held for a few ticks while impressions and
revenue are counted; then the best is kept for a long time. Candidates take turns, so that none is tried only while
traffic is high. With one bidder there is nothing to find out, and without any the floor is as low as it may be. Only
bids that may be shown count.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from adloom.core.money import Micros

CANDIDATES: Final = 8
TICKS_A_CANDIDATE: Final = 4
# Up, down, down, up: so traffic that rises or falls, and the bend of its curve, add the same to all candidates.
ROUNDS_UPWARD: Final = frozenset({0, 3})
TICKS_OF_USE: Final = 60
IMPRESSIONS_MIN: Final = 3
TIE: Final = 0.05  # Of the best revenue: within it the higher floor is as good.
UNDER_BID: Final = 0.99
EQUAL_BIDS_LOW: Final = 0.8
STEPS: Final = 10  # Candidates are whole tenths of the lowest floor.


class SweepPhase(StrEnum):
    """What the floor is doing."""

    WAITING = "waiting"  # There is nothing to find out.
    TRYING = "trying"
    USING = "using"


class TriedFloor(msgspec.Struct, frozen=True):
    """A candidate, and what it brought while it was the floor."""

    floor: Micros
    ticks: int = 0
    impressions: int = 0
    revenue: Micros = Micros(0)


class TickResult(msgspec.Struct, frozen=True, kw_only=True):
    """What happened since the last tick: bids by campaign, those under the floor included, and what was sold."""

    bids: tuple[Micros, ...]
    impressions: int = 0
    revenue: Micros = Micros(0)


class SweepState(msgspec.Struct, frozen=True, kw_only=True):
    """The floor, and the evidence for it."""

    floor: Micros
    floor_min: Micros
    phase: SweepPhase = SweepPhase.WAITING
    tried: tuple[TriedFloor, ...] = ()
    position: int = 0
    ticks_left: int = 0


_changed = msgspec.structs.replace


def advance(state: SweepState, tick: TickResult) -> SweepState:
    """Return the state after a tick; the floor is never under the lowest one, and never above the highest bid."""
    bids = sorted((bid for bid in tick.bids if bid >= state.floor_min), reverse=True)
    if len(bids) < 2:  # noqa: PLR2004 - a single bid outbids no other
        floor = state.floor_min if not bids else _clip(bids[0] * UNDER_BID, state.floor_min)
        return SweepState(floor=floor, floor_min=state.floor_min)
    if state.phase is SweepPhase.TRYING and state.tried[0].floor <= bids[0]:
        # A floor that no bid reaches any more was not tried for a whole tick. It waits until bids come back.
        counted = _count(state, tick) if state.floor <= bids[0] else state
        return _go_on(counted, bids[0])
    if state.phase is SweepPhase.USING and state.ticks_left > 1 and state.floor <= bids[0]:
        return _changed(state, ticks_left=state.ticks_left - 1)
    return _begin(state, bids)


def choose_candidates(bids: Sequence[Micros], floor_min: Micros) -> tuple[Micros, ...]:
    """Space candidates evenly between the lowest bid and just under the second highest; `bids` are in falling order."""
    high = min(bids[0], bids[1] * UNDER_BID)
    low = float(bids[-1]) if bids[-1] < bids[0] else bids[0] * EQUAL_BIDS_LOW
    low = max(float(floor_min), min(low, high))
    step = max(1, floor_min // STEPS)
    spaced = (low + (high - low) * number / (CANDIDATES - 1) for number in range(CANDIDATES))
    rounded = (max(floor_min, round(price) // step * step) for price in spaced)
    return tuple(Micros(price) for price in dict.fromkeys(rounded))


def _begin(state: SweepState, bids: Sequence[Micros]) -> SweepState:
    tried = tuple(TriedFloor(floor) for floor in choose_candidates(bids, state.floor_min))
    return SweepState(floor=tried[0].floor, floor_min=state.floor_min, phase=SweepPhase.TRYING, tried=tried)


def _count(state: SweepState, tick: TickResult) -> SweepState:
    one = state.tried[state.position]
    counted = TriedFloor(
        one.floor, one.ticks + 1, one.impressions + tick.impressions, Micros(one.revenue + tick.revenue)
    )
    tried = (*state.tried[: state.position], counted, *state.tried[state.position + 1 :])
    return _changed(state, tried=tried)


def _go_on(state: SweepState, bid_max: Micros) -> SweepState:
    """Take the next candidate of those that a bid reaches, or choose when all had enough ticks."""
    reached = [one for one in state.tried if one.floor <= bid_max]
    fewest = min(one.ticks for one in reached)
    if fewest >= TICKS_A_CANDIDATE:
        return _changed(state, floor=choose_floor(reached), phase=SweepPhase.USING, ticks_left=TICKS_OF_USE)
    waiting = [position for position, one in enumerate(reached) if one.ticks == fewest]
    position = waiting[0] if fewest in ROUNDS_UPWARD else waiting[-1]
    return _changed(state, position=position, floor=state.tried[position].floor)


def choose_floor(tried: Sequence[TriedFloor]) -> Micros:
    """Return the floor with the highest revenue among those that were tried enough.

    Never one above a lower candidate that was not tried enough; of those within a few percent the highest; the lowest
    where nothing was earned.
    """
    tested: list[TriedFloor] = []
    for one in tried:
        if one.impressions < IMPRESSIONS_MIN:
            break
        tested.append(one)
    best = max((one.revenue for one in tested), default=Micros(0))
    if best <= 0:
        return tried[0].floor
    return max(one.floor for one in tested if one.revenue >= best * (1 - TIE))


def _clip(price: float, floor_min: Micros) -> Micros:
    return Micros(max(floor_min, int(price)))
