"""Small programs for a supervisor to run."""

import os
import sys
from pathlib import Path

from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.program import Program
from tests.support.eventually import eventually

# Writes its pid, a line a start, and then waits.
NOTES_ITS_START = "import os, signal, sys; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); "
OBEDIENT = NOTES_ITS_START + "signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + OBEDIENT
FAILING = NOTES_ITS_START + "sys.exit(3)"
# A test that waited so long would be ended by pytest.
LONGER_THAN_A_TEST = 600.0


def a_program(script: str, notes: Path, *, name: str = "child", user: str | None = None) -> Program:
    return Program(
        name=name,
        arguments=(sys.executable, "-I", "-S", "-c", script, str(notes)),
        environment={"PATH": os.environ["PATH"]},
        user=user,
    )


def a_child(script: str, notes: Path, *, name: str = "child", stop_seconds_max: float = 5.0) -> ChildSpec:
    async def wait_until_ready() -> None:
        await noted(notes, starts=len(pids(notes)) or 1)

    return ChildSpec(
        program=a_program(script, notes, name=name),
        wait_until_ready=wait_until_ready,
        stop_seconds_max=stop_seconds_max,
    )


def pids(notes: Path) -> list[int]:
    return [int(line) for line in notes.read_text().splitlines()] if notes.exists() else []


async def noted(notes: Path, *, starts: int) -> int:
    """Wait until a program has started this often, and return the last pid."""
    await eventually(lambda: len(pids(notes)) >= starts, seconds=30)
    return pids(notes)[-1]
