"""Telling the ledger in groups of what nobody waits for: a group costs nearly as much as one."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

GATHER_SECONDS: Final = 0.02  # A crash loses no more than that.

PublishAll = Callable[[Sequence[bytes]], object]


class BatchingPublisher:
    """Keeps entries for a moment, and tells them together."""

    def __init__(self, tell_all: PublishAll, *, seconds: float = GATHER_SECONDS) -> None:
        self._tell_all = tell_all
        self._seconds = seconds
        self._entries: list[bytes] = []

    def publish(self, entry: bytes) -> None:
        """Tell an entry soon."""
        if not self._entries:
            asyncio.get_running_loop().call_later(self._seconds, self.flush)
        self._entries.append(entry)

    def flush(self) -> None:
        """Tell all that is kept; at the end, while there is somebody to tell."""
        entries, self._entries = self._entries, []
        if entries:
            self._tell_all(entries)
