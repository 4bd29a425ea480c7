"""A child that others of its stage report to runs until they have ended, up to a limit."""

from pathlib import Path

import msgspec

from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from tests.runtime.supervisor.programs import LONGER_THAN_A_TEST, OBEDIENT, a_child

# Records its stop signal, and ends after a while.
SLOW = (
    "import os, signal, sys, time\n"
    "def stop(*_):\n"
    "    open({stopped!r}, 'a').write({name!r} + ' ')\n"
    "    time.sleep({seconds})\n"
    "    open({stopped!r}, 'a').write('-' + {name!r} + ' ')\n"
    "    sys.exit()\n"
    "signal.signal(signal.SIGTERM, stop)\n"
)


def a_stage(folder: Path, *, seconds: float, outlives_seconds_max: float) -> list[ChildSpec]:
    """Make a child that ends immediately, and a slow one that reports to it."""
    return [
        msgspec.structs.replace(
            a_child_that_takes(0.0, "last", folder), outlives_seconds_max=outlives_seconds_max
        ),
        msgspec.structs.replace(a_child_that_takes(seconds, "first", folder), reports_to="last"),
    ]


def a_child_that_takes(seconds: float, name: str, folder: Path) -> ChildSpec:
    script = SLOW.format(stopped=str(folder / "stopped"), name=name, seconds=seconds) + OBEDIENT
    return a_child(script, folder / name, name=name, stop_seconds_max=LONGER_THAN_A_TEST)


async def test_a_child_stops_after_the_children_that_report_to_it(tmp_path: Path) -> None:
    children = a_stage(tmp_path, seconds=0.3, outlives_seconds_max=LONGER_THAN_A_TEST)

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start(children)

    await run_supervised(work)

    assert (tmp_path / "stopped").read_text() == "first -first last -last "


async def test_a_child_waits_no_longer_than_its_limit_for_its_reporters(tmp_path: Path) -> None:
    children = a_stage(tmp_path, seconds=3.0, outlives_seconds_max=0.1)

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start(children)

    await run_supervised(work)

    assert (tmp_path / "stopped").read_text() == "first last -last -first "


async def test_a_hurried_child_does_not_wait_for_its_reporters(tmp_path: Path) -> None:
    (tmp_path / "stopped").touch()
    children = a_stage(tmp_path, seconds=LONGER_THAN_A_TEST, outlives_seconds_max=LONGER_THAN_A_TEST)

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start(children)
        supervisor.hurry()

    await run_supervised(work)

    assert "-first" not in (tmp_path / "stopped").read_text()


async def test_a_child_does_not_wait_for_children_that_do_not_report_to_it(tmp_path: Path) -> None:
    children = a_stage(tmp_path, seconds=0.0, outlives_seconds_max=10.0)
    children.append(a_child_that_takes(3.0, "other", tmp_path))

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start(children)

    await run_supervised(work)

    stopped = (tmp_path / "stopped").read_text().split()
    assert stopped.index("-last") < stopped.index("-other"), "a busy machine may tell the other one late"
