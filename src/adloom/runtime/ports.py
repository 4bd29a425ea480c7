"""Ports: find a free one, tell whether one is taken, write where one is listened on."""

import errno
import itertools
import os
import socket
from collections.abc import Callable, Sequence
from typing import Final

# Below those that a system gives to connections and to programs that ask for any: a port that was found free stays so for a while.
FREE_PORTS: Final = range(20_000, 32_000)
# Addresses that mean every interface cannot be connected to everywhere.
LOOPBACK_OF: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound here
PORTS_APART: Final = 499  # Processes that look at the same time begin elsewhere.

_turns: Final = itertools.count()


def find_port() -> int:
    """Find a free port; each call of a process gets another."""
    while True:
        port = FREE_PORTS[(os.getpid() * PORTS_APART + next(_turns)) % len(FREE_PORTS)]
        if not is_taken("127.0.0.1", port):
            return port


def format_url_host(host: str) -> str:
    """Return the host to connect to, as written in a URL, for an address that is listened on."""
    address = LOOPBACK_OF.get(host, host)
    return f"[{address}]" if ":" in address else address


def is_taken(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # Without SO_REUSEPORT, so that a listener that shares its port counts too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            # Whatever else is wrong with an address is said when it is listened on.
            return error.errno == errno.EADDRINUSE
    return False


def choose_ports(
    remembered: Sequence[int | None], *, first: int, is_taken: Callable[[int], bool]
) -> list[int]:
    """Choose a port for each remembered one: the same while it is free, else the next free from `first` on."""
    kept = [port for port in remembered if port is not None and not is_taken(port)]
    others = (port for port in itertools.count(first) if port not in kept and not is_taken(port))
    return [port if port in kept else next(others) for port in remembered]
