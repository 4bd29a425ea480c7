"""Which candidates are open by schedule: a bitmap per block that changes only at moments known ahead.

A campaign's dates and a banner's schedule say when they open and close next. So nothing has to tell the
index that a time has come, and between two such moments a request compares two clock times.
"""

# pure

from collections.abc import Generator
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush

import msgspec

from adloom.schedule.schedule_window import find_next_change, is_open
from adloom.serving.index.index import HasBlocks, Timing

NEVER = datetime.max.replace(tzinfo=UTC)
CANDIDATES_A_STEP = 64

OpenState = tuple[bool, datetime | None]  # Is open, and until when that certainly stays so.


class ScheduleMask(msgspec.Struct, frozen=True, kw_only=True):
    """The open candidates of a placement, from one moment to another."""

    masks: tuple[int, ...]  # One for each block.
    since: datetime
    until: datetime
    changes: list[tuple[datetime, int, int]]  # A heap of (when, block, position); copied, never changed.


def build_schedule_mask(placement: HasBlocks, *, now: datetime) -> Generator[None, None, ScheduleMask]:
    """Look at every candidate, in steps."""
    known: dict[int, OpenState] = {}
    masks: list[int] = []
    changes: list[tuple[datetime, int, int]] = []
    for number, block in enumerate(placement.blocks):
        mask = block.everyone
        for number_timed, position in enumerate(block.timed):
            if number_timed % CANDIDATES_A_STEP == 0:
                yield
            is_in_time, until = _get_state(block.candidates[position].timing, known, now)
            if not is_in_time:
                mask ^= 1 << position
            if until is not None:
                changes.append((until, number, position))
        masks.append(mask)
    heapify(changes)
    return _build_mask(masks, changes, now)


def advance_schedule_mask(
    schedule_mask: ScheduleMask, placement: HasBlocks, *, now: datetime
) -> ScheduleMask:
    """Look only at candidates whose moment has come; time does not run back here."""
    assert schedule_mask.since <= now, "for an earlier moment the mask is built again"
    known: dict[int, OpenState] = {}
    masks = list(schedule_mask.masks)
    changes = schedule_mask.changes.copy()
    while changes and changes[0][0] <= now:
        _, number, position = heappop(changes)
        is_in_time, until = _get_state(placement.blocks[number].candidates[position].timing, known, now)
        bit = 1 << position
        masks[number] = masks[number] | bit if is_in_time else masks[number] & ~bit
        if until is not None:
            heappush(changes, (until, number, position))
    return _build_mask(masks, changes, now)


def find_open_get_state(timing: Timing, *, now: datetime) -> OpenState:
    """Return whether a candidate is open, and until when that certainly stays so."""
    if timing.ends_at is not None and timing.ends_at <= now:
        return False, None
    if timing.starts_at is not None and now < timing.starts_at:
        return False, timing.starts_at
    until = find_next_change(timing.schedule, now=now)
    if timing.ends_at is not None and (until is None or timing.ends_at < until):
        until = timing.ends_at
    return is_open(timing.schedule, now=now), until


def _get_state(timing: Timing | None, known: dict[int, OpenState], now: datetime) -> OpenState:
    """Compute once for all candidates that share a timing."""
    assert timing is not None, "only the timed are looked at"
    state = known.get(id(timing))
    if state is None:
        state = known[id(timing)] = find_open_get_state(timing, now=now)
    return state


def _build_mask(masks: list[int], changes: list[tuple[datetime, int, int]], now: datetime) -> ScheduleMask:
    return ScheduleMask(
        masks=tuple(masks), since=now, until=changes[0][0] if changes else NEVER, changes=changes
    )
