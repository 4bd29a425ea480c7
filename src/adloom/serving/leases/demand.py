"""Whether an excluded campaign is in demand, judged by the requests for its placements.

An excluded campaign never comes up in a request. So each placement notes that it was requested, and a
campaign without requests waits at its placements.
"""

# pure

from collections.abc import Callable, Iterable
from typing import Final

RECENT_SECONDS: Final = 2.0


class Demand:
    """Which placements were requested recently, and which campaigns wait for that."""

    def __init__(self, placements_of: Callable[[int], Iterable[int]]) -> None:
        self._placements_of = placements_of
        self._asked_at: dict[int, float] = {}
        self._waiting: dict[int, set[int]] = {}  # By placement.
        self._at = 0.0

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def record_requests(self, placement_keys: Iterable[int], *, at: float) -> set[int]:
        """Record requested placements, and return the campaigns that waited for them."""
        self._at = at
        found: set[int] = set()
        for placement_key in placement_keys:
            self._asked_at[placement_key] = at
            found |= self._waiting.pop(placement_key, set())
        return found

    def is_requested(self, campaign_key: int) -> bool:
        """Whether a campaign is in demand; if not, it waits for a request from now on."""
        placement_keys = list(self._placements_of(campaign_key))
        oldest = self._at - RECENT_SECONDS
        if any(self._asked_at.get(key, oldest) > oldest for key in placement_keys):
            return True
        for key in placement_keys:
            self._waiting.setdefault(key, set()).add(campaign_key)
        return False
