"""What one `adloom up` is going to run, decided before anything is started."""

import contextlib
import os
import socket
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from adloom import VERSION
from adloom.app.listeners import get_port, listen
from adloom.app.up.child_user import ChildUser, choose_owner_of, run_as
from adloom.app.up.children import (
    CLASSIFIER,
    CRAWLER,
    OTHER_ROLES,
    WORKER,
    WORKER_OUTLIVES_SECONDS_MAX,
    WORKER_STOP_SECONDS_MAX,
    build_sample_child,
    describe_actor_workers,
    describe_background_children,
    describe_child,
    describe_delivery_children,
)
from adloom.app.up.sample import resolve_magazine
from adloom.app.up.watching import watch_others
from adloom.core.clock import Clock
from adloom.events.log.spool.drain import locate_spool, make_spool_folder
from adloom.runtime.background_settings import read_classifier_settings, read_crawler_settings
from adloom.runtime.embedded.binaries import find_unprivileged_user
from adloom.runtime.embedded.servers import Servers, choose_first_port, describe_servers
from adloom.runtime.embedded.sockets import Listening, make_socket_folder
from adloom.runtime.files.place import FOLDER_NAME, make_files_folder, write_folder_url
from adloom.runtime.http.geoip import open_countries
from adloom.runtime.installation import DataDirectory, Installation, Secrets
from adloom.runtime.outbound.address import is_this_machine
from adloom.runtime.ports import choose_ports, is_taken
from adloom.runtime.settings import (
    DeliverySettings,
    SettingsError,
    Telemetry,
    add_redis_password,
    read_control_settings,
    read_delivery_settings,
    read_settings,
    read_worker_settings,
)
from adloom.runtime.supervisor.child import ChildSpec
from adloom.runtime.supervisor.watch import FreezeSettings

LOOPBACK = "127.0.0.1"
SUPERVISOR = "up"


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
    # Whether PostgreSQL and Valkey listen on ports of loopback too.
    has_server_ports: bool = False
    # Whether workers share the actors by a NATS of our own, and how many do nothing else.
    has_nats: bool = False
    entity_workers: int = 0
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
    entity_workers: list[ChildSpec] = []
    # The start does not wait for these.
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
    served, background, entities = _name_children(options)
    names = [*entities, *served, *background, SUPERVISOR]
    freezes = read_settings(FreezeSettings, variables, process=SUPERVISOR)
    last = directory.read_installation()
    server_ports, metrics_ports = _choose_ports(directory, last, len(names), has_nats=options.has_nats)
    ports = dict(zip(names, metrics_ports, strict=True))
    servers = _describe_servers(options, variables, directory, last, secrets, server_ports, freezes)
    environment = {
        **_build_environment(variables, options, listeners, servers, secrets),
        **_list_sample_variables(variables, options, listeners),
        "ADLOOM_SPOOL_DIR": str(locate_spool(variables, directory)),
        "ADLOOM_ASSETS_URL": variables.get("ADLOOM_ASSETS_URL")
        or write_folder_url(directory.path / FOLDER_NAME),
    }
    delivery, control = read_delivery_settings(environment), read_control_settings(environment)
    prepare_delivery(delivery)
    for read in (read_worker_settings, read_crawler_settings, read_classifier_settings):
        read(environment)
    written = (delivery.spool_directory, make_files_folder(delivery.assets_url))
    user = choose_owner_of(variables, directory.path, [one for one in written if one is not None])
    working = describe_background_children(
        background, environment=environment, metrics_ports=[ports[one] for one in background], freezes=freezes
    )
    return UpPlan(
        servers=servers,
        children=run_as(
            user.name, _list_children(listeners, options, environment, [ports[it] for it in served], freezes)
        ),
        entity_workers=run_as(
            user.name, describe_actor_workers(environment, {one: ports[one] for one in entities}, freezes)
        ),
        background=run_as(user.name, working),
        sample=_describe_sample(options, user, delivery.port, environment),
        installation=_describe_installation(
            options,
            listeners,
            clock.now(),
            servers,
            nats_port=server_ports.nats if servers.nats is not None else None,
            metrics_ports=ports,
            schema=last and last.schema,
        ),
        delivery_url=delivery.public_url,
        control_url=control.public_url,
        jwt_secret=control.jwt_secret,
        warnings=_list_warnings(options, control.public_url, user),
        telemetry=msgspec.structs.replace(
            delivery.telemetry, process=SUPERVISOR, metrics_port=ports[SUPERVISOR]
        ),
    )


def prepare_delivery(settings: DeliverySettings) -> None:
    """Make the folder of the spool, and see whether each child can open what it will; SettingsError if not."""
    make_spool_folder(settings)
    open_countries(settings.geoip_file)


class ServerPorts(NamedTuple):
    """Ports that the servers would have."""

    postgres: int
    valkey: int
    nats: int | None


def _choose_ports(
    directory: DataDirectory, last: Installation | None, count: int, *, has_nats: bool
) -> tuple[ServerPorts, list[int]]:
    """Choose the ports of the servers, and of the metrics of so many processes."""
    postgres, valkey, *metrics = choose_ports(
        [
            last and last.postgres_port,
            last and last.valkey_port,
            *(None for _ in range(count)),
            *([last and last.nats_port] if has_nats else ()),
        ],
        first=choose_first_port(directory.path),
        is_taken=lambda port: is_taken(LOOPBACK, port),
    )
    return ServerPorts(postgres, valkey, metrics.pop() if has_nats else None), metrics


def _describe_servers(  # noqa: PLR0913, PLR0917 - what is known where
    options: UpOptions,
    variables: Mapping[str, str],
    directory: DataDirectory,
    last: Installation | None,
    secrets: Secrets,
    ports: ServerPorts,
    freezes: FreezeSettings,
) -> Servers:
    given = (ports.postgres, ports.valkey) if options.has_server_ports else (None, None)
    postgres, valkey = _place_servers(variables, directory, last, given)
    servers = describe_servers(
        variables,
        directory.path,
        secrets,
        postgres=postgres,
        valkey=valkey,
        nats_port=ports.nats,
        frozen_seconds=freezes.server_seconds,
    )
    if options.entity_workers and servers.nats_url is None:
        raise SettingsError("--entity-workers needs NATS: add --nats, or set ADLOOM_NATS_URL.")
    return servers


def _describe_installation(  # noqa: PLR0913 - what is known where
    options: UpOptions,
    listeners: Listeners,
    started_at: datetime,
    servers: Servers,
    *,
    nats_port: int | None,
    metrics_ports: dict[str, int],
    schema: str | None,
) -> Installation:
    return Installation(
        version=VERSION,
        pid=os.getpid(),
        started_at=started_at,
        host=options.host,
        control_host=options.control_host,
        delivery_port=get_port(listeners.delivery[0]),
        control_port=get_port(listeners.control),
        worker_port=get_port(listeners.worker),
        postgres_socket_dir=servers.postgres_place.socket_dir,
        valkey_socket_dir=servers.valkey_place.socket_dir,
        postgres_port=servers.postgres_place.port,
        valkey_port=servers.valkey_place.port,
        nats_port=nats_port,
        metrics_ports=metrics_ports,
        schema=schema,
    )


def _name_children(options: UpOptions) -> tuple[list[str], list[str], list[str]]:
    """Name the processes that answer requests, those in the background, and those with nothing but actors."""
    crawlers = [CRAWLER] if options.has_crawler else []
    background = [*crawlers, *(f"{CLASSIFIER}-{number}" for number in range(1, options.classifiers + 1))]
    return (
        [
            *(f"delivery-{number}" for number in range(1, options.workers + 1)),
            "control",
            WORKER,
        ],
        background,
        [f"{WORKER}-{number}" for number in range(1, options.entity_workers + 1)],
    )


def _describe_sample(
    options: UpOptions, user: ChildUser, port: int, environment: Mapping[str, str]
) -> ChildSpec | None:
    if options.is_empty:
        return None
    child = build_sample_child(options.data_directory, host=options.host, port=port, environment=environment)
    return run_as(user.name, [child])[0]


def _place_servers(
    variables: Mapping[str, str],
    directory: DataDirectory,
    last: Installation | None,
    ports: tuple[int | None, int | None],
) -> list[Listening]:
    if variables.get("DATABASE_URL") and variables.get("REDIS_URL"):
        return [Listening(), Listening()]
    before = last and (last.postgres_socket_dir or last.valkey_socket_dir)
    folder = make_socket_folder(
        directory.path, find_unprivileged_user(), last=Path(before) if before else None
    )
    return [Listening(socket_dir=str(folder), port=port) for port in ports]


def _place_redis_password(variables: Mapping[str, str]) -> Mapping[str, str]:
    if variables.get("REDIS_PASSWORD") and not variables.get("REDIS_URL"):
        raise SettingsError(
            "REDIS_PASSWORD is set and REDIS_URL is not: the embedded Valkey has a password of its own."
            " Set REDIS_URL to your server, or take REDIS_PASSWORD out of the environment."
        )
    return add_redis_password(variables)


def _list_warnings(options: UpOptions, control_url: str, user: ChildUser) -> list[str]:
    warnings: list[str] = []
    if not is_this_machine(options.control_host) and not control_url.startswith("https://"):
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


def _build_environment(
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
        **({} if servers.nats_url is None else {"ADLOOM_NATS_URL": servers.nats_url}),
        "ADLOOM_DELIVERY_HOST": options.host,
        "ADLOOM_DELIVERY_PORT": str(get_port(listeners.delivery[0])),
        "ADLOOM_CONTROL_HOST": options.control_host,
        "ADLOOM_CONTROL_PORT": str(get_port(listeners.control)),
        "ADLOOM_WORKER_HOST": options.control_host,
        "WORKER_PORT": str(get_port(listeners.worker)),
        # Any free port, unless the user wants to watch its health.
        "ADLOOM_CRAWLER_PORT": variables.get("ADLOOM_CRAWLER_PORT") or "0",
        "ADLOOM_CLASSIFIER_PORT": (options.classifiers == 1 and variables.get("ADLOOM_CLASSIFIER_PORT"))
        or "0",
    }


def _list_sample_variables(
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


def _list_children(
    listeners: Listeners,
    options: UpOptions,
    environment: Mapping[str, str],
    metrics_ports: list[int],
    freezes: FreezeSettings,
) -> list[ChildSpec]:
    *delivery_metrics, control_metrics, worker_metrics = metrics_ports
    host, control_host = options.host, options.control_host
    control = describe_child(
        "control", listeners.control, control_metrics, host=control_host, environment=environment
    )
    if options.entity_workers:
        environment = {**environment, "ADLOOM_WORKER_ROLES": OTHER_ROLES}
    worker = msgspec.structs.replace(
        describe_child(WORKER, listeners.worker, worker_metrics, host=control_host, environment=environment),
        stop_seconds_max=WORKER_STOP_SECONDS_MAX,
        outlives_seconds_max=WORKER_OUTLIVES_SECONDS_MAX,
    )
    return [
        *describe_delivery_children(
            listeners.delivery,
            host=host,
            environment=environment,
            metrics_ports=delivery_metrics,
            freezes=freezes,
        ),
        *watch_others([control, worker], freezes),
    ]
