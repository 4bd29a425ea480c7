"""`adloom up`: the whole product on one machine; `adloom serve`: the delivery plane alone."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
import structlog

from adloom.app.listeners import get_port, listen
from adloom.app.progress import StepProgress
from adloom.app.up.children import describe_delivery_children
from adloom.app.up.disk import make_reserve, register_disk, start_with_room, watch_disk
from adloom.app.up.first_log_in import (
    FirstLogIn,
    forget_first_password,
    prepare_first_log_in,
    print_first_log_in,
)
from adloom.app.up.plan import UpOptions, UpPlan, make_plan, open_listeners, prepare_delivery
from adloom.app.up.sample import FILL, GIVE, is_catalog_untouched, is_loaded, read_manifest
from adloom.app.up.schema_upgrade import prepare_upgrade
from adloom.app.up.watching import register_children, report_frozen
from adloom.core.clock import Clock, SystemClock
from adloom.core.errors import describe_error
from adloom.core.ids import SystemIds
from adloom.runtime.embedded.servers import Servers
from adloom.runtime.embedded.sockets import remove_socket_folder
from adloom.runtime.installation import DataDirectory, Secrets, make_secrets
from adloom.runtime.ports import format_url_host
from adloom.runtime.postgres import open_pool
from adloom.runtime.process.tuning import give_memory_back
from adloom.runtime.schema import read_newest_revision, upgrade_schema
from adloom.runtime.settings import read_delivery_settings, read_settings
from adloom.runtime.supervisor.child import StartError
from adloom.runtime.supervisor.program import ProgramFailedError, Start, make_our_program
from adloom.runtime.supervisor.program import run as run_program
from adloom.runtime.supervisor.start_gate import StartGate
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from adloom.runtime.supervisor.watch import FreezeSettings
from adloom.runtime.telemetry.logs import configure_logs
from adloom.runtime.telemetry.metrics import serve_metrics
from adloom.runtime.valkey import VALKEY_AWAY, open_valkey
from adloom.sample.manifest import State

SAMPLE_PATH = "/sample"
SHOP_PATH = "/sample/shop"
CONSOLE_PATH = "/console"
POLL_SECONDS = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def run(options: UpOptions, variables: Mapping[str, str], start: Start) -> None:
    """Run everything until a signal asks to stop."""
    if sys.stderr.isatty():
        # On a terminal only problems are logged: a line per request would bury our own output.
        variables = {"ADLOOM_LOG_LEVEL": "warning", **variables}
    progress = StepProgress()
    clock = SystemClock()
    directory = DataDirectory(options.data_directory)
    directory.make()
    with directory.lock(), contextlib.closing(StartGate()) as gate, contextlib.ExitStack() as closing:
        listeners = open_listeners(options, closing)
        secrets = _ensure_secrets(directory)
        plan = make_plan(options, variables, listeners, secrets, clock)
        configure_logs(plan.telemetry)
        reserve = make_reserve(variables, directory.path, plan.servers)
        reserve.keep()
        plan = msgspec.structs.replace(plan, servers=start_with_room(plan.servers, reserve))
        directory.write_installation(plan.installation)

        async def work(supervisor: Supervisor) -> None:
            register_children(metrics, supervisor)
            register_disk(metrics, reserve)
            # Closed first when the work ends: connections that come while we stop are refused, not kept waiting.
            with closing:
                first = await _start(plan, supervisor, gate, directory, start, progress=progress, clock=clock)
                if not options.is_empty:
                    await load_at_start(plan, directory, progress, start)
                warnings = [*plan.warnings, *await list_valkey_warnings(plan.servers)]
                _print_summary(plan, options, first, progress, warnings)
                await supervisor.start(plan.background)
                give_memory_back()  # 9 MB where modules had to be compiled; it does little from now on.
                async with asyncio.TaskGroup() as group:
                    group.create_task(watch_disk(supervisor, reserve))
                    group.create_task(report_frozen(supervisor, plan.servers.redis_url, clock))
                    group.create_task(forget_first_password(plan.servers.database_url, directory))
                    group.create_task(give_sample_pages(plan, directory, start))
                    await run_sample_visitors(plan, directory, supervisor)

        try:
            with serve_metrics(plan.telemetry) as metrics:
                asyncio.run(run_supervised(work, start))
        finally:
            for place in (plan.servers.postgres_place, plan.servers.valkey_place):
                remove_socket_folder(place)
    progress.print_line("adloom stopped")


async def _start(  # noqa: PLR0913 - what `run` has
    plan: UpPlan,
    supervisor: Supervisor,
    gate: StartGate,
    directory: DataDirectory,
    start: Start,
    *,
    progress: StepProgress,
    clock: Clock,
) -> FirstLogIn:
    """Start all parts, those that take long to load at once; return how the first admin logs in."""
    servers = plan.servers
    own = {"PostgreSQL": servers.postgres, "Valkey": servers.valkey, "NATS": servers.nats}
    stages = {title: supervisor.launch([child]) for title, child in own.items() if child is not None}
    # First, so that they stop last: what delivery returns as it ends goes to them.
    entity_workers = supervisor.launch(gate.hold(plan.entity_workers))
    children = supervisor.launch(gate.hold(plan.children))
    is_upgrade_expected = plan.installation.schema != read_newest_revision()
    async with prepare_upgrade(servers.database_url, start, is_expected=is_upgrade_expected) as upgrade:
        for title, stage in stages.items():
            with progress.step(title):
                await supervisor.wait_started(stage)
        with progress.step("Database schema"):
            revision = await upgrade_schema(servers.database_url, upgrade, say=progress.print_line)
            directory.write_installation(msgspec.structs.replace(plan.installation, schema=revision))
            async with open_pool(servers.database_url, size_max=1) as pool:
                first = await prepare_first_log_in(
                    pool, directory, url=plan.control_url, now=clock.now(), ids=SystemIds()
                )
    gate.open()
    await supervisor.wait_started(entity_workers)
    with progress.step("Delivery, control, worker"):
        await supervisor.wait_started(children)
    return first


def _ensure_secrets(directory: DataDirectory) -> Secrets:
    secrets = directory.read_secrets()
    if secrets is None:
        secrets = make_secrets()
        directory.write_secrets(secrets)
    elif not secrets.sealing_secret or not secrets.nats_password:
        made = make_secrets()
        secrets = msgspec.structs.replace(
            secrets,
            sealing_secret=secrets.sealing_secret or made.sealing_secret,
            nats_password=secrets.nats_password or made.nats_password,
        )
        directory.write_secrets(secrets)
    return secrets


async def list_valkey_warnings(servers: Servers) -> list[str]:
    """Say that a Valkey of the operator's does not answer: delivery starts without it."""
    if servers.valkey is not None:
        return []  # Ours has answered.
    async with open_valkey(servers.redis_url) as valkey:
        try:
            await valkey.ping()
        except VALKEY_AWAY as error:
            why = describe_error(error).rstrip(".")
            return [f"Valkey does not answer: {why}. See that it runs and that REDIS_URL is right."]
    return []


def _print_summary(
    plan: UpPlan, options: UpOptions, first: FirstLogIn, progress: StepProgress, warnings: Sequence[str]
) -> None:
    """Print where everything is, and for a new installation where to begin."""
    directory = DataDirectory(options.data_directory)
    width = max(len(plan.delivery_url), len(plan.control_url)) + len(SHOP_PATH)
    progress.print_line()
    progress.print_fact("console", f"{plan.control_url}{CONSOLE_PATH}".ljust(width), "where people work")
    if not options.is_empty and is_loaded(directory):
        progress.print_fact(
            "sample", f"{plan.delivery_url}{SAMPLE_PATH}".ljust(width), "a magazine with ads in it"
        )
        progress.print_fact("shop", f"{plan.delivery_url}{SHOP_PATH}".ljust(width), "who advertises there")
    progress.print_fact("delivery", plan.delivery_url.ljust(width), "where pages ask for ads")
    progress.print_fact("control", plan.control_url.ljust(width), "the admin API")
    progress.print_fact("guide", "docs/guide/README.md".ljust(width), "what else it can do")
    progress.print_fact("data", str(directory.path))
    progress.print_line()
    print_first_log_in(first, directory, progress)
    for warning in warnings:
        progress.print_line()
        progress.print_line(f"  WARNING: {warning}")
    progress.print_line()
    progress.print_line("  Ctrl-C stops everything; the next start finds its data again.")
    progress.print_line()
    progress.print_ready(f"adloom ready: delivery {plan.delivery_url}, control {plan.control_url}")


async def load_at_start(plan: UpPlan, directory: DataDirectory, progress: StepProgress, start: Start) -> None:
    """Load the sample at the first start, or again if an earlier load was interrupted."""
    manifest = read_manifest(directory)
    is_broken_off = manifest is not None and manifest.state is State.LOADING
    if not (is_broken_off or await is_catalog_untouched(plan.servers.database_url)):
        return
    with progress.step("Sample data"):
        try:
            await _run_on_sample(FILL, plan, directory, start)
        except (OSError, ProgramFailedError) as error:
            raise StartError(f"The sample cannot be loaded: {error} Start without it: --empty.") from error


async def give_sample_pages(plan: UpPlan, directory: DataDirectory, start: Start) -> None:
    """Make the pages of the sample known, after the start; where that fails, the next start does it."""
    if plan.sample is not None and is_loaded(directory):
        try:
            await _run_on_sample(GIVE, plan, directory, start)
        except (OSError, ProgramFailedError) as error:
            log.warning("sample_pages_not_given", error=str(error))


async def _run_on_sample(
    action: Literal["fill", "give"], plan: UpPlan, directory: DataDirectory, start: Start
) -> None:
    """Load the sample, or make its pages known; raises ProgramFailedError with the reason where that fails."""
    # Not the public address of control, which may be a proxy's that does not run yet.
    control = plan.installation
    program = make_our_program(
        "sample-data",
        "adloom.app.sample_data",
        action,
        str(directory.path),
        f"http://{format_url_host(control.control_host or control.host)}:{control.control_port}",
        plan.delivery_url,
        environment={**os.environ, "JWT_SECRET": plan.jwt_secret},
    )
    await run_program(program, seconds_max=None, start=start)


async def run_sample_visitors(plan: UpPlan, directory: DataDirectory, supervisor: Supervisor) -> None:
    """Run simulated visitors while there is a sample."""
    while plan.sample is not None:
        while not is_loaded(directory):  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(POLL_SECONDS)
        await supervisor.start([plan.sample])
        await supervisor.wait_finished(plan.sample.program.name)
    await asyncio.Event().wait()


def run_delivery(variables: Mapping[str, str], start: Start, *, host: str, port: int, workers: int) -> None:
    """Run the delivery plane alone, as many processes as asked for, until a signal asks to stop."""
    environment = {**variables, "ADLOOM_DELIVERY_HOST": host, "ADLOOM_DELIVERY_PORT": str(port)}
    settings = read_delivery_settings(environment)
    freezes = read_settings(FreezeSettings, environment, process="serve")
    prepare_delivery(settings)
    environment["ADLOOM_SPOOL_DIR"] = str(settings.spool_directory)  # Whole: children run elsewhere.
    first = settings.telemetry.metrics_port
    # Each process has metrics of its own, so they take the port that was given and those after it; we take the last.
    *metrics_ports, own_port = [first and first + number for number in range(workers + 1)]
    telemetry = msgspec.structs.replace(settings.telemetry, process="serve", metrics_port=own_port)
    configure_logs(telemetry)
    with (
        listen(host, port, count=workers, flag="--port") as listeners,
        serve_metrics(telemetry) as metrics,
    ):
        environment["ADLOOM_DELIVERY_PORT"] = str(get_port(listeners[0]))

        async def work(supervisor: Supervisor) -> None:
            register_children(metrics, supervisor)
            await supervisor.start(
                describe_delivery_children(
                    listeners,
                    host=host,
                    environment=environment,
                    metrics_ports=metrics_ports,
                    freezes=freezes,
                )
            )
            StepProgress().print_ready(
                f"adloom ready: delivery {read_delivery_settings(environment).public_url}"
            )
            await report_frozen(supervisor, settings.services.redis_url, SystemClock())

        asyncio.run(run_supervised(work, start))
