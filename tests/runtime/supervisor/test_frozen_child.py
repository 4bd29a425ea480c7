"""Children that are stopped (SIGSTOP) are noticed and replaced."""

import asyncio
import os
import signal
import time
from pathlib import Path

import msgspec
import pytest

from adloom.runtime.supervisor import watch
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from adloom.runtime.supervisor.watch import (
    Activity,
    Watched,
    is_busy,
    list_under,
    measure_wait,
    read_activity,
)
from tests.runtime.supervisor.programs import NOTES_ITS_START, OBEDIENT, a_child, noted, pids
from tests.support.eventually import eventually

# Like `write_signs`, without an interpreter that knows it.
GIVES_SIGNS = (
    NOTES_ITS_START + "import time\n"
    "fd = int(os.environ['ADLOOM_SIGN_FD'])\n"
    "while True:\n"
    "    os.write(fd, b'.')\n"
    "    time.sleep(0.1)\n"
)
WORKS = NOTES_ITS_START + "import time\nwhile True:\n    time.sleep(0.01)\n"
FROZEN_SECONDS = 1.0


def a_watched(script: str, notes: Path, watched: Watched, *, name: str = "child") -> ChildSpec:
    return msgspec.structs.replace(a_child(script, notes, name=name), watched=watched)


async def test_a_frozen_child_is_replaced_and_counted_and_others_are_left_alone(tmp_path: Path) -> None:
    frozen, well, heard = tmp_path / "frozen", tmp_path / "well", list[bool]()
    watched = Watched(frozen_seconds=FROZEN_SECONDS, on_change=heard.append)

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start(
            [
                a_watched(GIVES_SIGNS, frozen, watched, name="frozen"),
                a_watched(GIVES_SIGNS, well, Watched(frozen_seconds=FROZEN_SECONDS), name="well"),
            ]
        )
        await eventually(lambda: True in heard, seconds=30)
        os.kill(pids(frozen)[-1], signal.SIGSTOP)
        await noted(frozen, starts=2)
        replaced = await supervisor.replaced.get()
        await eventually(lambda: heard[-1], seconds=30)

        assert replaced.child == "frozen"
        assert replaced.silent_seconds >= FROZEN_SECONDS
        assert supervisor.frozen == {"frozen": 1, "well": 0}
        assert supervisor.died == {"frozen": 1, "well": 0}

    await run_supervised(work)

    assert len(pids(well)) == 1
    # Heard, silent or gone, and heard again.
    assert [heard[0], False in heard] == [True, True]


async def test_nobody_is_replaced_while_the_supervisor_itself_sleeps(tmp_path: Path) -> None:
    notes, heard = tmp_path / "notes", list[bool]()
    watched = Watched(frozen_seconds=2.0, on_change=heard.append)

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([a_watched(GIVES_SIGNS, notes, watched)])
        await eventually(lambda: True in heard, seconds=30)
        os.kill(pids(notes)[-1], signal.SIGSTOP)
        # As if the whole machine was suspended: nothing runs, and then all at once.
        time.sleep(3.0)  # noqa: ASYNC251 - the loop itself must sleep
        os.kill(pids(notes)[-1], signal.SIGCONT)
        await asyncio.sleep(0.7)

    await run_supervised(work)

    assert len(pids(notes)) == 1


async def test_a_stopped_server_gets_a_sigcont(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def is_answering() -> bool:
        started = pids(notes)  # On a busy machine it is asked before it has noted its start.
        activity = read_activity(started[-1]) if started else None
        return activity is not None and activity.state != "T"

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start(
            [a_watched(OBEDIENT, notes, Watched(frozen_seconds=60.0, is_answering=is_answering))]
        )
        os.kill(pids(notes)[-1], signal.SIGSTOP)
        await eventually(lambda: _state(pids(notes)[-1]) == "T", seconds=30)
        await eventually(lambda: _state(pids(notes)[-1]) != "T", seconds=30)

    await run_supervised(work)

    assert len(pids(notes)) == 1


async def test_a_server_that_works_is_asked_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "QUESTION_TICK_SECONDS", 0.1)
    asked: list[str] = []

    def ask(name: str) -> Watched:
        async def is_answering() -> bool:
            asked.append(name)
            return True

        return Watched(frozen_seconds=60.0, is_answering=is_answering)

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start(
            [
                a_watched(WORKS, tmp_path / "works", ask("works"), name="works"),
                a_watched(OBEDIENT, tmp_path / "rests", ask("rests"), name="rests"),
            ]
        )
        await eventually(lambda: asked.count("rests") > 3 and "works" in asked, seconds=30)

    await run_supervised(work)

    assert asked.count("works") == 1


async def test_a_server_at_rest_is_asked_at_every_second_look_and_a_stopped_one_at_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "QUESTION_TICK_SECONDS", 0.1)
    notes, asked, looks = tmp_path / "notes", list[float](), list[float]()

    def look(pid: int) -> Activity | None:
        looks.append(time.monotonic())
        activity = read_activity(pid)
        # The test is of one that rests: whatever it did since its start is left out.
        return activity and Activity(activity.state if activity.state == "T" else "S", 0)

    monkeypatch.setattr(watch, "read_activity", look)

    async def is_answering() -> bool:
        asked.append(time.monotonic())
        return True

    async def work(supervisor: Supervisor) -> None:
        watched = Watched(frozen_seconds=60.0, is_answering=is_answering)
        await supervisor.start([a_watched(OBEDIENT, notes, watched)])
        await eventually(lambda: len(asked) >= 8, seconds=30)
        # Every question is followed by a look of its own.
        assert len(looks) - len(asked) >= 2 * (len(asked) - 2)

        os.kill(pids(notes)[-1], signal.SIGSTOP)
        await eventually(lambda: _state(pids(notes)[-1]) == "T", seconds=30)
        looked, questions = len(looks), len(asked)
        await eventually(lambda: len(asked) >= questions + 6, seconds=30)
        assert len(looks) - looked <= 2 * (len(asked) - questions) + 3

        os.kill(pids(notes)[-1], signal.SIGCONT)

    await run_supervised(work)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (Activity("S", 5), Activity("S", 5), False),
        (Activity("S", 5), Activity("S", 6), True),
        (Activity("S", 5), Activity("D", 5), True),
        (Activity("S", 5), Activity("R", 5), True),
        (Activity("S", 5), Activity("T", 6), False),
        (None, Activity("S", 5), True),
        (Activity("S", 5), None, True),
    ],
    ids=["idle", "ran", "waits for a disk", "runs", "stopped", "first look", "unknown"],
)
def test_a_process_is_busy_if_it_runs_or_waits_for_a_disk(
    before: Activity | None, now: Activity | None, *, expected: bool
) -> None:
    assert is_busy(before, now) is expected


def test_time_without_a_processor_is_no_silence() -> None:
    before, now = Activity("R", 5, 1_000_000_000), Activity("R", 5, 3_500_000_000)

    assert measure_wait(before, now) == 2.5
    assert measure_wait(None, now) == measure_wait(before, None) == 0.0


async def test_the_processes_under_one_are_found(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([a_child(OBEDIENT, notes)])
        assert pids(notes)[-1] in list_under(os.getpid())

    await run_supervised(work)


def _state(pid: int) -> str | None:
    activity = read_activity(pid)
    return None if activity is None else activity.state
