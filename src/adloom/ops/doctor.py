"""`adloom doctor`: runs every check on an installation, running or stopped, and prints what to do."""

import contextlib
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from adloom.core.clock import Clock
from adloom.events.log.spool.drain import locate_spool
from adloom.ops.attention.store import check_countries
from adloom.ops.checks import database, event_log, machine, money, processes, sync
from adloom.ops.checks.finding import Finding, FindingState, fail, warn_not_running
from adloom.runtime.embedded.servers import find_database_url, find_redis_url
from adloom.runtime.installation import DataDirectory, Installation, InstallationError
from adloom.runtime.ports import is_taken
from adloom.runtime.postgres import POSTGRES_AWAY, Connection
from adloom.runtime.schema import list_revisions
from adloom.runtime.settings import CONTROL_PORT, DELIVERY_PORT, WORKER_PORT
from adloom.runtime.telemetry.heartbeat import HeartbeatReader
from adloom.runtime.valkey import VALKEY_AWAY, Valkey, open_valkey

LOOPBACK = "127.0.0.1"
STYLES = {FindingState.OK: "green", FindingState.WARN: "yellow", FindingState.FAIL: "red"}


async def examine(variables: Mapping[str, str], directory: DataDirectory, clock: Clock) -> list[Finding]:
    """Run every check."""
    is_running = directory.read_holder_pid() is not None
    findings = [
        machine.check_python(),
        machine.check_running(directory),
        machine.check_folder(directory),
        machine.check_secrets(directory),
        machine.check_disk(directory),
    ]
    try:
        last = directory.read_installation()
    except InstallationError as error:
        return [*findings, fail("Installation", str(error), "run doctor as the user who started it")]
    findings.append(_check_ports(last, is_running=is_running))
    # An external server may run while we do not.
    database_url = _find_url(
        "PostgreSQL",
        lambda: find_database_url(variables, directory),
        may_run=is_running or bool(variables.get("DATABASE_URL")),
    )
    redis_url = _find_url(
        "Valkey",
        lambda: find_redis_url(variables, directory),
        may_run=is_running or bool(variables.get("REDIS_URL")),
    )
    async with contextlib.AsyncExitStack() as closing:
        connection = await _check_database(database_url, closing)
        valkey = await _check_valkey(redis_url, closing)
        if not isinstance(connection, Finding):
            findings += await _check_schema(connection, clock)
        else:
            findings.append(connection)
            if last is not None and last.schema is not None and not is_running:
                findings.append(database.judge_stopped_schema(last.schema, list_revisions()))
        findings += [valkey] if isinstance(valkey, Finding) else await event_log.check_server(valkey)
        has_ledger = not isinstance(valkey, Finding)
        folder = locate_spool(variables, directory)
        findings.append(event_log.check_spool(folder, has_ledger=has_ledger, now=clock.now()))
        if not isinstance(connection, Finding) and not isinstance(valkey, Finding):
            findings += await event_log.check_projections(find_database_url(variables, directory), valkey)
            findings.append(await check_countries(connection, HeartbeatReader(valkey), now=clock.now()))
        if not isinstance(valkey, Finding):
            findings.append(await money.check_owner(valkey))
            seen = await HeartbeatReader(valkey).list_processes(now=clock.now())
            findings += [processes.judge_peers(one) for one in seen if one.kind == "delivery"]
            findings += processes.judge_shards(seen)
            findings += [processes.judge_weights(one) for one in seen if one.kind == "worker"]
        if not isinstance(connection, Finding):
            findings.append(await money.check_money_ledger(connection, clock))
            findings += await sync.check_sync(connection, clock)
        version = None if isinstance(connection, Finding) else await database.read_catalog_version(connection)
    return [*findings, *await _check_processes(last if is_running else None, version)]


def _check_ports(last: Installation | None, *, is_running: bool) -> Finding:
    ports = {"delivery": DELIVERY_PORT, "control": CONTROL_PORT, "worker": WORKER_PORT}
    host = control_host = LOOPBACK
    if last is not None:
        ports = {"delivery": last.delivery_port, "control": last.control_port, "worker": last.worker_port}
        host, control_host = last.host, last.control_host or last.host
    return machine.check_ports(
        ports,
        is_running=is_running,
        is_taken=lambda port: is_taken(host if port == ports["delivery"] else control_host, port),
    )


def _find_url(name: str, find: Callable[[], str], *, may_run: bool) -> str | Finding:
    """Return where a server is, or report why that is not known."""
    if not may_run:
        return warn_not_running(name)
    try:
        return find()
    except InstallationError as error:
        return fail(name, str(error), "run doctor with the variables of `adloom up`")


async def _check_database(url: str | Finding, closing: contextlib.AsyncExitStack) -> "Connection | Finding":
    """Connect to the database, or report why not."""
    if isinstance(url, Finding):
        return url
    try:
        connection = await database.connect(url)
    except POSTGRES_AWAY as error:
        return database.report_unreachable(url, error)
    closing.push_async_callback(connection.close)
    return connection


async def _check_valkey(url: str | Finding, closing: contextlib.AsyncExitStack) -> "Valkey | Finding":
    """Connect to Valkey, or report why not."""
    if isinstance(url, Finding):
        return url
    valkey = await closing.enter_async_context(open_valkey(url))
    try:
        await valkey.ping()
    except VALKEY_AWAY as error:
        return event_log.report_unreachable(error)
    return valkey


async def _check_schema(connection: Connection, clock: Clock) -> list[Finding]:
    return [
        await database.check_version(connection),
        await database.check_clock(connection, clock),
        await database.check_schema(connection),
    ]


async def _check_processes(running: Installation | None, catalog_version: int | None) -> list[Finding]:
    if running is None:
        return [warn_not_running(name) for name in ("Delivery", "Control", "Worker", "Index")]
    host = running.control_host or running.host
    delivery, said = await processes.check_health(
        "Delivery", running.host, running.delivery_port, "/health/ready"
    )
    control, _ = await processes.check_health("Control", host, running.control_port, "/health/ready")
    worker, _ = await processes.check_health("Worker", host, running.worker_port, "/health")
    index = processes.judge_index(processes.parse_index(said), catalog_version=catalog_version)
    return [delivery, control, worker, index]


def show(findings: Sequence[Finding], console: Console) -> None:
    """Print every finding, with the remedy below those that are not OK; outside a terminal no line is broken."""
    if not console.is_terminal:
        width = max((len(finding.name) for finding in findings), default=0)
        for finding in findings:
            lines = [f"{finding.state.value:<4}  {finding.name:<{width}}  {finding.detail}"]
            lines += [f"{'':{width + 8}}→ {finding.remedy}"] if finding.remedy else []
            for line in lines:
                console.print(line, soft_wrap=True, markup=False, highlight=False)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        style = STYLES[finding.state]
        table.add_row(
            f"[{style}]{finding.state.value}[/{style}]", escape(finding.name), escape(finding.detail)
        )
        if finding.remedy:
            table.add_row("", "", f"[bold]→ {escape(finding.remedy)}[/bold]")
    console.print(table)


def is_well(findings: Sequence[Finding]) -> bool:
    """Whether nothing has failed."""
    return all(finding.state is not FindingState.FAIL for finding in findings)
