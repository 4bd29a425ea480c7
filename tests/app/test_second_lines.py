"""Long commands without a terminal say a line a second."""

import io

from rich.console import Console
from rich.progress import Progress

from adloom.app.progress import SecondLines
from adloom.cli.replay import ReplayProgress


def test_a_line_is_said_once_a_second() -> None:
    second, said = [0.0], list[str]()
    lines = SecondLines(said.append, now=lambda: second[0])

    for tenth in range(35):
        second[0] = tenth / 10
        lines.say(f"{tenth} of 35")

    assert said == ["10 of 35", "20 of 35", "30 of 35"]


def test_a_replay_without_a_terminal_says_how_far_it_is() -> None:
    second, said = [0.0], list[str]()
    console = Console(file=io.StringIO())
    lines = SecondLines(said.append, now=lambda: second[0])
    progress = ReplayProgress(console, Progress(console=console, disable=True), lines)

    progress.begin("Applying the ledger", 5_000)
    for _ in range(4):
        second[0] += 0.6
        progress.advance(1_000)
    progress.begin("Scanning the ledger")
    second[0] += 1
    progress.advance(7)

    assert said == [
        "Applying the ledger: 2,000 of 5,000",
        "Applying the ledger: 4,000 of 5,000",
        "Scanning the ledger: 7",
    ]
