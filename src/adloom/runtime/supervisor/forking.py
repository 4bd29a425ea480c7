"""The supervisor's side of the fork server: starts it, and asks it for processes."""

import asyncio
import contextlib
import ctypes
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from typing import IO, Final, Self

import msgspec
import structlog

from adloom.runtime.supervisor import program as programs
from adloom.runtime.supervisor.fork_server import SIZE_BYTES, ForkOrder
from adloom.runtime.supervisor.program import STDERR_FD, Program, RunningProgram

PR_SET_CHILD_SUBREAPER: Final = 36
PID_BYTES_MAX: Final = 32
END_SECONDS_MAX: Final = 10.0
UNKNOWN_CODE: Final = 255  # As the event loop has it for other children.
# What an interpreter and its libraries need to know; all that is secret comes with the order of each process.
KNOWN: Final = frozenset({"PATH", "HOME", "LANG", "TZ", "TMPDIR"})
KNOWN_PREFIXES: Final = ("PYTHON", "LC_", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_")

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class NotForkedError(Exception):
    """The fork server, or what it forked, has ended, or we cannot adopt what it forks."""


class ForkServer:
    """A process with our modules loaded, from which programs of ours are forked; one that died is started again."""

    def __init__(self, modules: Sequence[str]) -> None:
        """Start loading the modules, those first that are needed first."""
        self._modules = modules
        self._forking = 0
        # Elsewhere there is no fork that a process with libraries survives, or no way to adopt what it forks.
        self._is_possible = sys.platform == "linux"
        if self._is_possible:
            self._process, self._requests = self._launch()

    async def start(
        self, program: Program, *, inherited_fds: Sequence[int] = (), output: IO[bytes] | int = STDERR_FD
    ) -> RunningProgram:
        """Fork a program of ours; start any other one as it is, and one that cannot be forked."""
        if program.module is None or not self._is_possible:
            return await programs.start(program, inherited_fds=inherited_fds, output=output)
        output_fd = output if isinstance(output, int) else output.fileno()
        order = ForkOrder(
            name=program.name,
            module=program.module,
            arguments=tuple(map(os.fsencode, program.arguments)),
            own_arguments=tuple(map(os.fsencode, program.own_arguments)),
            environment={os.fsencode(name): os.fsencode(of) for name, of in program.environment.items()},
            user=program.user,
            death_signal=program.death_signal,
            numbers=tuple(inherited_fds),
        )
        if self._process.poll() is not None:
            self._requests.close()
            self._process, self._requests = self._launch()
        try:
            return await self._fork(order, [output_fd, *inherited_fds])
        except (OSError, NotForkedError) as error:
            log.warning("not_forked", child=program.name, error=str(error))
            return await programs.start(program, inherited_fds=inherited_fds, output=output)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it; what was forked goes on."""
        if self._is_possible:
            self._process.kill()
            self._process.wait()
            # What it forked last, for a start that was given up, ends now: wait until nobody has the other end.
            self._requests.settimeout(END_SECONDS_MAX)
            with self._requests, contextlib.suppress(OSError):
                self._requests.recv(1)

    def _launch(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        module = "adloom.runtime.supervisor.fork_server"
        words = (str(os.getpid()), str(theirs.fileno()), ",".join(self._modules))
        with theirs:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter
                (sys.executable, "-P", "-m", module, *words),
                env={
                    name: value
                    for name, value in os.environ.items()
                    if name in KNOWN or name.startswith(KNOWN_PREFIXES)
                },
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=STDERR_FD,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        return process, ours

    async def _fork(self, order: ForkOrder, fds: Sequence[int]) -> RunningProgram:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with ours, theirs, self._adopt_orphans():
            socket.send_fds(self._requests, [order.module.encode()], [theirs.fileno()])
            theirs.close()
            ours.setblocking(False)  # noqa: FBT003 - as the system declares it
            data = msgspec.msgpack.encode(order)
            socket.send_fds(ours, [len(data).to_bytes(SIZE_BYTES)], fds)
            await loop.sock_sendall(ours, data)
            said = await loop.sock_recv(ours, PID_BYTES_MAX)
            if not said:
                raise NotForkedError("It ended before it began.")
            process = ForkedProgram(int(said))
            ours.send(b".")
        return process

    @contextlib.contextmanager
    def _adopt_orphans(self) -> Generator[None]:
        """Become the parent of processes under us whose parent ends; not for longer, servers have orphans too."""
        libc = ctypes.CDLL(None)
        if libc.prctl(PR_SET_CHILD_SUBREAPER, 1):
            raise NotForkedError("The system does not let us adopt it.")
        self._forking += 1
        try:
            yield
        finally:
            self._forking -= 1
            libc.prctl(PR_SET_CHILD_SUBREAPER, int(self._forking > 0))


class ForkedProgram:
    """A process that was forked for us and that we have adopted."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[int] = self._loop.create_future()
        threading.Thread(target=self._wait, daemon=True, name=f"wait-{pid}").start()

    @property
    def returncode(self) -> int | None:
        return self._end.result() if self._end.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._end)

    def send_signal(self, signal: int, /) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal)

    def _wait(self) -> None:
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # Who started us lets the system forget how children end.
            code = UNKNOWN_CODE
        # The loop may have ended.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end.set_result, code)
