"""Shows what a command is doing: a bar or a spinner on a terminal, one line a second elsewhere."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from rich.progress import Progress

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
                else print_elapsed(lambda: title, self.print_line, every_seconds=self._line_seconds)
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


class WorkProgress:
    """How far long work is: what it does now, how much of that is done, and what else there is to say."""

    def __init__(self, title: str, total: float | None = None, *, unit: str = "") -> None:
        self._title, self._total, self._unit = title, total, unit
        self._on_begin: Callable[[str], object] | None = None
        self._done: float = 0
        self._note = ""
        self._bar: Progress | None = None

    def begin(self, title: str, total: float | None = None, *, unit: str = "") -> None:
        """Begin another part of the work, with its size if that is known."""
        self._title, self._total, self._unit = title, total, unit
        if self._on_begin is not None:
            self._on_begin(title)
        self.update(0)

    def advance(self, count: float = 1, *, note: str = "") -> None:
        """Add to what is done."""
        self.update(self._done + count, note=note)

    def say(self, note: str) -> None:
        """Show what is being done, where the share of the whole is not known."""
        self.update(self._done, note=note)

    def update(self, done: float, *, note: str = "") -> None:
        """Set what is done; a part of one is shown as a share."""
        self._done, self._note = done, note
        if self._bar is not None:
            self._draw(self._bar)

    def describe(self) -> str:
        """Describe the progress in one line."""
        parts = [self._title]
        if figure := self._describe_done():
            parts.append(figure)
        line = ": ".join(parts)
        return f"{line}, {self._note}" if self._note else line

    @contextlib.contextmanager
    def show(self, console: Console | None = None) -> Generator[None]:
        """Show a bar on a terminal while the work goes on, a line a second elsewhere, on the side of errors."""
        console = console or Console(stderr=True)
        if console.is_terminal:
            with self._show_bar(console):
                yield
            return
        self._on_begin = partial(console.print, highlight=False)
        with print_elapsed(self.describe, _write_error, every_seconds=LINE_SECONDS):
            yield

    @contextlib.contextmanager
    def _show_bar(self, console: Console) -> Generator[None]:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - 2 MB

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[figure]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        # Drawn rarely: what runs may be measured.
        with Progress(*columns, console=console, transient=True, refresh_per_second=2) as self._bar:
            self._bar.add_task(self._title, total=None, figure="", note="")
            self._draw(self._bar)
            yield
        self._bar = None

    def _draw(self, bar: "Progress") -> None:
        bar.update(
            bar.task_ids[0],
            description=self._title,
            total=self._total,
            completed=self._done,
            figure=self._describe_done(),
            note=self._note,
        )

    def _describe_done(self) -> str:
        if self._total is None:
            return f"{self._done:,}" if self._done else ""
        unit = self._unit.removesuffix("s") if self._total == 1 else self._unit
        of = f"of {self._total:,} {unit}".rstrip()
        return (
            f"{self._done:,} {of}" if isinstance(self._done, int) else f"{self._done / self._total:.0%} {of}"
        )


@contextlib.contextmanager
def show_progress(
    title: str, total: float | None = None, *, unit: str = "", console: Console | None = None
) -> Generator[WorkProgress]:
    """Show how far long work is."""
    work = WorkProgress(title, total, unit=unit)
    with work.show(console):
        yield work


@contextlib.contextmanager
def print_elapsed(
    describe: Callable[[], str], write: Callable[[str], object], *, every_seconds: float
) -> Generator[None]:
    """Print every second how far a block is, and how long it has been running. A thread does it, so the block need not."""
    is_over = threading.Event()

    def say() -> None:
        started_at = time.monotonic()
        while not is_over.wait(every_seconds):
            write(f"… {describe()}, {time.monotonic() - started_at:.0f} s")

    thread = threading.Thread(target=say, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _write_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - of a command


class _LastingConsole(Console):
    """Goes on when its output is closed: `adloom up | head` must not stop the product."""

    def on_broken_pipe(self) -> None:
        """Discard further output."""
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
