"""Which children are watched for signs of life, and how frozen ones are reported."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Final

import structlog
from msgspec.structs import replace

from adloom.app.up.listener_group import ListenerGroup
from adloom.core.clock import Clock
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.settings import FreezeSettings
from adloom.runtime.supervisor.supervisor import Supervisor
from adloom.runtime.supervisor.watch import Watched
from adloom.runtime.telemetry.metrics import Metrics

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
