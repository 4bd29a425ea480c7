"""Children that have loaded their code wait at a gate until what they need is there."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from adloom.runtime.supervisor.start_gate import START_FD, StartGate, wait_for_start
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from tests.runtime.supervisor.programs import OBEDIENT, a_child, noted, pids

WAITS = f"import os, sys; open(sys.argv[1] + '.loaded', 'a'); os.read(int(os.environ['{START_FD}']), 1); "
POLL_SECONDS = 0.2


async def test_a_child_waits_until_the_gate_is_open_and_not_when_it_is_started_again(tmp_path: Path) -> None:
    notes, loaded = tmp_path / "notes", tmp_path / "notes.loaded"

    async def work(supervisor: Supervisor) -> None:
        stage = supervisor.launch(gate.hold([a_child(WAITS + OBEDIENT, notes)]))
        while not loaded.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        await asyncio.sleep(POLL_SECONDS)
        assert pids(notes) == []
        gate.open()
        await supervisor.wait_started(stage)
        os.kill(pids(notes)[-1], signal.SIGKILL)
        await noted(notes, starts=2)

    with contextlib.closing(StartGate()) as gate:
        await run_supervised(work)


async def test_our_processes_wait_at_a_gate_and_without_one_start_at_once() -> None:
    await wait_for_start({})
    with contextlib.closing(StartGate()) as gate:
        [held] = gate.hold([a_child("", Path("nowhere"))])
        inherited = os.dup(held.inherited_fds[-1])
        waiting = asyncio.ensure_future(wait_for_start({START_FD: str(inherited)}))
        await asyncio.sleep(POLL_SECONDS)
        assert not waiting.done()

        gate.open()

        await waiting
