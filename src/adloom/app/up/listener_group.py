"""Sockets that share a port, and which of them get new connections.

The kernel spreads connections over all of them, also over that of a process which is frozen or being replaced. On Linux
a program of a few instructions, which we attach to the group, chooses among the others (`SO_ATTACH_REUSEPORT_CBPF`).
Connections that wait in the socket of a frozen process are accepted by its successor.
"""

import ctypes
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Final

import structlog

ATTACH_PROGRAM: Final = 51
DETACH_PROGRAM: Final = 68
# Instructions: load a word, the rest of a division, skip unless equal, return.
LOAD, REST, SKIP_UNLESS_EQUAL, RETURN = 0x20, 0x94, 0x15, 0x06
# A word that is a random number.
RANDOM: Final = (-0x1000 + 56) & 0xFFFF_FFFF

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ListenerGroup:
    """Keeps new connections away from sockets whose process is silent, while another one is not."""

    def __init__(self, listeners: Sequence[socket.socket]) -> None:
        self._listeners = listeners
        self._silent: set[int] = set()
        self._open = list(range(len(listeners)))

    def set_responding(self, number: int, *, is_responding: bool) -> None:
        """Record whether the process of a socket responds."""
        (self._silent.discard if is_responding else self._silent.add)(number)
        chosen = choose_open(len(self._listeners), self._silent)
        if chosen != self._open and sys.platform == "linux":
            self._open = chosen
            self._attach(chosen)

    def _attach(self, chosen: Sequence[int]) -> None:
        try:
            if len(chosen) == len(self._listeners):
                self._listeners[0].setsockopt(socket.SOL_SOCKET, DETACH_PROGRAM, 0)
                return
            instructions = build_choice(chosen)
            code = ctypes.create_string_buffer(instructions, len(instructions))
            count = len(instructions) // struct.calcsize("HBBI")
            program = struct.pack("@HP", count, ctypes.addressof(code))
            self._listeners[0].setsockopt(socket.SOL_SOCKET, ATTACH_PROGRAM, program)
        except OSError as error:
            # An old kernel, or the sockets are closed because we stop. Then connections wait for the successor.
            log.debug("listener_group_unchanged", error=repr(error))


def choose_open(count: int, silent: set[int]) -> list[int]:
    """Return the sockets that get connections: all but the silent ones, or all if none would be left."""
    others = [number for number in range(count) if number not in silent]
    return others or list(range(count))


def build_choice(numbers: Sequence[int]) -> bytes:
    """Build the program that returns one of some numbers, each as often."""
    program = [(LOAD, 0, 0, RANDOM), (REST, 0, 0, len(numbers))]
    for place, number in enumerate(numbers[:-1]):
        program += [(SKIP_UNLESS_EQUAL, 0, 1, place), (RETURN, 0, 0, number)]
    program.append((RETURN, 0, 0, numbers[-1]))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)
