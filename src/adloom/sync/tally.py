"""What providers have done in this process: plain figures, read by a collector."""

import bisect
from collections.abc import Iterable
from typing import Final

from adloom.sync.words import Platform

OUTCOMES: Final[tuple[str, ...]] = ("done", "expired", "throttled", "unavailable", "refused", "failed")
# Fetches of one account: from a mock in this process to a platform that is asked page by page.
SECONDS_BOUNDS: Final = (0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0)


class ProviderTally:
    """Fetches of one provider: how many ended how, how many rows, how long they took."""

    def __init__(self) -> None:
        self.rows = 0
        self.outcomes: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
        self.seconds_sum = 0.0
        # How many took at most each bound, and, last, how many took longer than all.
        self.within = [0] * (len(SECONDS_BOUNDS) + 1)

    def record_seconds(self, seconds: float) -> None:
        """Count how long a fetch took."""
        self.seconds_sum += seconds
        self.within[bisect.bisect_left(SECONDS_BOUNDS, seconds)] += 1


class SyncTally:
    """What syncs have done in this process."""

    def __init__(self, platforms: Iterable[Platform]) -> None:
        self.providers = {platform: ProviderTally() for platform in platforms}
        self.daily_changed = 0
        self.sellpages_changed = 0
