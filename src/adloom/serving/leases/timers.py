"""When which campaign has to report about its lease; an idle campaign costs nothing. `at` is a monotonic time."""

# pure

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from adloom.serving.leases.campaign_lease import CampaignLease

BACKGROUND_A_SECOND: Final = 5_000  # Campaigns that are not needed yet ask one after another.


class LeaseTimers:
    """Min-heaps of (due time, campaign). Entries may be stale; only one equal to `lease.due_at` counts."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int]] = []
        self._repeats: list[tuple[float, int]] = []
        self._ends: list[tuple[int, int]] = []
        self._in_turn_at = 0.0

    @property
    def next_at(self) -> float | None:
        return min((heap[0][0] for heap in (self._due, self._repeats) if heap), default=None)

    @property
    def next_end(self) -> int | None:
        """The second in which the next lease may end."""
        return self._ends[0][0] if self._ends else None

    def schedule(self, key: int, lease: CampaignLease, at: float) -> None:
        """Schedule a report, unless an earlier one is scheduled."""
        if lease.due_at is None or at < lease.due_at:
            self.reschedule(key, lease, at)

    def reschedule(self, key: int, lease: CampaignLease, at: float) -> None:
        """Schedule a report, and none before it."""
        lease.due_at = at
        heappush(self._due, (at, key))

    def schedule_repeat(self, key: int, lease: CampaignLease, at: float) -> None:
        """Repeat a report at a moment, unless it is answered before."""
        lease.due_at = at
        heappush(self._repeats, (at, key))

    def take_background_slot(self, at: float) -> float:
        """Return the next free moment for a campaign that can wait."""
        turn_at = max(self._in_turn_at, at)
        self._in_turn_at = turn_at + 1 / BACKGROUND_A_SECOND
        return turn_at

    def pop_due(self, at: float) -> Iterator[tuple[float, int]]:
        while self._due and self._due[0][0] <= at:
            yield heappop(self._due)

    def pop_repeats(self, at: float) -> Iterator[tuple[float, int]]:
        while self._repeats and self._repeats[0][0] <= at:
            yield heappop(self._repeats)

    def schedule_end(self, key: int, second: int) -> None:
        heappush(self._ends, (second, key))

    def pop_ended(self, second: int, *, most: int) -> Iterator[tuple[int, int]]:
        for _ in range(most):
            if not self._ends or self._ends[0][0] > second:
                return
            yield heappop(self._ends)

    def clear(self) -> None:
        self._due.clear()
        self._repeats.clear()
        self._ends.clear()
