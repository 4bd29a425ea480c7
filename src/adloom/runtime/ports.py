"""Ports on loopback: find a free one, tell whether one is taken."""

import errno
import itertools
import socket
from collections.abc import Callable, Sequence


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
