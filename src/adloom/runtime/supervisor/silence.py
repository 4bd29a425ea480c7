"""How long a child has given no sign of life, and what follows from that.

Silence is counted in ticks of the one who listens. A tick that comes late counts no more than two: when the machine
slept, or the listener itself got no processor, the children had no chance to be heard either.
"""

# pure

from enum import StrEnum
from typing import Final

import msgspec

# Until its first sign a child starts: it imports, recovers, reads its file.
START_SECONDS_MAX: Final = 60.0
TICKS_COUNTED_MAX: Final = 2


class SilenceVerdict(StrEnum):
    """What a silence means."""

    HEARD = "heard"
    SILENT = "silent"
    # It may only have been stopped: then it goes on when it is told to.
    CONTINUE = "continue"
    FROZEN = "frozen"


class SilenceBounds(msgspec.Struct, frozen=True, kw_only=True):
    """From when on a silence means something."""

    tick_seconds: float
    silent_seconds: float
    frozen_seconds: float
    # Likewise a time, for a child that is told to go on before it is given up.
    continue_seconds: float | None = None


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """How long nothing was heard of a child."""

    seconds: float = 0.0
    has_begun: bool = False  # It was heard at least once.
    is_told: bool = False  # It was told to go on since it was last heard.


def listen(
    before: Silence,
    bounds: SilenceBounds,
    *,
    elapsed_seconds: float,
    is_heard: bool,
    is_busy: bool = False,
) -> Silence:
    """Add what a tick has found; a child that works is not frozen, even if it does not answer."""
    if is_heard:
        return Silence(has_begun=True)
    if is_busy:
        return msgspec.structs.replace(before, seconds=0.0)
    counted = min(elapsed_seconds, TICKS_COUNTED_MAX * bounds.tick_seconds)
    return msgspec.structs.replace(before, seconds=before.seconds + max(counted, 0.0))


def judge(silence: Silence, bounds: SilenceBounds) -> SilenceVerdict:
    """Say what a silence means now."""
    frozen_seconds = bounds.frozen_seconds if silence.has_begun else START_SECONDS_MAX
    told_after = bounds.continue_seconds
    if silence.seconds >= frozen_seconds:
        return SilenceVerdict.FROZEN
    if told_after is not None and silence.seconds >= told_after and not silence.is_told:
        return SilenceVerdict.CONTINUE
    # Before its first sign a child is not silent: it is not there yet.
    if silence.has_begun and silence.seconds >= bounds.silent_seconds:
        return SilenceVerdict.SILENT
    return SilenceVerdict.HEARD


def tell(silence: Silence) -> Silence:
    """Record that the child was told to go on."""
    return msgspec.structs.replace(silence, is_told=True)
