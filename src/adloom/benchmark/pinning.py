"""Keep the load generator on one core, so that it takes no time from the server it measures."""

import contextlib
import os


def pin_to_last_cpu(pid: int) -> None:
    """Bind a process to the last core we may use, where there are several and the system lets us."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) > 1:
        # The process may be gone already, if it failed to start.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(pid, {max(allowed)})
