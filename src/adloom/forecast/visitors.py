"""What simulated visitors were shown, for frequency caps: counted as the product counts, by calendar window."""

# pure

from collections.abc import Sequence
from datetime import datetime

from adloom.events.frequency.windows import Window, list_buckets

Shown = tuple[Window, str, int]  # Window, banner id, times.


class SeenCounts:
    """How often each visitor was shown each capped banner."""

    def __init__(self, visitors: int) -> None:
        self._visitors = visitors
        self._counts: dict[tuple[int, Window, str], dict[str, int]] = {}
        self._hour: datetime | None = None
        self._buckets: list[tuple[Window, str]] = []

    def find_visitor(self, chance: float) -> int | None:
        """Return who asks; None if nobody comes twice."""
        return int(chance * self._visitors) if self._visitors else None

    def record(self, visitor: int, banner_id: str, now: datetime) -> None:
        for window, bucket in self._list_buckets(now):
            counts = self._counts.setdefault((visitor, window, bucket), {})
            counts[banner_id] = counts.get(banner_id, 0) + 1

    def read(self, visitor: int, now: datetime) -> Sequence[Shown]:
        return [
            (window, banner_id, times)
            for window, bucket in self._list_buckets(now)
            for banner_id, times in self._counts.get((visitor, window, bucket), {}).items()
        ]

    def _list_buckets(self, now: datetime) -> Sequence[tuple[Window, str]]:
        hour = now.replace(minute=0, second=0, microsecond=0)
        if hour != self._hour:
            self._hour = hour
            self._buckets = [(one.window, one.name) for one in list_buckets(now)]
        return self._buckets
