"""Shows what a command is doing: a bar or a spinner on a terminal, one line a second elsewhere."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Generator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

# As wide as the longest title.
TITLE_WIDTH = 26
LABEL_WIDTH = 10
LINE_SECONDS = 1.0


class StepProgress:
    """Reports steps on standard output, each with the time it took."""

    def __init__(self, *, line_seconds: float = LINE_SECONDS) -> None:
        self._line_seconds = line_seconds
        # Lines are never folded: programs read them.
        self._console = _LastingConsole(highlight=False, soft_wrap=True)

    @contextlib.contextmanager
    def step(self, title: str) -> Generator[None]:
        """Show a step while it runs, and how it ended."""
        started_at = time.perf_counter()
        try:
            with (
                self._console.status(title)
                if self._console.is_terminal
                else print_elapsed(title, self.print_line, every_seconds=self._line_seconds)
            ):
                yield
        except BaseException:
            self._console.print(f"[red]✗[/red] {title}")
            raise
        seconds = time.perf_counter() - started_at
        self._console.print(f"[green]✓[/green] {title:<{TITLE_WIDTH}}[dim]{seconds:>6.2f} s[/dim]")

    def print_line(self, text: str = "") -> None:
        self._console.print(text, markup=False)

    def print_fact(self, label: str, value: str, note: str = "") -> None:
        """Print a line that people look up: what, where, and what for."""
        line = Text(f"  {label:<{LABEL_WIDTH}}", style="dim").append(value, style="not dim")
        self._console.print(line.append(f"  {note}") if note else line)

    def print_ready(self, line: str) -> None:
        """Print the line that programs wait for, plain and at once."""
        try:
            print(line, flush=True)  # noqa: T201 - without any colour or folding
        except BrokenPipeError:
            self._console.on_broken_pipe()


class SecondLines:
    """Says how far a long command is where there is no terminal: a line a second, on the side of errors."""

    def __init__(
        self,
        write: Callable[[str], object] | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write or _write_error
        self._now = now
        self._said_at = now()

    def say(self, line: str) -> None:
        """Write a line, at most one a second; others are left out."""
        now = self._now()
        if now - self._said_at >= LINE_SECONDS:
            self._said_at = now
            self._write(line)


@contextlib.contextmanager
def print_elapsed(
    title: str, write: Callable[[str], object], *, every_seconds: float = LINE_SECONDS
) -> Generator[None]:
    """Print every second how long the block has been running. A thread does it, so the block need not."""
    is_over = threading.Event()

    def say() -> None:
        started_at = time.monotonic()
        while not is_over.wait(every_seconds):
            write(f"… {title}, {time.monotonic() - started_at:.0f} s")

    thread = threading.Thread(target=say, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextlib.contextmanager
def show_elapsed(title: str, console: Console | None = None) -> Generator[None]:
    """Show that something of unknown length runs: a moving bar on a terminal, a line a second elsewhere."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        with print_elapsed(title, _write_error):
            yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    # Drawn rarely: what runs may be measured.
    with Progress(*columns, console=console, transient=True, refresh_per_second=1) as bar:
        bar.add_task(title, total=None)
        yield


def _write_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - of a command


class _LastingConsole(Console):
    """Goes on when its output is closed: `adloom up | head` must not stop the product."""

    def on_broken_pipe(self) -> None:
        """Discard further output."""
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
