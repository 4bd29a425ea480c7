"""What one `adloom up` is going to run, decided before anything is started."""

import contextlib
import ipaddress
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from adloom import VERSION
from adloom.app.listeners import LISTEN_FD, listen, port_of
from adloom.app.sample_data import resolve_magazine
from adloom.app.up.child_user import ChildUser, choose_child_user, run_as
from adloom.core.clock import Clock
from adloom.events.log.spool.drain import locate_spool, make_spool_folder
from adloom.runtime.background.settings import classifier_settings, crawler_settings
from adloom.runtime.embedded.binaries import give_ownership
from adloom.runtime.embedded.servers import Servers, describe_servers, first_port
from adloom.runtime.http.probe import LOOPBACK_OF, wait_until_ok
from adloom.runtime.installation import DataDirectory, Installation, Secrets
from adloom.runtime.ports import choose_ports, is_taken
from adloom.runtime.settings import (
    SettingsError,
    Telemetry,
    add_redis_password,
    control_settings,
    delivery_settings,
    worker_settings,
)
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.program import Program

LOOPBACK = "127.0.0.1"
# A process that shares its port answers one in N connections; of 8 N it misses all once in 3,000 starts.
PROBES_PER_CHILD = 8
# A little longer than a delivery process gives the requests that it has begun.
STOP_SECONDS_MAX = 5.2
WORKER = "worker"
# It hears what delivery processes return as they end, and then stops itself; all that takes no longer than theirs may.
WORKER_OUTLIVES_SECONDS_MAX = 2.0
WORKER_STOP_SECONDS_MAX = 3.2
CRAWLER = "crawler"
CLASSIFIER = "classifier"
# A crawl that is under way goes on at the next start.
BACKGROUND_STOP_SECONDS_MAX = 3.0
SAMPLE = "sample"
SAMPLE_STOP_SECONDS_MAX = 0.5
KNOWN_TO_SAMPLE = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "ADLOOM_LOG_LEVEL", "ADLOOM_LOG_FORMAT"})


class UpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command was given."""

    data_directory: Path
    host: str
    control_host: str = LOOPBACK
    delivery_port: int
    control_port: int
    worker_port: int
    workers: int
    classifiers: int = 1
    has_crawler: bool = True
    is_empty: bool


class Listeners(msgspec.Struct, frozen=True, kw_only=True):
    """The sockets of the product: one for each process."""

    delivery: list[socket.socket]
    control: socket.socket
    worker: socket.socket


class UpPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that runs, as values."""

    servers: Servers
    children: list[ChildSpec]
    # Nobody waits for these when Adloom starts.
    background: list[ChildSpec]
    # The simulated visitors of the sample, if there may be one.
    sample: ChildSpec | None
    installation: Installation
    delivery_url: str
    control_url: str
    jwt_secret: str
    telemetry: Telemetry
    # What the operator should know, a sentence each.
    warnings: list[str] = []


def open_listeners(options: UpOptions, closing: contextlib.ExitStack) -> Listeners:
    """Listen on every port of the product, or raise for the first that is not free."""
    delivery = listen(options.host, options.delivery_port, count=options.workers, flag="--delivery-port")
    control = listen(options.control_host, options.control_port, count=1, flag="--control-port")
    worker = listen(options.control_host, options.worker_port, count=1, flag="--worker-port")
    return Listeners(
        delivery=closing.enter_context(delivery),
        control=closing.enter_context(control)[0],
        worker=closing.enter_context(worker)[0],
    )


def make_plan(
    options: UpOptions,
    variables: Mapping[str, str],
    listeners: Listeners,
    secrets: Secrets,
    clock: Clock,
) -> UpPlan:
    """Decide what to run and with which settings; raises if the settings are not usable."""
    variables = _place_redis_password(variables)
    directory = DataDirectory(options.data_directory)
    crawlers = [CRAWLER] if options.has_crawler else []
    background = [*crawlers, *(f"{CLASSIFIER}-{number}" for number in range(1, options.classifiers + 1))]
    served = [*(f"delivery-{number}" for number in range(1, options.workers + 1)), "control", WORKER]
    names = served + background
    last = directory.read_installation()
    postgres_port, valkey_port, *metrics_ports = choose_ports(
        [last and last.postgres_port, last and last.valkey_port, *(None for _ in names)],
        first=first_port(directory.path),
        is_taken=lambda port: is_taken(LOOPBACK, port),
    )
    ports, background_ports = metrics_ports[: len(served)], metrics_ports[len(served) :]
    servers = describe_servers(
        variables, directory.path, secrets, postgres_port=postgres_port, valkey_port=valkey_port
    )
    environment = {
        **_environment(variables, options, listeners, servers, secrets),
        **_sample_variables(variables, options, listeners),
        "ADLOOM_SPOOL_DIR": str(locate_spool(variables, directory)),
    }
    delivery, control = delivery_settings(environment), control_settings(environment)
    make_spool_folder(delivery)
    for read_settings in (worker_settings, crawler_settings, classifier_settings):
        read_settings(environment)
    user = _choose_user(variables, directory.path, Path(environment["ADLOOM_SPOOL_DIR"]))
    return UpPlan(
        servers=servers,
        children=run_as(user.name, _children(listeners, options, environment, ports)),
        background=run_as(user.name, _background(background, environment, background_ports)),
        sample=_sample(options, user, delivery.port, environment),
        installation=Installation(
            version=VERSION,
            pid=os.getpid(),
            started_at=clock.now(),
            host=options.host,
            control_host=options.control_host,
            delivery_port=delivery.port,
            control_port=control.port,
            worker_port=port_of(listeners.worker),
            postgres_port=None if servers.postgres is None else postgres_port,
            valkey_port=None if servers.valkey is None else valkey_port,
            metrics_ports=dict(zip(names, metrics_ports, strict=True)),
        ),
        delivery_url=delivery.public_url,
        control_url=control.public_url,
        jwt_secret=control.jwt_secret,
        warnings=_list_warnings(options, control.public_url, user),
        telemetry=msgspec.structs.replace(delivery.telemetry, process="up", metrics_port=None),
    )


def _sample(
    options: UpOptions, user: ChildUser, port: int, environment: Mapping[str, str]
) -> ChildSpec | None:
    if options.is_empty:
        return None
    child = sample_child(options.data_directory, host=options.host, port=port, environment=environment)
    return run_as(user.name, [child])[0]


def _place_redis_password(variables: Mapping[str, str]) -> Mapping[str, str]:
    if variables.get("REDIS_PASSWORD") and not variables.get("REDIS_URL"):
        raise SettingsError(
            "REDIS_PASSWORD is set and REDIS_URL is not: the embedded Valkey has a password of its own."
            " Set REDIS_URL to your server, or take REDIS_PASSWORD out of the environment."
        )
    return add_redis_password(variables)


def _choose_user(variables: Mapping[str, str], data_directory: Path, spool: Path) -> ChildUser:
    """Choose the user of the children, and give it the spool, which an earlier version may have made as root."""
    user = choose_child_user(variables, [data_directory, *spool.parents])
    give_ownership(spool, user.name)
    return user


def _list_warnings(options: UpOptions, control_url: str, user: ChildUser) -> list[str]:
    warnings: list[str] = []
    if not is_loopback(options.control_host) and not control_url.startswith("https://"):
        warnings.append(
            f"Control listens on {options.control_host} without https: passwords and cookies can be read on the way. "
            "Leave out --control-host, or put a proxy with https before it and set ADLOOM_CONTROL_URL to its address."
        )
    if user.why_root is not None:
        warnings.append(
            f"Delivery, control and worker run as root: {user.why_root}. "
            "Install Python and Adloom where other users can read them, or start it as an ordinary user."
        )
    return warnings


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _environment(
    variables: Mapping[str, str], options: UpOptions, listeners: Listeners, servers: Servers, secrets: Secrets
) -> dict[str, str]:
    return {
        "JWT_SECRET": secrets.jwt_secret,
        "ADLOOM_TOKEN_SECRET": secrets.token_secret,
        "ADLOOM_SECRET": secrets.sealing_secret,
        # What the user has set wins over what we would choose, but not over where things really are.
        **variables,
        "DATABASE_URL": servers.database_url,
        "REDIS_URL": servers.redis_url,
        "ADLOOM_DELIVERY_HOST": options.host,
        "ADLOOM_DELIVERY_PORT": str(port_of(listeners.delivery[0])),
        "ADLOOM_CONTROL_HOST": options.control_host,
        "ADLOOM_CONTROL_PORT": str(port_of(listeners.control)),
        "ADLOOM_WORKER_HOST": options.control_host,
        "WORKER_PORT": str(port_of(listeners.worker)),
        # Any free port, unless the user wants to watch its health.
        "ADLOOM_CRAWLER_PORT": variables.get("ADLOOM_CRAWLER_PORT") or "0",
        "ADLOOM_CLASSIFIER_PORT": (options.classifiers == 1 and variables.get("ADLOOM_CLASSIFIER_PORT"))
        or "0",
    }


def _sample_variables(
    variables: Mapping[str, str], options: UpOptions, listeners: Listeners
) -> dict[str, str]:
    if options.is_empty:
        return {"ADLOOM_SAMPLE_PAGES": "off"}
    address, port, *_ = listeners.delivery[0].getsockname()
    resolved = variables.get("ADLOOM_CRAWL_RESOLVE", "")
    return {
        "ADLOOM_SAMPLE_PAGES": "on",
        "ADLOOM_CRAWL_RESOLVE": resolve_magazine(address, port, resolved),
    }


def _children(
    listeners: Listeners, options: UpOptions, environment: Mapping[str, str], metrics_ports: list[int]
) -> list[ChildSpec]:
    *delivery_metrics, control_metrics, worker_metrics = metrics_ports
    host, control_host = options.host, options.control_host
    worker = _child(WORKER, listeners.worker, worker_metrics, host=control_host, environment=environment)
    return [
        *delivery_children(
            listeners.delivery, host=host, environment=environment, metrics_ports=delivery_metrics
        ),
        _child("control", listeners.control, control_metrics, host=control_host, environment=environment),
        msgspec.structs.replace(
            worker, stop_seconds_max=WORKER_STOP_SECONDS_MAX, outlives_seconds_max=WORKER_OUTLIVES_SECONDS_MAX
        ),
    ]


def delivery_children(
    listeners: Sequence[socket.socket],
    *,
    host: str,
    environment: Mapping[str, str],
    metrics_ports: Sequence[int | None],
) -> list[ChildSpec]:
    """Describe the delivery processes, one per socket."""
    probes = PROBES_PER_CHILD if len(listeners) > 1 else 1
    children = [
        _child(f"delivery-{number}", listener, port, host=host, environment=environment, probes=probes)
        for number, (listener, port) in enumerate(zip(listeners, metrics_ports, strict=True), start=1)
    ]
    return [msgspec.structs.replace(child, reports_to=WORKER) for child in children]


def _child(  # noqa: PLR0913 - what the children differ in
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
        await wait_until_ok(host, port_of(listener), path, connections=probes)

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


def _background(
    names: Sequence[str], environment: Mapping[str, str], metrics_ports: Sequence[int]
) -> list[ChildSpec]:
    return [
        background_child(name, environment, port) for name, port in zip(names, metrics_ports, strict=True)
    ]


def background_child(name: str, environment: Mapping[str, str], metrics_port: int | None) -> ChildSpec:
    """Describe a process that works off a queue; no request waits for it."""
    return ChildSpec(
        program=Program(
            name=name,
            arguments=(sys.executable, "-P", "-m", f"adloom.app.{name.partition('-')[0]}"),
            environment={
                **environment,
                "ADLOOM_PROCESS": name,
                "ADLOOM_METRICS_PORT": str(metrics_port or ""),
            },
        ),
        stop_seconds_max=BACKGROUND_STOP_SECONDS_MAX,
    )


def sample_child(data_directory: Path, *, host: str, port: int, environment: Mapping[str, str]) -> ChildSpec:
    """Describe the simulated visitors of the sample: they know only the public address, and no secret."""
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
