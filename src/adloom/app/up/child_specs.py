"""The product's own processes as children of a supervisor."""

import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from adloom.app.listeners import LISTEN_FD, port_of
from adloom.runtime.http.probe import LOOPBACK_OF, wait_until_ok
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.program import Program

# A process that shares its port answers one in N connections; of 8 N it misses all once in 3,000 starts.
PROBES_PER_CHILD = 8
# A little longer than a delivery process gives the requests that it has begun.
STOP_SECONDS_MAX = 5.2
WORKER = "worker"
# It hears what delivery processes return as they end, and then stops itself; all that takes no longer than theirs may.
WORKER_OUTLIVES_SECONDS_MAX = 2.0
WORKER_STOP_SECONDS_MAX = 3.2
SAMPLE = "sample"
SAMPLE_STOP_SECONDS_MAX = 0.5
KNOWN_TO_SAMPLE = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "ADLOOM_LOG_LEVEL", "ADLOOM_LOG_FORMAT"})


def delivery_children(
    listeners: Sequence[socket.socket],
    *,
    host: str,
    environment: Mapping[str, str],
    metrics_ports: Sequence[int | None],
) -> list[ChildSpec]:
    """Describe the delivery processes, one for each socket."""

    async def wait_until_ready() -> None:
        probes = PROBES_PER_CHILD if len(listeners) > 1 else 1
        await wait_until_ok(host, port_of(listeners[0]), "/health/ready", connections=probes)

    return [
        msgspec.structs.replace(
            _child(f"delivery-{number}", listener, wait_until_ready, environment, metrics_port), tells=WORKER
        )
        for number, (listener, metrics_port) in enumerate(zip(listeners, metrics_ports, strict=True), start=1)
    ]


def control_child(
    listener: socket.socket, *, host: str, environment: Mapping[str, str], metrics_port: int
) -> ChildSpec:
    """Describe the control process."""

    async def wait_until_ready() -> None:
        await wait_until_ok(host, port_of(listener), "/health/ready")

    return _child("control", listener, wait_until_ready, environment, metrics_port)


def worker_child(
    listener: socket.socket, *, host: str, environment: Mapping[str, str], metrics_port: int
) -> ChildSpec:
    """Describe the worker process."""

    async def wait_until_ready() -> None:
        await wait_until_ok(host, port_of(listener), "/health")

    child = _child(WORKER, listener, wait_until_ready, environment, metrics_port)
    return msgspec.structs.replace(
        child, stop_seconds_max=WORKER_STOP_SECONDS_MAX, outlives_seconds_max=WORKER_OUTLIVES_SECONDS_MAX
    )


def sample_child(data_directory: Path, *, host: str, port: int, environment: Mapping[str, str]) -> ChildSpec:
    """Describe the simulated readers of the sample: they know nothing but the public address, and no secret."""
    return ChildSpec(
        program=Program(
            name=SAMPLE,
            arguments=(
                sys.executable,
                "-P",
                "-m",
                "adloom.app.sample_traffic",
                str(data_directory),
                LOOPBACK_OF.get(host, host),
                str(port),
            ),
            environment={
                **{name: value for name, value in environment.items() if name in KNOWN_TO_SAMPLE},
                "ADLOOM_PROCESS": SAMPLE,
            },
        ),
        stop_seconds_max=SAMPLE_STOP_SECONDS_MAX,
        may_finish=True,
    )


def _child(
    name: str,
    listener: socket.socket,
    wait_until_ready: Callable[[], Awaitable[None]],
    environment: Mapping[str, str],
    metrics_port: int | None,
) -> ChildSpec:
    return ChildSpec(
        program=Program(
            name=name,
            # -P: a module of the working directory must not take the place of one of ours.
            arguments=(sys.executable, "-P", "-m", f"adloom.app.{name.partition('-')[0]}"),
            environment={
                **environment,
                LISTEN_FD: str(listener.fileno()),
                "ADLOOM_PROCESS": name,
                "ADLOOM_METRICS_PORT": str(metrics_port or ""),
            },
        ),
        wait_until_ready=wait_until_ready,
        inherited_fds=(listener.fileno(),),
        stop_seconds_max=STOP_SECONDS_MAX,
    )
