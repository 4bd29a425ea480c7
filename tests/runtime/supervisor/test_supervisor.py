"""Children are kept alive, and stopped in order."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from adloom.runtime.installation import InstallationError
from adloom.runtime.supervisor import child
from adloom.runtime.supervisor.child import RENEWAL_CODE, ChildSpec, StartError, do_nothing
from adloom.runtime.supervisor.program import Program, ProgramFailedError, run
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from tests.runtime.supervisor.programs import (
    FAILING,
    LONGER_THAN_A_TEST,
    NOTES_ITS_START,
    OBEDIENT,
    STUBBORN,
    a_child,
    a_program,
    noted,
    pids,
)
from tests.support.eventually import eventually


async def test_a_child_runs_until_the_work_ends(tmp_path: Path) -> None:
    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([a_child(OBEDIENT, tmp_path / "notes")])
        assert is_alive(pids(tmp_path / "notes")[-1])

    await run_supervised(work)

    assert not is_alive(pids(tmp_path / "notes")[-1])


async def test_a_killed_child_is_restarted(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([a_child(OBEDIENT, notes)])
        os.kill(pids(notes)[-1], signal.SIGKILL)
        await noted(notes, starts=2)

    await run_supervised(work)

    assert len(pids(notes)) == 2
    assert not is_alive(pids(notes)[-1])


async def test_a_child_is_prepared_before_each_start(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    prepared: list[int] = []

    async def prepare() -> None:
        prepared.append(len(pids(notes)))

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([msgspec.structs.replace(a_child(OBEDIENT, notes), prepare=prepare)])
        os.kill(pids(notes)[-1], signal.SIGKILL)
        await noted(notes, starts=2)

    await run_supervised(work)

    assert prepared == [0, 1]


async def test_stages_stop_in_the_opposite_order_of_their_start(tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"

    def a_stage(name: str) -> ChildSpec:
        script = (
            "import os, signal, sys\n"
            f"def stop(*_): open({str(stopped)!r}, 'a').write({name + ' '!r}); sys.exit()\n"
            "signal.signal(signal.SIGTERM, stop)\n"
        )
        return a_child(script + OBEDIENT, tmp_path / name, name=name)

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([a_stage("first")])
        await supervisor.start([a_stage("second")])

    await run_supervised(work)

    assert stopped.read_text() == "second first "


async def test_a_child_that_ignores_the_stop_signal_is_killed_after_its_timeout(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([a_child(STUBBORN, notes, stop_seconds_max=0.2)])

    await run_supervised(work)

    assert not is_alive(pids(notes)[-1])


async def test_a_hurried_stop_does_not_wait(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([a_child(STUBBORN, notes, stop_seconds_max=LONGER_THAN_A_TEST)])
        supervisor.hurry()

    await run_supervised(work)

    assert not is_alive(pids(notes)[-1])


async def test_a_child_that_cannot_start_raises_for_the_caller(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    child = msgspec.structs.replace(a_child(FAILING, notes, name="worker"), wait_until_ready=never)

    with pytest.raises(StartError, match="worker ended with code 3"):
        await run_supervised(lambda supervisor: supervisor.start([child]))

    assert len(pids(notes)) == 3


async def test_a_child_that_cannot_be_prepared_says_why_and_leaves_the_others_alone(tmp_path: Path) -> None:
    async def prepare() -> None:
        raise InstallationError("Its files are of another version.")

    well = a_child(OBEDIENT, tmp_path / "well")
    ill = msgspec.structs.replace(a_child(OBEDIENT, tmp_path / "ill", name="ill"), prepare=prepare)

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([well])
        with pytest.raises(StartError, match="ill could not be started: Its files are of another version"):
            await supervisor.start([ill])
        assert is_alive(pids(tmp_path / "well")[-1])

    await run_supervised(work)


async def test_a_child_without_its_program_fails_the_start(tmp_path: Path) -> None:
    program = Program(name="ghost", arguments=(str(tmp_path / "ghost"),), environment={})
    child = ChildSpec(program=program, wait_until_ready=never, log_file=tmp_path / "logs" / "ghost.log")

    with pytest.raises(StartError, match=r"ghost ended with code 1.*No such file"):
        await run_supervised(lambda supervisor: supervisor.start([child]))


async def test_the_other_children_of_a_stage_stop_when_one_cannot_start(tmp_path: Path) -> None:
    well = a_child(OBEDIENT, tmp_path / "well")
    ill = msgspec.structs.replace(a_child(FAILING, tmp_path / "ill"), wait_until_ready=never)

    with pytest.raises(StartError):
        await run_supervised(lambda supervisor: supervisor.start([well, ill]))

    assert not is_alive(pids(tmp_path / "well")[-1])


async def test_a_signal_stops_the_work_and_the_children(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([a_child(OBEDIENT, notes)])
        os.kill(os.getpid(), signal.SIGTERM)
        await never()

    await run_supervised(work)

    assert not is_alive(pids(notes)[-1])


async def test_a_stop_while_a_child_is_prepared_does_not_wait_for_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    child = ChildSpec(
        program=a_program(OBEDIENT, tmp_path / "unreached"),
        # What `initdb` is to PostgreSQL.
        prepare=lambda: run(a_program(OBEDIENT, notes), seconds_max=60),
    )

    async def work(supervisor: Supervisor) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(supervisor.start([child]))
            await noted(notes, starts=1)
            os.kill(os.getpid(), signal.SIGINT)

    await run_supervised(work)

    assert not is_alive(pids(notes)[-1])
    assert pids(tmp_path / "unreached") == []


async def test_a_child_has_its_own_session(tmp_path: Path) -> None:
    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([a_child(OBEDIENT, tmp_path / "notes")])
        pid = pids(tmp_path / "notes")[-1]
        assert os.getsid(pid) == pid

    await run_supervised(work)


async def test_the_error_of_a_failing_program_has_its_output(tmp_path: Path) -> None:
    program = a_program("import sys; sys.exit('no room')", tmp_path / "notes", name="initdb")

    with pytest.raises(ProgramFailedError, match="initdb ended with 1: no room"):
        await run(program, seconds_max=5)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ties a child to its parent")
@pytest.mark.parametrize(
    "user", [None, pytest.param("nobody", marks=pytest.mark.skipif("os.geteuid() != 0"))]
)
async def test_no_child_survives_the_sudden_death_of_the_supervisor(tmp_path: Path, user: str | None) -> None:
    notes = tmp_path / "notes"
    script = (
        "import asyncio, os, signal, sys\n"
        "from pathlib import Path\n"
        "from adloom.runtime.supervisor.program import Program, start\n"
        "async def main():\n"
        f"    program = Program(name='sleep', arguments=('/bin/sleep', '60'), environment={{}}, user={user!r})\n"
        "    process = await start(program)\n"
        # Until the program is there the script that ties it may not have come so far.
        "    while b'60' not in Path(f'/proc/{process.pid}/cmdline').read_bytes() or \\\n"
        "          b'exec_child' in Path(f'/proc/{process.pid}/cmdline').read_bytes():\n"
        "        await asyncio.sleep(0.01)\n"
        f"    Path({str(notes)!r}).write_text(f'{{process.pid}}\\n')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", script)

    assert await parent.wait() == -signal.SIGKILL

    pid = await noted(notes, starts=1)
    await eventually(lambda: not is_alive(pid), seconds=30)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def never() -> None:
    await asyncio.Event().wait()


async def test_a_child_that_may_finish_is_not_restarted_when_it_finishes(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def work(supervisor: Supervisor) -> None:
        finishing = msgspec.structs.replace(a_child(NOTES_ITS_START, notes), may_finish=True)
        await supervisor.start([finishing])
        await supervisor.wait_finished(finishing.program.name)
        await supervisor.start([finishing])
        await supervisor.wait_finished(finishing.program.name)

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # As some who start us have it.
    try:
        await run_supervised(work)
    finally:
        signal.signal(signal.SIGCHLD, before)

    assert len(pids(notes)) == 2


async def test_a_child_that_may_finish_is_restarted_when_it_dies(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([msgspec.structs.replace(a_child(OBEDIENT, notes), may_finish=True)])
        os.kill(pids(notes)[-1], signal.SIGKILL)
        await noted(notes, starts=2)

    await run_supervised(work)

    assert len(pids(notes)) == 2


async def test_a_child_that_asks_to_be_renewed_is_started_again_and_has_not_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = f"{NOTES_ITS_START} sys.exit({RENEWAL_CODE})"

    async def count_deaths(name: str) -> int:
        deaths = 0

        async def work(supervisor: Supervisor) -> None:
            nonlocal deaths
            notes = tmp_path / name
            await supervisor.start(
                [msgspec.structs.replace(a_child(asking, notes), wait_until_ready=do_nothing)]
            )
            await noted(notes, starts=3)
            deaths = supervisor.died["child"]

        await run_supervised(work)
        return deaths

    assert await count_deaths("at-once") >= 2, "it would be started for ever"
    monkeypatch.setattr(child, "LIVED_LONG_SECONDS", 0.0)
    assert await count_deaths("later") == 0
