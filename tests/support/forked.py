"""Programs of ours as processes of their own, forked from one that has loaded the code (see `fork_server`)."""

import contextlib
import ctypes
import functools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
PR_GET_CHILD_SUBREAPER = 37
ANSWER_BYTES_MAX = 100_000
FORKED_SECONDS_MAX = 100.0
CHECKOUT = Path(__file__).parents[2]
FORKED_COMMAND = Path(__file__).with_name("forked_command.py")
ROOT_OF_COMMAND = [sys.executable, "-m"]


class ForkedPopen(subprocess.Popen[Any]):
    """A `subprocess.Popen` of `python -m` with a module of ours, whose process did not have to load it."""

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        parent: Any = super()
        if sys.platform != "linux":
            parent._execute_child(args, *rest)  # noqa: SLF001 - what we stand in for
            return
        cwd, env, pipes = rest[4], rest[5], rest[9:15]  # The same in all versions since 3.8.
        words = list(map(str, args))
        assert words[:2] == ROOT_OF_COMMAND, words
        order = {
            "parent": os.getpid(),
            "module": words[2],
            "words": words[3:],
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
        }
        streams = [
            given if given != -1 else inherited
            for inherited, given in enumerate((pipes[0], pipes[3], pipes[5]))
        ]
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking, _adopt_orphans():
                asking.settimeout(FORKED_SECONDS_MAX)
                asking.connect(f"\0{fork_server()}")
                socket.send_fds(asking, [json.dumps(order).encode()], streams)
                said = asking.recv(ANSWER_BYTES_MAX)
            assert said.isdigit(), f"It was not forked: {said.decode()}"
            self.pid = int(said)
            self._child_created = True
        finally:
            parent._close_pipe_fds(*pipes)  # noqa: SLF001 - as above


def run_forked(
    args: Sequence[str], *, given: str | None = None, timeout: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end as `subprocess.run` does, and return its code and what it printed."""
    piped = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with ForkedPopen(args, text=True, **piped, **options) as process:
        try:
            out, err = process.communicate(given, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess[str](args, process.returncode, out, err)


def fork_server() -> str:
    """Return where the server of this test process listens; it ends with us."""
    return _start_server()[0]


@functools.cache
def _start_server() -> tuple[str, subprocess.Popen[bytes], int]:
    life, ours = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as requests:
        requests.bind("")  # Linux chooses a name that is no file.
        requests.listen()
        fds = (requests.fileno(), life)
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.support.fork_server", *map(str, fds)],
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdin=subprocess.DEVNULL,
            pass_fds=fds,
            start_new_session=True,
        )
        name: bytes = requests.getsockname()
    os.close(life)
    return name.removeprefix(b"\0").decode(), server, ours


@contextlib.contextmanager
def _adopt_orphans() -> Generator[None]:
    """Become the parent of processes under us whose parent ends."""
    libc, before = ctypes.CDLL(None), ctypes.c_int()
    libc.prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before))
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, before.value)
