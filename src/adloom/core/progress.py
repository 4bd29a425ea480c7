"""How far long work is, as the work itself says it; a command shows it."""

from typing import Protocol


class ProgressListener(Protocol):
    """Receives the progress of long work."""

    def begin(self, title: str, total: float | None = None, *, unit: str = "") -> None:
        """Begin a step, with its size if that is known."""

    def advance(self, count: float = 1) -> None:
        """Add to what is done of the step."""


class SilentProgress(ProgressListener):
    """Ignores it."""
