"""The child processes of the product, each as a value."""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from adloom.app.listeners import LISTEN_FD, get_port
from adloom.app.up.watching import watch_delivery, watch_others
from adloom.runtime.http.probe import wait_until_ok
from adloom.runtime.ports import LOOPBACK_OF
from adloom.runtime.process.roles import WorkerRole
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.program import make_our_program
from adloom.runtime.supervisor.watch import FreezeSettings

# A process that shares its port answers one in N connections; of 8 N it misses all once in 3,000 starts.
PROBES_PER_CHILD = 8
# A little longer than a delivery process gives the requests that it has begun.
STOP_SECONDS_MAX = 5.2
WORKER = "worker"
# It receives what delivery processes return as they end, and then stops itself; all that takes no longer than theirs may.
WORKER_OUTLIVES_SECONDS_MAX = 2.0
WORKER_STOP_SECONDS_MAX = 3.2
# Of the worker beside workers that have nothing but actors.
OTHER_ROLES = ",".join(role for role in WorkerRole if role is not WorkerRole.ENTITY)
CRAWLER = "crawler"
CLASSIFIER = "classifier"
# A crawl that is under way goes on at the next start.
BACKGROUND_STOP_SECONDS_MAX = 3.0
SAMPLE = "sample"
SAMPLE_STOP_SECONDS_MAX = 0.5
KNOWN_TO_SAMPLE = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "ADLOOM_LOG_LEVEL", "ADLOOM_LOG_FORMAT"})


def name_module(name: str) -> str:
    """Return the module of a process by its name, such as `delivery-1`."""
    return f"adloom.app.{name.partition('-')[0]}"


def describe_delivery_children(
    listeners: Sequence[socket.socket],
    *,
    host: str,
    environment: Mapping[str, str],
    metrics_ports: Sequence[int | None],
    freezes: FreezeSettings,
) -> list[ChildSpec]:
    """Describe the delivery processes, one per socket."""
    probes = PROBES_PER_CHILD if len(listeners) > 1 else 1
    children = [
        describe_child(
            f"delivery-{number}", listener, port, host=host, environment=environment, probes=probes
        )
        for number, (listener, port) in enumerate(zip(listeners, metrics_ports, strict=True), start=1)
    ]
    reporting = [msgspec.structs.replace(child, reports_to=WORKER) for child in children]
    return watch_delivery(reporting, listeners, freezes)


def describe_child(  # noqa: PLR0913 - what the children differ in
    name: str,
    listener: socket.socket,
    metrics_port: int | None,
    *,
    host: str,
    environment: Mapping[str, str],
    probes: int = 1,
) -> ChildSpec:
    path = "/health" if name == WORKER else "/health/ready"

    async def wait_until_ready() -> None:
        await wait_until_ok(host, get_port(listener), path, connections=probes)

    return msgspec.structs.replace(
        describe_background_child(name, {**environment, LISTEN_FD: str(listener.fileno())}, metrics_port),
        wait_until_ready=wait_until_ready,
        inherited_fds=(listener.fileno(),),
        stop_seconds_max=STOP_SECONDS_MAX,
    )


def describe_background_children(
    names: Sequence[str],
    *,
    environment: Mapping[str, str],
    metrics_ports: Sequence[int],
    freezes: FreezeSettings,
) -> list[ChildSpec]:
    """Describe the processes that work in the background, by their names."""
    children = [
        describe_background_child(name, environment, port)
        for name, port in zip(names, metrics_ports, strict=True)
    ]
    return watch_others(children, freezes)


def describe_actor_workers(
    environment: Mapping[str, str], metrics_ports: Mapping[str, int], freezes: FreezeSettings
) -> list[ChildSpec]:
    """Describe workers that have nothing but actors, by their names."""
    environment = {**environment, "ADLOOM_WORKER_ROLES": WorkerRole.ENTITY, "WORKER_PORT": "0"}
    return describe_background_children(
        list(metrics_ports),
        environment=environment,
        metrics_ports=list(metrics_ports.values()),
        freezes=freezes,
    )


def describe_background_child(
    name: str, environment: Mapping[str, str], metrics_port: int | None
) -> ChildSpec:
    """Describe a process that works off a queue; no request waits for it."""
    return ChildSpec(
        program=make_our_program(
            name,
            name_module(name),
            environment={
                **environment,
                "ADLOOM_PROCESS": name,
                "ADLOOM_METRICS_PORT": str(metrics_port or ""),
            },
        ),
        stop_seconds_max=BACKGROUND_STOP_SECONDS_MAX,
    )


def build_sample_child(
    data_directory: Path, *, host: str, port: int, environment: Mapping[str, str]
) -> ChildSpec:
    """Describe the simulated visitors of the sample: they know only the public address, and no secret."""
    return ChildSpec(
        program=make_our_program(
            SAMPLE,
            "adloom.app.sample_traffic",
            str(data_directory),
            LOOPBACK_OF.get(host, host),
            str(port),
            environment={
                **{name: value for name, value in environment.items() if name in KNOWN_TO_SAMPLE},
                "ADLOOM_PROCESS": SAMPLE,
            },
        ),
        stop_seconds_max=SAMPLE_STOP_SECONDS_MAX,
        may_finish=True,
    )
