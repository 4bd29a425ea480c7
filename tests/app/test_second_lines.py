"""Long commands without a terminal say a line a second."""

import io
import time
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.progress import Progress

from adloom.app.progress import SecondLines, StepProgress, print_elapsed, show_elapsed
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


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_work_that_says_nothing_itself_is_said_to_run_until_it_ends() -> None:
    said: list[str] = []

    with print_elapsed("Loading the sample", said.append, every_seconds=0.01):
        wait_for(lambda: len(said) > 1)
    ended_at = len(said)
    time.sleep(0.05)

    assert said[0] == "… Loading the sample, 0 s"
    assert len(said) == ended_at


def test_a_step_of_a_start_without_a_terminal_has_lines_while_it_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said: list[str] = []

    def read() -> str:
        said.append(capsys.readouterr().out)
        return "".join(said)

    with StepProgress(line_seconds=0.01).step("Sample data"):
        wait_for(lambda: "… Sample data, 0 s\n" in read())

    assert read().splitlines()[-1].startswith("✓ Sample data")


def test_work_of_unknown_length_has_a_moving_bar_on_a_terminal() -> None:
    output = io.StringIO()

    with show_elapsed("adloom bench", Console(file=output, force_terminal=True, width=100)):
        pass

    assert "adloom bench" in output.getvalue()
    assert "0:00:00" in output.getvalue()
