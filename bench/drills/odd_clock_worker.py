"""A worker whose clock is wrong by DRILL_CLOCK_SECONDS."""

import os
from datetime import UTC, datetime, timedelta

from adloom.app.worker import main
from adloom.core.clock import SystemClock

WRONG_BY = timedelta(seconds=float(os.environ["DRILL_CLOCK_SECONDS"]))

if __name__ == "__main__":
    SystemClock.now = lambda self: datetime.now(UTC) + WRONG_BY  # noqa: ARG005, TID251 - this is the clock
    main()
