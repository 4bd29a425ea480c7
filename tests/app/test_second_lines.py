"""Long commands without a terminal say a line a second."""

import io
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from adloom.app import progress
from adloom.app.progress import StepProgress, WorkProgress, print_elapsed, show_progress


def test_work_says_what_is_done_of_how_much() -> None:
    work = WorkProgress("Replaying")

    said = [work.describe()]
    work.begin("Applying the ledger", 5_000)
    work.advance(2_000)
    said.append(work.describe())
    work.begin("Scanning the ledger")
    work.advance(7, note="the last part")
    said.append(work.describe())
    days = WorkProgress("Rolling up", 2, unit="days")
    days.update(0.5, note="2026-11-14")
    said.append(days.describe())
    bench = WorkProgress("adloom bench")
    bench.say("round 1 of 5: serve")
    said.append(bench.describe())

    assert said == [
        "Replaying",
        "Applying the ledger: 2,000 of 5,000",
        "Scanning the ledger: 7, the last part",
        "Rolling up: 25% of 2 days, 2026-11-14",
        "adloom bench, round 1 of 5: serve",
    ]


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_work_that_says_nothing_itself_is_said_to_run_until_it_ends() -> None:
    said: list[str] = []

    with print_elapsed(lambda: "Loading the sample", said.append, every_seconds=0.01):
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


def test_work_has_a_bar_on_a_terminal() -> None:
    output = io.StringIO()

    with show_progress("adloom bench", console=Console(file=output, force_terminal=True, width=100)) as work:
        work.begin("Simulating", 24)
        work.advance(12, note="noon")

    shown = output.getvalue()
    assert "adloom bench" in shown
    assert all(part in shown for part in ("Simulating", "12 of 24", "0:00:00", "noon"))


def test_work_elsewhere_has_a_line_a_second_among_the_errors(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)

    def read() -> str:
        said.append(capfd.readouterr().err)
        return "".join(said)

    with show_progress("Simulating", 24, unit="hours", console=Console(file=io.StringIO())) as work:
        work.advance(12)
        wait_for(lambda: "… Simulating: 12 of 24 hours, 0 s\n" in read())
