"""Listening sockets: bound by a supervisor and inherited, or bound here where there is none.

A supervisor listens before its children run, so that the connections of a child that died
wait for its successor instead of being refused.
"""

import contextlib
import errno
import os
import socket
from collections.abc import Generator

from adloom.core.errors import CommandError
from adloom.runtime.ports import is_taken

LISTEN_FD = "ADLOOM_LISTEN_FD"
# Connections that wait while a child is being replaced; the kernel caps it at net.core.somaxconn.
BACKLOG_MAX = 4096


class ListenError(CommandError):
    """A socket cannot be bound; the message names the port and what to do."""


def take_socket(host: str, port: int) -> socket.socket:
    """Take the listening socket that the supervisor has bound for us, or bind one."""
    inherited = os.environ.get(LISTEN_FD)
    if inherited is None:
        return bind_socket(host, port)
    listener = socket.socket(fileno=int(inherited))
    listener.set_inheritable(False)
    return listener


def bind_socket(host: str, port: int) -> socket.socket:
    """Listen on a port that must be free; port 0 takes any."""
    [listener] = _bind_sockets(host, port, count=1, flag=None)
    return listener


@contextlib.contextmanager
def listen(host: str, port: int, *, count: int, flag: str | None = None) -> Generator[list[socket.socket]]:
    """Listen with several sockets that share a port; the kernel spreads connections over them."""
    listeners = _bind_sockets(host, port, count=count, flag=flag)
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.close()


def get_port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def _bind_sockets(host: str, port: int, *, count: int, flag: str | None) -> list[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listeners: list[socket.socket] = []
    try:
        # Sockets that share a port would share it with a stranger's too, so this is asked first.
        if port and is_taken(host, port):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))  # noqa: TRY301 - one place words it
        for _ in range(count):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if count > 1:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind((host, port))
            listener.listen(BACKLOG_MAX)
            port = get_port(listener)
    except OSError as error:
        for listener in listeners:
            listener.close()
        raise ListenError(_explain(host, port, error, flag)) from error
    return listeners


def _explain(host: str, port: int, error: OSError, flag: str | None) -> str:
    remedy = f" Choose another with {flag}." if flag else ""
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} on {host} is in use by another program.{remedy}"
        case errno.EACCES:
            return f"Port {port} on {host} needs more rights than this user has.{remedy}"
        case _:
            return f"Cannot listen on {host}, port {port}: {error.strerror or error}."
