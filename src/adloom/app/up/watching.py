"""Which children are watched for signs of life, which sockets get new connections meanwhile, and how frozen ones are reported.

The kernel spreads connections over all sockets that share a port, also over that of a process which is frozen or being
replaced. On Linux a program of a few instructions, which we attach to the group, chooses among the others
(`SO_ATTACH_REUSEPORT_CBPF`). Connections that wait in the socket of a frozen process are accepted by its successor.
"""

import asyncio
import ctypes
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Final

import structlog
from msgspec.structs import replace

from adloom.core.clock import Clock
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.supervisor import Supervisor
from adloom.runtime.supervisor.watch import FreezeSettings, Watched
from adloom.runtime.telemetry.metrics import Metrics

ATTACH_PROGRAM: Final = 51
DETACH_PROGRAM: Final = 68
# Instructions: load a word, the rest of a division, skip unless equal, return.
LOAD, REST, SKIP_UNLESS_EQUAL, RETURN = 0x20, 0x94, 0x15, 0x06
# A word that is a random number.
RANDOM: Final = (-0x1000 + 56) & 0xFFFF_FFFF


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


RETRY_SECONDS: Final = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def watch_delivery(
    children: Sequence[ChildSpec], listeners: Sequence[socket.socket], settings: FreezeSettings
) -> list[ChildSpec]:
    """Watch delivery processes, each with its socket: while one is silent, the others get the connections."""
    group = ListenerGroup(listeners)

    def build_watched(number: int) -> Watched:
        return Watched(
            frozen_seconds=settings.delivery_seconds,
            on_change=lambda is_responding: group.set_responding(number, is_responding=is_responding),
        )

    return [replace(child, watched=build_watched(number)) for number, child in enumerate(children)]


def watch_others(children: Sequence[ChildSpec], settings: FreezeSettings) -> list[ChildSpec]:
    watched = Watched(frozen_seconds=settings.process_seconds)
    return [replace(child, watched=watched) for child in children]


async def report_frozen(supervisor: Supervisor, redis_url: str, clock: Clock) -> None:
    """Record children that were frozen where all machines see it; Valkey itself may have been one of them."""
    replaced = await supervisor.replaced.get()
    # Only now, because of its driver: 10 MB that most supervisors never need.
    from adloom.runtime.telemetry.heartbeat import FrozenProcess, record_frozen  # noqa: PLC0415
    from adloom.runtime.valkey import VALKEY_AWAY, open_valkey  # noqa: PLC0415

    async with open_valkey(redis_url) as valkey:
        while True:
            frozen = FrozenProcess(
                process=replaced.child,
                host=socket.gethostname(),
                silent_seconds=round(replaced.silent_seconds, 1),
                at=clock.now(),
            )
            while True:
                try:
                    await record_frozen(valkey, frozen)
                    break
                except VALKEY_AWAY as error:
                    log.debug("frozen_not_recorded", error=repr(error))
                    await asyncio.sleep(RETRY_SECONDS)
            replaced = await supervisor.replaced.get()


def register_children(metrics: Metrics, supervisor: Supervisor) -> None:
    metrics.add_counters(
        "adloom_children_frozen",
        "Children that gave no sign of life and were replaced.",
        "child",
        lambda: supervisor.frozen,
    )
    metrics.add_counters(
        "adloom_children_died",
        "Children that ended although they should run, frozen ones included.",
        "child",
        lambda: supervisor.died,
    )
