"""Whether a child is alive: how long it has given no sign of life, and what follows from that.

Silence is counted in ticks of the process that listens. A tick that comes late counts no more than two: when the machine
slept, or the listener itself got no processor, the children had no chance to be heard either.
"""

# pure

from enum import StrEnum
from typing import Final

import msgspec

# Until its first sign a child starts: it imports, recovers, reads its file.
START_SECONDS_MAX: Final = 60.0
TICKS_COUNTED_MAX: Final = 2


class LivenessVerdict(StrEnum):
    """What is to be thought of a child."""

    HEARD = "heard"
    SILENT = "silent"
    # It may only have been stopped: then it goes on when it is told to.
    CONTINUE = "continue"
    FROZEN = "frozen"


class LivenessBounds(msgspec.Struct, frozen=True, kw_only=True):
    """After how much silence a child is silent, told to go on, or frozen."""

    tick_seconds: float
    silent_seconds: float
    frozen_seconds: float
    # Likewise a time, for a child that is told to go on before it is given up.
    continue_seconds: float | None = None


class Liveness(msgspec.Struct, frozen=True, kw_only=True):
    """How long nothing was heard of a child."""

    silent_seconds: float = 0.0
    has_begun: bool = False  # It was heard at least once.
    is_told: bool = False  # It was told to go on since it was last heard.


def record_tick(
    before: Liveness,
    bounds: LivenessBounds,
    *,
    elapsed_seconds: float,
    is_heard: bool,
    is_busy: bool = False,
) -> Liveness:
    """Add what a tick has found; a child that works is not frozen, even if it does not answer."""
    if is_heard:
        return Liveness(has_begun=True)
    if is_busy:
        return msgspec.structs.replace(before, silent_seconds=0.0)
    counted = min(elapsed_seconds, TICKS_COUNTED_MAX * bounds.tick_seconds)
    return msgspec.structs.replace(before, silent_seconds=before.silent_seconds + max(counted, 0.0))


def judge(liveness: Liveness, bounds: LivenessBounds) -> LivenessVerdict:
    """Return what is to be thought of a child now."""
    frozen_seconds = bounds.frozen_seconds if liveness.has_begun else START_SECONDS_MAX
    told_after = bounds.continue_seconds
    if liveness.silent_seconds >= frozen_seconds:
        return LivenessVerdict.FROZEN
    if told_after is not None and liveness.silent_seconds >= told_after and not liveness.is_told:
        return LivenessVerdict.CONTINUE
    # Before its first sign a child is not silent: it is not there yet.
    if liveness.has_begun and liveness.silent_seconds >= bounds.silent_seconds:
        return LivenessVerdict.SILENT
    return LivenessVerdict.HEARD


def mark_told(liveness: Liveness) -> Liveness:
    """Record that the child was told to go on."""
    return msgspec.structs.replace(liveness, is_told=True)
