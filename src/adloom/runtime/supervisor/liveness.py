"""Decides whether a child is alive by how long it has not responded.

Silence is counted in ticks of the supervisor. A late tick counts as two at most: when the machine slept, or the
supervisor got no processor, the children had no chance to respond either.
"""

# pure

from enum import StrEnum
from typing import Final

import msgspec

# Until its first sign of life a child is starting: it imports, recovers, reads its file.
START_SECONDS_MAX: Final = 60.0
TICKS_COUNTED_MAX: Final = 2


class LivenessVerdict(StrEnum):
    """Whether a child responds, and what to do if not."""

    RESPONDING = "responding"
    SILENT = "silent"
    # It may only have been stopped by a signal: send SIGCONT.
    CONTINUE = "continue"
    FROZEN = "frozen"


class LivenessBounds(msgspec.Struct, frozen=True, kw_only=True):
    """After how many seconds without a response a child is silent, gets a SIGCONT, or is frozen."""

    tick_seconds: float
    silent_seconds: float
    frozen_seconds: float
    # None: no SIGCONT is sent.
    continue_seconds: float | None = None


class Liveness(msgspec.Struct, frozen=True, kw_only=True):
    """How long a child has not responded."""

    silent_seconds: float = 0.0
    has_responded: bool = False  # At least once.
    was_continued: bool = False  # It got a SIGCONT since it last responded.


def record_tick(
    before: Liveness,
    bounds: LivenessBounds,
    *,
    elapsed_seconds: float,
    is_responding: bool,
    is_busy: bool = False,
) -> Liveness:
    """Add the result of a check; a busy child is not frozen, even if it does not respond."""
    if is_responding:
        return Liveness(has_responded=True)
    if is_busy:
        return msgspec.structs.replace(before, silent_seconds=0.0)
    counted = min(elapsed_seconds, TICKS_COUNTED_MAX * bounds.tick_seconds)
    return msgspec.structs.replace(before, silent_seconds=before.silent_seconds + max(counted, 0.0))


def judge(liveness: Liveness, bounds: LivenessBounds) -> LivenessVerdict:
    frozen_seconds = bounds.frozen_seconds if liveness.has_responded else START_SECONDS_MAX
    continue_after = bounds.continue_seconds
    if liveness.silent_seconds >= frozen_seconds:
        return LivenessVerdict.FROZEN
    if (
        continue_after is not None
        and liveness.silent_seconds >= continue_after
        and not liveness.was_continued
    ):
        return LivenessVerdict.CONTINUE
    # Before its first response a child is starting, not silent.
    if liveness.has_responded and liveness.silent_seconds >= bounds.silent_seconds:
        return LivenessVerdict.SILENT
    return LivenessVerdict.RESPONDING


def mark_continued(liveness: Liveness) -> Liveness:
    """Record that the child got a SIGCONT."""
    return msgspec.structs.replace(liveness, was_continued=True)
