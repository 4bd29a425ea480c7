"""A worker whose clock is wrong by DRILL_CLOCK_SECONDS."""

import os
from datetime import UTC, datetime, timedelta

from adloom.app.worker import main
from adloom.core.clock import SystemClock

WRONG_BY = timedelta(seconds=float(os.environ["DRILL_CLOCK_SECONDS"]))


def read_wrong_clock(clock: SystemClock) -> datetime:
    del clock
    return datetime.now(UTC) + WRONG_BY  # noqa: TID251 - this is the clock


if __name__ == "__main__":
    setattr(SystemClock, "now", read_wrong_clock)  # noqa: B010 - on purpose
    main()
