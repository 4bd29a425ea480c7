"""Keep what is measured and what measures it on cores of their own: neither takes time from the other.

Left alone, the system often puts a server beside the client that it wakes, and another core stands idle.
"""

import contextlib
import os
from collections.abc import Set as AbstractSet


def pin_to_last_cpu(pid: int) -> None:
    """Bind a process to the last core we may use, where there are several and the system lets us."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) > 1:
        _bind(pid, {max(allowed)})


def keep_off_last_cpu(pid: int) -> None:
    """Bind a process to the other cores."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) > 1:
        _bind(pid, allowed - {max(allowed)})


def _bind(pid: int, cpus: AbstractSet[int]) -> None:
    # The process may be gone already, if it failed to start.
    with contextlib.suppress(OSError):
        os.sched_setaffinity(pid, cpus)
