"""A program as a value: what to run, as which user, and how to stop it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

import msgspec

from adloom.core.errors import CommandError
from adloom.runtime.supervisor import exec_child

STDERR_FD = 2


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor, or a test, needs to know to run a program."""

    name: str
    arguments: tuple[str, ...]
    # Ours, whose `main` the arguments run: it can be forked from a process that has loaded it.
    module: str | None = None
    own_arguments: tuple[str, ...] = ()
    environment: Mapping[str, str]
    # None is the user that we are.
    user: str | None = None
    # A folder that is opened for the user, which cannot reach it by its path.
    opened_folder: Path | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    # What ends it at once: sent by the kernel when we die, and by us when it does not stop in time.
    death_signal: signal.Signals = signal.SIGKILL


def make_our_program(
    name: str, module: str, *own_arguments: str, environment: Mapping[str, str], user: str | None = None
) -> Program:
    """Describe a program of ours by its module."""
    return Program(
        name=name,
        # -P: a module of the working directory must not take the place of one of ours.
        arguments=(sys.executable, "-P", "-m", module, *own_arguments),
        module=module,
        own_arguments=own_arguments,
        environment=environment,
        user=user,
    )


class RunningProgram(Protocol):
    """A process of a program, however it was started."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None:
        """How it ended: a negative number is a signal's."""
        ...

    async def wait(self) -> int: ...
    def send_signal(self, signal: int, /) -> None: ...


class Start(Protocol):
    """Starts a program that dies with us, in its own session: a terminal's Ctrl-C reaches only us."""

    async def __call__(
        self, program: Program, *, inherited_fds: Sequence[int] = (), output: IO[bytes] | int = STDERR_FD
    ) -> RunningProgram: ...


class ProgramFailedError(CommandError):
    """A program that had to end well did not; the message has the end of what it said."""


async def start(
    program: Program, *, inherited_fds: Sequence[int] = (), output: IO[bytes] | int = STDERR_FD
) -> Process:
    """Start a program in an interpreter of its own, which becomes it."""
    return await asyncio.create_subprocess_exec(
        *build_command(program),
        env=program.environment,
        cwd="/",
        stdin=subprocess.DEVNULL,
        # Standard output is ours: what a child prints is a log.
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=inherited_fds,
        start_new_session=True,
    )


async def run(
    program: Program,
    *,
    seconds_max: float | None,
    inherited_fds: Sequence[int] = (),
    start: Start = start,
) -> None:
    """Run a program to its end; it is killed if we are cancelled."""
    with tempfile.TemporaryFile() as said:
        process = await start(program, inherited_fds=inherited_fds, output=said)
        try:
            async with asyncio.timeout(seconds_max):
                await process.wait()
        except TimeoutError as error:
            raise ProgramFailedError(f"{program.name} did not end within {seconds_max:.0f} s.") from error
        finally:
            if process.returncode is None:
                send(process, program.death_signal)
                await process.wait()
        if process.returncode != 0:
            said.seek(0)
            end = said.read().decode(errors="replace").strip()[-1000:]
            raise ProgramFailedError(f"{program.name} ended with {process.returncode}: {end}")


def send(process: RunningProgram, number: signal.Signals) -> None:
    """Send a signal; the process may have just ended."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def build_command(program: Program) -> tuple[str, ...]:
    """Return the command that becomes the program, as its user, and ends with us."""
    interpreter = (sys.executable, "-I", "-S", str(Path(exec_child.__file__)))
    return (
        *interpreter,
        str(program.death_signal.value),
        str(os.getpid()),
        program.user or "",
        str(program.opened_folder or ""),
        *program.arguments,
    )
