"""Whether somebody asks for a campaign that is not shown: known by the placements that were asked for.

Who is excluded never comes up in a request, so each placement only notes that it was asked for, and
whoever wants to know about a campaign looks at its placements. One that nobody asks for waits there.
"""

# pure

from collections.abc import Callable, Iterable
from typing import Final

LATELY_SECONDS: Final = 2.0


class Demand:
    """Which placements were asked for lately, and who waits until they are."""

    def __init__(self, placements_of: Callable[[int], Iterable[int]]) -> None:
        self._placements_of = placements_of
        self._asked_at: dict[int, float] = {}
        self._waiting: dict[int, set[int]] = {}  # By placement.
        self._at = 0.0

    @property
    def has_waiting(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def record_requests(self, placement_keys: Iterable[int], *, at: float) -> set[int]:
        """Note which placements were asked for, and tell which campaigns waited for that."""
        self._at = at
        found: set[int] = set()
        for placement_key in placement_keys:
            self._asked_at[placement_key] = at
            found |= self._waiting.pop(placement_key, set())
        return found

    def is_requested(self, campaign_key: int) -> bool:
        """Tell whether somebody asks for a campaign; where nobody does, it waits for that from now on."""
        placement_keys = list(self._placements_of(campaign_key))
        oldest = self._at - LATELY_SECONDS
        if any(self._asked_at.get(key, oldest) > oldest for key in placement_keys):
            return True
        for key in placement_keys:
            self._waiting.setdefault(key, set()).add(campaign_key)
        return False
