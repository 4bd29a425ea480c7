"""Keeps room on the disk: stops PostgreSQL while it still can, and starts the servers when there is room again."""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from adloom.runtime.embedded.reserve import POLL_SECONDS, DiskReserve
from adloom.runtime.embedded.servers import Servers
from adloom.runtime.loops import sleep_until_next
from adloom.runtime.settings import read_settings
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.settings import ReserveSettings
from adloom.runtime.supervisor.supervisor import Supervisor
from adloom.runtime.supervisor.watch import POLL_AFTER_SECONDS
from adloom.runtime.telemetry.metrics import Metrics

MEGABYTE = 10**6
POSTGRES = "postgres"


def make_reserve(variables: Mapping[str, str], folder: Path, servers: Servers) -> DiskReserve:
    """Make the reserve of an installation; one without a PostgreSQL of its own needs none."""
    settings = read_settings(ReserveSettings, variables, process="up")
    return DiskReserve(folder, reserve_bytes=settings.megabytes * MEGABYTE if servers.postgres else 0)


def start_with_room(servers: Servers, reserve: DiskReserve) -> Servers:
    """Let embedded servers start only while the disk is not full."""

    def wait_first(child: ChildSpec | None) -> ChildSpec | None:
        if child is None:
            return None
        prepare = child.prepare

        async def prepare_with_room() -> None:
            await reserve.wait_for_room()
            await prepare()

        return replace(child, prepare=prepare_with_room)

    return replace(
        servers,
        postgres=wait_first(servers.postgres),
        valkey=wait_first(servers.valkey),
        nats=wait_first(servers.nats),
    )


async def watch_disk(supervisor: Supervisor, reserve: DiskReserve) -> None:
    """Look at the disk every second."""
    while True:
        await sleep_until_next(POLL_SECONDS, after=POLL_AFTER_SECONDS)  # With those at the children.
        if reserve.check_disk():
            supervisor.ask_to_stop(POSTGRES)


def register_disk(metrics: Metrics, reserve: DiskReserve) -> None:
    metrics.add_gauge(
        "adloom_disk_free_bytes",
        "Free bytes of the data directory's disk, without the reserve.",
        lambda: reserve.free_bytes,
    )
