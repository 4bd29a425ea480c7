"""One supervised child process: started, logged, and restarted when it dies."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO

import msgspec
import structlog

from adloom.core.errors import CommandError, describe_error
from adloom.runtime.supervisor import program as programs
from adloom.runtime.supervisor.liveness_pipe import SIGN_FD, LivenessPipe
from adloom.runtime.supervisor.program import Program, ProgramFailedError, RunningProgram, Start
from adloom.runtime.supervisor.watch import Watched, wait_until_frozen

# A child that never became ready and has died so often will not recover by itself.
START_DEATHS_MAX = 3
LOG_BYTES_MAX = 10_000_000
FINISHED = "ended with code 0"
NOT_STARTED = "could not be started"
# By which a child asks to be started again: a new process is smaller than one that has done much.
RENEWAL_CODE = os.EX_TEMPFAIL
RENEWED = f"ended with code {RENEWAL_CODE}"

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class StartError(CommandError):
    """A child did not start; the message says which, and how it ended."""


async def do_nothing() -> None: ...


class ChildSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A program to keep alive."""

    program: Program
    # Before each start, the first or not.
    prepare: Callable[[], Awaitable[None]] = do_nothing
    # Returns when the child answers.
    wait_until_ready: Callable[[], Awaitable[None]] = do_nothing
    inherited_fds: tuple[int, ...] = ()
    # None is our own standard error.
    log_file: Path | None = None
    stop_seconds_max: float = 5.0
    # The child of its stage that needs its last messages, and so stops after it,
    reports_to: str | None = None
    # and how long that child waits for it.
    outlives_seconds_max: float = 0.0
    # Its work may be done before we stop: then it ends with 0, and is not started again.
    may_finish: bool = False
    # Whether and how it is watched for signs of life.
    watched: Watched | None = None


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """A child that was frozen and had to be replaced."""

    child: str
    silent_seconds: float


class SupervisedChild:
    """A child that is kept alive, and its current state."""

    def __init__(
        self,
        child: ChildSpec,
        on_frozen: Callable[[Replacement], None] = lambda _: None,
        start: Start = programs.start,
    ) -> None:
        self.child = child
        self._start_program = start
        self.deaths = 0  # Those that we did not ask for, frozen ones included.
        self._on_frozen = on_frozen
        # Done when the child is ready for the first time, with the reason when that will never be.
        self.first_start: asyncio.Future[StartError | None] = asyncio.get_running_loop().create_future()
        self._is_wanted = True
        self._process: RunningProgram | None = None

    @property
    def name(self) -> str:
        return self.child.program.name

    @property
    def is_running(self) -> bool:
        """Whether there is a process now; there is none while it is prepared or its restart is delayed."""
        return self._process is not None and self._process.returncode is None

    def give_up(self) -> None:
        """Do not restart the child after its next death."""
        self._is_wanted = False

    def send(self, number: signal.Signals) -> None:
        if self._process is not None and self.is_running:
            programs.send(self._process, number)

    async def keep_alive(self) -> None:
        """Run the child again and again; failures are logged or set as `first_start`, never raised."""
        loop = asyncio.get_running_loop()
        deaths = 0
        while True:
            started_at = loop.time()
            end = await self._run_once()
            lived_seconds = round(loop.time() - started_at, 3)
            if self.child.may_finish and end == FINISHED:
                self._set_started(None)
                self._is_wanted = False
            if not self._is_wanted:
                log.info("child_stopped", child=self.name, end=end)
                return
            # One that does so at once would do so for ever.
            if end == RENEWED and lived_seconds >= LIVED_LONG_SECONDS:
                log.info("child_renewed", child=self.name, lived_seconds=lived_seconds)
                continue
            self.deaths += 1
            deaths = count_deaths_in_a_row(deaths, lived_seconds=lived_seconds)
            if deaths >= START_DEATHS_MAX and not self.first_start.done():
                said = "" if end.startswith(NOT_STARTED) else f".{_quote_log(self.child)}"
                self.first_start.set_result(StartError(f"{self.name} {end}{said}"))
                return
            delay_seconds = restart_delay_seconds(deaths)
            log.warning(
                "child_died", child=self.name, end=end, lived_seconds=lived_seconds, restart_in=delay_seconds
            )
            await asyncio.sleep(delay_seconds)

    async def _run_once(self) -> str:
        with contextlib.closing(LivenessPipe()) as pipe:
            try:
                await self.child.prepare()
                self._process = process = await self._start(pipe)
            except (OSError, ProgramFailedError, CommandError) as error:
                return f"{NOT_STARTED}: {error}"
            log.info("child_started", child=self.name, pid=process.pid)
            try:
                async with asyncio.TaskGroup() as group:
                    beside = [
                        group.create_task(self._announce()),
                        group.create_task(self._watch(process, pipe)),
                    ]
                    code = await process.wait()
                    for task in beside:
                        task.cancel()
            finally:
                # Only when we are cancelled from outside: nothing else would end it then.
                self.send(self.child.program.death_signal)
                if self.child.watched is not None:
                    self.child.watched.on_change(False)  # noqa: FBT003 - its only argument
        return f"ended with {_name_code(code)}"

    async def _watch(self, process: RunningProgram, pipe: LivenessPipe) -> None:
        watched = self.child.watched
        if watched is not None and watched.frozen_seconds:
            seconds = await wait_until_frozen(process.pid, self.name, watched, pipe)
            self._on_frozen(Replacement(child=self.name, silent_seconds=seconds))

    async def _start(self, pipe: LivenessPipe) -> RunningProgram:
        path = self.child.log_file
        program, fds = self.child.program, self.child.inherited_fds
        if self.child.watched is not None and self.child.watched.is_answering is None:
            program = msgspec.structs.replace(
                program, environment={**program.environment, SIGN_FD: str(pipe.writing)}
            )
            fds = (*fds, pipe.writing)
        with contextlib.ExitStack() as closing:
            process = await self._start_program(
                program,
                inherited_fds=fds,
                output=programs.STDERR_FD if path is None else closing.enter_context(_open_log(path)),
            )
        pipe.hand_over()
        return process

    async def _announce(self) -> None:
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        outcome = None
        try:
            await self.child.wait_until_ready()
        except Exception as error:  # noqa: BLE001 - the outermost of its task: a child may answer anything
            outcome = StartError(f"{self.name} did not become ready: {describe_error(error)}.")
            log.warning("child_not_ready", child=self.name, error=repr(error))
        else:
            # At the first start the caller waits for it, and needs no log line.
            write = log.info if self.first_start.done() else log.debug
            write("child_ready", child=self.name, seconds=round(loop.time() - started_at, 3))
        self._set_started(outcome)

    def _set_started(self, outcome: StartError | None) -> None:
        if not self.first_start.done():
            self.first_start.set_result(outcome)


def _open_log(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.rename(path.with_suffix(".old.log"))
    return path.open("ab")


def _quote_log(child: ChildSpec) -> str:
    if child.log_file is None or not child.log_file.exists():
        return " Its log above says why."
    lines = child.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    return f" Its log {child.log_file} ends: {lines[-1]}" if lines else ""


def _name_code(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"code {code}"


FIRST_SECONDS = 0.2
SECONDS_MAX = 10.0
# One that lived this long had no trouble starting: its next death counts as the first.
LIVED_LONG_SECONDS = 10.0


def count_deaths_in_a_row(before: int, *, lived_seconds: float) -> int:
    """Count a death; a long life resets the count."""
    return 1 if lived_seconds >= LIVED_LONG_SECONDS else before + 1


def restart_delay_seconds(deaths: int) -> float:
    """Return the delay after so many deaths in a row: none after the first, then doubling."""
    assert deaths >= 1
    if deaths == 1:
        return 0.0
    # The exponent is bounded too: a process may die for weeks.
    return min(SECONDS_MAX, FIRST_SECONDS * 2 ** min(deaths - 2, 16))
