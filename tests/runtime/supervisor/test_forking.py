"""Programs that are forked from a process with our code are like programs that were started."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from adloom.runtime.supervisor import fork_server, forking
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.forking import ForkServer
from adloom.runtime.supervisor.program import Program, ProgramFailedError, make_our_program, run
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from tests.runtime.supervisor import forked_program
from tests.support.eventually import eventually
from tests.support.product import an_open_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has what a fork server needs")

CHECKOUT = Path(__file__).parents[3]
MODULE = forked_program.__name__
NOBODY = 65534
NO_SUCH_OPTION = 9_999
PR_SET_KEEPCAPS = 8


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("A_SECRET", "of the supervisor")
    monkeypatch.setenv("OPENSSL_CONF", "/dev/null")
    with ForkServer([MODULE]) as server:
        yield server


def a_forked(end: str, notes: Path, *fds: int, user: str | None = None) -> Program:
    words = (end, str(notes), *map(str, fds))
    return make_our_program("forked", MODULE, *words, environment={"A_NAME": "wert"}, user=user)


def found(notes: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


async def noted(notes: Path, *, starts: int) -> Sequence[dict[str, Any]]:
    await eventually(lambda: len(found(notes)) >= starts, seconds=60)
    return found(notes)


def fork_servers() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if fork_server.__name__ in one.cmdline()]


async def test_a_forked_program_is_a_child_with_its_own_session_environment_and_descriptors(
    server: ForkServer, tmp_path: Path
) -> None:
    notes, reading, writing = tmp_path / "notes", *os.pipe()
    os.write(writing, b"inherited")
    program = a_forked("wait", notes, reading)
    with (tmp_path / "output").open("wb") as output:
        process = await server.start(program, inherited_fds=[reading], output=output)
    [it] = await noted(notes, starts=1)

    assert it["pid"] == process.pid
    assert it["arguments"] == ["wait", str(notes), str(reading)]
    assert it["environment"] == {"A_NAME": "wert"}
    assert it["folder"] == "/"
    assert it["inherited"] == ["inherited"]
    assert (
        it["descriptors"] == 5
    )  # The three of every program, the one that it inherits, and the folder itself.
    assert it["is_collected"]
    assert it["threads"] == 1
    assert psutil.Process(process.pid).ppid() == os.getpid()
    # As `ps` shows it.
    assert psutil.Process(process.pid).name() == "forked"
    assert psutil.Process(process.pid).cmdline()[:4] == list(program.arguments[:4])
    assert os.getsid(process.pid) == process.pid
    # What libraries read only when they are loaded.
    assert psutil.Process(process.pid).environ().keys() & {"A_SECRET", "OPENSSL_CONF"} == {"OPENSSL_CONF"}
    assert process.returncode is None

    process.send_signal(signal.SIGTERM)

    assert await process.wait() == -signal.SIGTERM == process.returncode
    os.close(reading)
    os.close(writing)


async def test_a_forked_program_ends_with_its_code_and_its_last_words(
    server: ForkServer, tmp_path: Path
) -> None:
    with (tmp_path / "output").open("wb") as output:
        process = await server.start(a_forked("end", tmp_path / "notes"), output=output)

    assert await process.wait() == 0
    assert (tmp_path / "output").read_text() == "output\nthe end\n"
    with pytest.raises(ProgramFailedError, match=r"forked ended with 1: output\s+no room"):
        await run(a_forked("fail", tmp_path / "notes"), seconds_max=60, start=server.start)
    first, second = found(tmp_path / "notes")
    assert first["id"][-16:] != second["id"][-16:]
    assert first["chance"] != second["chance"]


@pytest.mark.skipif("os.geteuid() != 0", reason="only root can become another user")
async def test_a_forked_program_runs_as_its_user_and_one_of_an_unknown_user_is_not_started(
    server: ForkServer,
) -> None:
    with an_open_folder() as folder:
        folder.chmod(0o777)
        notes = folder / "notes"
        with pytest.raises(ProgramFailedError, match="name not found: 'no-such-user'"):
            await run(a_forked("end", notes, user="no-such-user"), seconds_max=60, start=server.start)
        await run(a_forked("end", notes, user="nobody"), seconds_max=60, start=server.start)

        [it] = found(notes)
        assert it["user"] == NOBODY


async def test_forked_children_outlive_the_fork_server_and_are_forked_from_the_next(
    server: ForkServer, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"

    async def work(supervisor: Supervisor) -> None:
        await supervisor.start([ChildSpec(program=a_forked("wait", notes))])
        [first] = await noted(notes, starts=1)
        [one] = fork_servers()
        one.kill()
        one.wait(60)
        assert psutil.pid_exists(first["pid"])
        os.kill(first["pid"], signal.SIGKILL)
        _, second = await noted(notes, starts=2)
        [another] = fork_servers()
        assert another.pid != one.pid
        assert psutil.Process(second["pid"]).ppid() == os.getpid()

    await run_supervised(work, server.start)

    assert not any(psutil.pid_exists(one["pid"]) for one in found(notes))


async def test_programs_that_are_forked_together_have_nothing_of_each_other(
    server: ForkServer, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"

    await asyncio.gather(*(run(a_forked("end", notes), seconds_max=60, start=server.start) for _ in range(3)))

    # The three of every program, and the folder itself.
    assert [it["descriptors"] for it in found(notes)] == [4, 4, 4]


async def test_a_program_that_cannot_be_forked_is_started(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    with ForkServer(["no_such_module", MODULE]) as failing:
        program = msgspec.structs.replace(a_forked("end", notes), environment={"PYTHONPATH": str(CHECKOUT)})
        await run(program, seconds_max=60, start=failing.start)
    # As where nobody can adopt orphans, and where the system only says that one can.
    for option in (NO_SUCH_OPTION, PR_SET_KEEPCAPS):
        monkeypatch.setattr(forking, "PR_SET_CHILD_SUBREAPER", option)
        await run(program, seconds_max=60, start=server.start)

    assert len(found(notes)) == 3


async def test_neither_server_nor_forked_program_survives_the_sudden_death_of_the_supervisor(
    tmp_path: Path,
) -> None:
    notes = tmp_path / "notes"
    script = (
        "import asyncio, os, signal\n"
        "from pathlib import Path\n"
        "from adloom.runtime.supervisor.forking import UNKNOWN_CODE, ForkServer\n"
        "from tests.runtime.supervisor.test_forking import MODULE, a_forked, fork_servers, noted\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"  # As some who start us do.
        "async def main():\n"
        "    server = ForkServer([MODULE])\n"
        "    servers = fork_servers()\n"
        f"    ended = await server.start(a_forked('end', Path({str(notes)!r})))\n"
        "    assert await ended.wait() == UNKNOWN_CODE\n"
        f"    await server.start(a_forked('wait', Path({str(notes)!r})))\n"
        f"    await noted(Path({str(notes)!r}), starts=2)\n"
        "    assert fork_servers() == servers\n"
        "    print(fork_servers()[0].pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    said, _ = await parent.communicate()

    assert parent.returncode == -signal.SIGKILL
    _, forked = found(notes)
    await eventually(lambda: not any(map(is_alive, (int(said), forked["pid"]))), seconds=60)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
