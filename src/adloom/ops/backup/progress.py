"""How far a long command is: a bar on a terminal, one line a second elsewhere."""

from collections.abc import Callable
from typing import Final

EVERY_SECONDS: Final = 1.0
BAR_EVERY_SECONDS: Final = 0.1
BAR_WIDTH: Final = 24
TITLE_WIDTH: Final = 22
MEGABYTE: Final = 10**6


class LongProgress:
    """Shows steps one after another, each by how much of it is done."""

    def __init__(
        self, write: Callable[[str], object], *, is_terminal: bool, now: Callable[[], float]
    ) -> None:
        self._write = write
        self._is_terminal = is_terminal
        self._now = now
        self._shown_at: float | None = None

    def show(self, title: str, done: int, total: int, *, unit: str = "MB") -> None:
        """Show how far a step is, unless that was shown a moment ago."""
        now = self._now()
        every = BAR_EVERY_SECONDS if self._is_terminal else EVERY_SECONDS
        if self._shown_at is None or now - self._shown_at >= every:
            self._shown_at = now
            line = describe(title, done, total, unit=unit, has_bar=self._is_terminal)
            self._write(f"\r{line}\x1b[K" if self._is_terminal else f"{line}\n")

    def finish(self, title: str, done: int, *, unit: str = "MB") -> None:
        """Show that a step is done, always."""
        line = f"✓ {title:<{TITLE_WIDTH}} {_count(done, unit)} {unit}"
        self._write(f"\r{line}\x1b[K\n" if self._is_terminal else f"{line}\n")
        self._shown_at = None


def describe(title: str, done: int, total: int, *, unit: str, has_bar: bool) -> str:
    """Write a step in one line."""
    share = min(1.0, done / total) if total else 1.0
    filled = round(share * BAR_WIDTH)
    bar = f"{'█' * filled}{'░' * (BAR_WIDTH - filled)} " if has_bar else ""
    return (
        f"  {title:<{TITLE_WIDTH}} {bar}{share:>4.0%}  {_count(done, unit)} of {_count(total, unit)} {unit}"
    )


def _count(number: int, unit: str) -> str:
    return f"{number / MEGABYTE:,.1f}" if unit == "MB" else f"{number:,}"
