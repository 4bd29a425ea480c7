"""Shows what a command is doing: a spinner on a terminal, one line a step elsewhere."""

import contextlib
import time
from collections.abc import Generator

from rich.console import Console


class Progress:
    """Reports steps on standard output, each with the time it took."""

    def __init__(self) -> None:
        # Lines are never folded: programs read them.
        self._console = Console(highlight=False, soft_wrap=True)

    @contextlib.contextmanager
    def step(self, title: str) -> Generator[None]:
        """Show a step while it is done, and that it is done."""
        started_at = time.perf_counter()
        try:
            with self._console.status(title) if self._console.is_terminal else contextlib.nullcontext():
                yield
        except BaseException:
            self._console.print(f"[red]✗[/red] {title}")
            raise
        seconds = time.perf_counter() - started_at
        self._console.print(f"[green]✓[/green] {title:<24}[dim]{seconds:>6.2f} s[/dim]")

    def say(self, text: str = "") -> None:
        """Print a line as it is."""
        self._console.print(text, markup=False)

    def ready(self, line: str) -> None:
        """Print the line that programs wait for, bare and at once."""
        print(line, flush=True)  # noqa: T201 - without any colour or folding
