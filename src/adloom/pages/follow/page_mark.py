"""Says whether pages may have changed since they were last read, by the last number that a page's version has had."""

# pure

import math
from typing import Final

# A number is taken before its page is committed, so pages are read again for longer than that takes.
COMMITTED_SECONDS: Final = 10.0
AGAIN_SECONDS: Final = 30.0  # Whatever was missed, such as a site that is gone.


class PageMark:
    """When pages were last read, and as of which number; times are in seconds of any steady clock."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._moved_at = self._read_at = -math.inf

    def is_due(self, number: int, *, at: float) -> bool:
        """Whether to read pages now; whoever has done so says it."""
        if number != self._number:
            self._number, self._moved_at = number, at
        return self._read_at < self._moved_at + COMMITTED_SECONDS or at >= self._read_at + AGAIN_SECONDS

    def note_read(self, *, at: float) -> None:
        self._read_at = at
