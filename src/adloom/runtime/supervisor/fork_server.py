"""A process that loads our code once, and from which our processes are forked: they start at once and share its memory.

`python -P -m adloom.runtime.supervisor.fork_server SUPERVISOR_PID FD MODULE,MODULE…`. It starts no thread and no
event loop, and opens nothing: only then may it be forked. A request is the name of a module and a socket; it is
answered as soon as the module is loaded. The forked process reads the rest from that socket: secrets of one
process must not be in the memory of the others. It is forked twice, so that it is a child of the supervisor,
which waits for it and ends with it.
"""

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import os
import select
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from adloom.runtime.supervisor.exec_child import become, die_with

PR_SET_DUMPABLE: Final = 4
PR_SET_NAME: Final = 15
NAME_BYTES_MAX: Final = 1_024
DESCRIPTORS_MAX: Final = 64
SIZE_BYTES: Final = 8
# As `proc(5)` counts them, after the name of the program.
ARGUMENTS_FIELDS: Final = slice(45, 47)


class ForkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a forked process becomes; its descriptors come beside it."""

    name: str
    module: str
    # As they are listed for a process that was started by them; those of the module itself are the last.
    arguments: tuple[bytes, ...]
    own_arguments: tuple[bytes, ...]
    environment: dict[bytes, bytes]
    user: str | None
    death_signal: int
    # The numbers that the descriptors have in the supervisor, which the environment names.
    numbers: tuple[int, ...]
    # Those that they have here.
    fds: tuple[int, ...] = ()


def main() -> None:
    """Serve requests until the supervisor ends; in a forked process, become what was asked for."""
    parent, fd, modules = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
    die_with(parent, signal.SIGKILL)
    # Who started the supervisor may ignore it: then there is nothing to wait for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    requests = socket.socket(fileno=fd)
    forked = serve(requests, modules)
    if forked is not None:
        order = take_order(*forked, parent)
        # Open until now, it showed the supervisor that a process may exist whose pid it does not know.
        requests.close()
        become_what_is_ordered(order, parent)
        sys.argv = [order.module, *map(os.fsdecode, order.own_arguments)]
        importlib.import_module(order.module).main()
        if threading.active_count() == 1:
            end_at_once()


def end_at_once() -> NoReturn:
    """End without taking the modules apart, which would first copy the memory that they share with others."""
    atexit._run_exitfuncs()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - there is no other way
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def serve(requests: socket.socket, modules: Sequence[str]) -> tuple[socket.socket, int] | None:
    """Load modules and answer requests; in a forked process, return the socket of its request and its first parent."""
    gc.disable()  # Loading leaves hardly any garbage, and much to look through.
    unloaded, waiting = deque(modules), deque[tuple[str, int]]()
    while True:
        while select.select([requests], [], [], 0 if unloaded or waiting else None)[0]:
            name, fds, _, _ = socket.recv_fds(requests, NAME_BYTES_MAX, 1)
            if not name:
                return None
            waiting.append((name.decode(), fds[0]))
        for _ in range(len(waiting)):
            module, fd = waiting.popleft()
            if module in unloaded:
                waiting.append((module, fd))
            elif first_parent := _fork(fd):
                # What others are told is not for this one; and it must be closed when they have gone.
                for _, other in waiting:
                    os.close(other)
                return socket.socket(fileno=fd), first_parent
        if unloaded:
            importlib.import_module(unloaded.popleft())


def _fork(fd: int) -> int:
    """Fork a process that is not our child; return the process between us to it, and 0 to us."""
    # What is here now is no garbage: the collectors of the processes would write to each object.
    gc.freeze()
    middle = os.fork()
    if middle:
        os.close(fd)
        os.waitpid(middle, 0)
        return 0
    middle = os.getpid()
    if os.fork():
        os._exit(0)
    return middle


def take_order(channel: socket.socket, first_parent: int, parent: int) -> ForkOrder:
    """Take what this process has to be from the supervisor, which waits for its end from then on."""
    head, fds, _, _ = socket.recv_fds(channel, SIZE_BYTES, DESCRIPTORS_MAX)
    order = msgspec.msgpack.decode(_read(channel, int.from_bytes(head)), type=ForkOrder)
    # The supervisor says nothing before it knows us: whatever is there to be read is its end.
    while (current := os.getppid()) != parent and not select.select([channel], [], [], 0.001)[0]:
        # Some systems say that the supervisor adopts us, and have another process do it.
        if current != first_parent:
            os._exit(1)
    with contextlib.suppress(BrokenPipeError):
        channel.sendall(str(os.getpid()).encode())
    if not channel.recv(1):
        os._exit(1)
    channel.close()
    return msgspec.structs.replace(order, fds=tuple(fds))


def become_what_is_ordered(order: ForkOrder, parent: int) -> None:
    """Take on descriptors, environment, name and user, and end with the supervisor."""
    place_descriptors(order.fds, order.numbers)
    os.setsid()
    os.environ.clear()
    os.environb.update(order.environment)
    time.tzset()
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NAME, order.name.encode())
    _show_arguments(order.arguments)
    if order.user:
        become(order.user)
        # As for a program that the user starts; else it could not read what the system says of it.
        libc.prctl(PR_SET_DUMPABLE, 1)
    # After the change of user, which would undo it.
    die_with(parent, order.death_signal, libc)
    gc.enable()


def _read(channel: socket.socket, size: int) -> bytes:
    read = bytearray()
    while len(read) < size:
        part = channel.recv(size - len(read))
        if not part:
            os._exit(1)
        read += part
    return bytes(read)


def place_descriptors(fds: Sequence[int], numbers: Sequence[int]) -> None:
    """Give descriptors their numbers, whatever has them now; the first is standard output and standard error."""
    free = max((2, *numbers)) + 1
    output, *others = moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, free) for fd in fds]
    for fd in fds:
        os.close(fd)
    for fd, number in ((output, 1), (output, 2), *zip(others, numbers, strict=True)):
        os.dup2(fd, number)
    for fd in moved:
        os.close(fd)


def _show_arguments(arguments: Sequence[bytes]) -> None:
    """Let the system list this process by its own arguments, as far as there is room where ours are."""
    stat = Path("/proc/self/stat").read_bytes()
    first, end = map(int, stat.rpartition(b")")[2].split()[ARGUMENTS_FIELDS])
    room = end - first - 1
    if room > 0:
        shown = b"".join(one + b"\0" for one in arguments)[:room]
        ctypes.memmove(first, shown.ljust(room + 1, b"\0"), room + 1)


if __name__ == "__main__":
    main()
