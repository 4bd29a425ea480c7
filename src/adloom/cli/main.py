"""The commands. What each needs is imported when it runs: `adloom token` must not wait for a web framework."""

# ruff: noqa: PLC0415 - see above

import asyncio
import json
import os
import sys
from datetime import date
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from adloom import VERSION
from adloom.bidding.window import BidStrategy
from adloom.cli import backup, jobs, ledger, options, sample, token, where
from adloom.cli.capacity.command import capacity
from adloom.cli.dotenv_file import read_dotenv
from adloom.cli.learn import commands as learn
from adloom.cli.options import DataDir, OnOff, resolve_data_directory, resolve_database_url, resolve_redis_url
from adloom.core.errors import CommandError, find_command_error
from adloom.runtime.process.tuning import open_standard_streams

app = typer.Typer(
    name="adloom",
    help="A self-hosted ad platform. Begin with `adloom up`.",
    add_completion=False,
    **options.GROUP,
)
app.add_typer(ledger.app)
app.add_typer(jobs.app)
app.add_typer(sample.app)
app.add_typer(token.app)
app.add_typer(learn.app)
app.command()(backup.backup)
app.command()(backup.restore)
app.command()(where.where)
app.command()(capacity)


def _print_version(is_asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if is_asked:
        typer.echo(f"adloom {VERSION}")
        raise typer.Exit


@app.callback()
def take_options(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


PORT_MAX = 65_535
WORKERS_MAX = 64
PASSED_ON: dict[str, Any] = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": list[str](),
}

# The second is what other programs call it.
CONTROL_PORT_NAMES = ["ADLOOM_CONTROL_PORT", "API_PORT"]
Workers = Annotated[int, typer.Option(min=1, max=WORKERS_MAX, help="Delivery processes.")]
FirstDay = Annotated[
    date, typer.Option("--from", parser=options.parse_day, metavar="DAY", help="The first day.")
]
LastDay = Annotated[date, typer.Option("--to", parser=options.parse_day, metavar="DAY", help="The last day.")]


def main() -> None:
    """Run a command; errors that the user can fix are printed in one line."""
    open_standard_streams()
    try:
        read_dotenv(sys.argv[1:])
        if sys.argv[1:2] == ["up"] and "--help" not in sys.argv:
            from adloom.app.up.fork import start_for_up

            start_for_up()  # It loads what takes longest, while the options are parsed and the servers start.
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except (CommandError, ExceptionGroup) as error:
        if (known := find_command_error(error)) is None:
            raise
        typer.echo(f"adloom: {known}", err=True)
        sys.exit(1)


@app.command()
def up(  # noqa: PLR0913 - one for each option
    *,
    delivery_port: Annotated[
        int, typer.Option(min=0, max=PORT_MAX, envvar="ADLOOM_DELIVERY_PORT", help="Pages ask here for ads.")
    ] = 8080,
    control_port: Annotated[
        int, typer.Option(min=0, max=PORT_MAX, envvar=CONTROL_PORT_NAMES, help="The admin API.")
    ] = 8090,
    worker_port: Annotated[
        int, typer.Option(min=0, max=PORT_MAX, envvar="WORKER_PORT", help="The worker's health.")
    ] = 3001,
    data_dir: DataDir = None,
    empty: Annotated[bool, typer.Option("--empty", help="Start without sample data.")] = False,
    workers: Workers = 1,
    classifiers: Annotated[
        int, typer.Option(min=0, max=16, help="How many processes say what pages are about.")
    ] = 1,
    crawler: Annotated[bool, typer.Option(help="Whether a process here reads the pages of sites.")] = True,
    host: Annotated[str, typer.Option(help="The address that delivery listens on.")] = "127.0.0.1",
    control_host: Annotated[
        str, typer.Option(envvar="ADLOOM_CONTROL_HOST", help="The address of the admin API and the worker.")
    ] = "127.0.0.1",
    server_ports: Annotated[
        bool,
        typer.Option(
            envvar="ADLOOM_SERVER_PORTS", help="PostgreSQL and Valkey also listen on ports of loopback."
        ),
    ] = False,
    nats: Annotated[
        bool, typer.Option("--nats", help="Start NATS too: several workers can share campaigns and sites.")
    ] = False,
    entity_workers: Annotated[
        int, typer.Option(min=0, max=WORKERS_MAX, help="With NATS: workers that run actors and nothing else.")
    ] = 0,
) -> None:
    """Run everything on this machine, embedded servers included, until Ctrl-C."""
    from adloom.app.up import fork, plan
    from adloom.app.up import run as command

    chosen = plan.UpOptions(
        data_directory=resolve_data_directory(data_dir).path,
        host=host,
        control_host=control_host,
        delivery_port=delivery_port,
        control_port=control_port,
        worker_port=worker_port,
        workers=workers,
        classifiers=classifiers,
        has_crawler=crawler,
        has_server_ports=server_ports,
        has_nats=nats,
        entity_workers=entity_workers,
        is_empty=empty,
    )
    with fork.start_for_up() as server:
        command.run(chosen, os.environ, server.start)


@app.command()
def serve(
    *,
    workers: Workers = 1,
    host: Annotated[str, typer.Option(envvar="ADLOOM_DELIVERY_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=PORT_MAX, envvar="ADLOOM_DELIVERY_PORT")] = 8080,
) -> None:
    """Run the delivery plane; it needs DATABASE_URL, REDIS_URL and ADLOOM_TOKEN_SECRET."""
    from adloom.app.up.fork import start_for_serve

    with start_for_serve() as server:
        from adloom.app.up.run import run_delivery

        run_delivery(os.environ, server.start, host=host, port=port, workers=workers)


@app.command()
def control(
    *,
    host: Annotated[str, typer.Option(envvar="ADLOOM_CONTROL_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=PORT_MAX, envvar=CONTROL_PORT_NAMES)] = 8090,
) -> None:
    """Run the control plane; it needs DATABASE_URL, REDIS_URL and JWT_SECRET."""
    os.environ.update({"ADLOOM_CONTROL_HOST": host, "ADLOOM_CONTROL_PORT": str(port)})
    from adloom.app import control as command

    command.main()


@app.command()
def worker(
    *,
    host: Annotated[str, typer.Option(envvar="ADLOOM_WORKER_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=PORT_MAX, envvar="WORKER_PORT")] = 3001,
    nats: Annotated[
        str | None,
        typer.Option(
            envvar="ADLOOM_NATS_URL", metavar="URL,URL", help="Share campaigns and sites with others."
        ),
    ] = None,
    roles: Annotated[
        str | None,
        typer.Option(
            envvar="ADLOOM_WORKER_ROLES", help="Some of entity,singleton,projections,jobs; all, if not given."
        ),
    ] = None,
) -> None:
    """Run the projections, the actors and the jobs; it needs DATABASE_URL and REDIS_URL."""
    os.environ.update(
        {
            "ADLOOM_WORKER_HOST": host,
            "WORKER_PORT": str(port),
            "ADLOOM_NATS_URL": nats or "",
            "ADLOOM_WORKER_ROLES": roles or "",
        }
    )
    from adloom.app import worker as command

    command.main()


@app.command()
def crawler(
    *,
    host: Annotated[str, typer.Option(envvar="ADLOOM_CRAWLER_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=PORT_MAX, envvar="ADLOOM_CRAWLER_PORT")] = 3002,
) -> None:
    """Crawl sites; it needs DATABASE_URL and REDIS_URL, and a classifier that runs."""
    os.environ.update({"ADLOOM_CRAWLER_HOST": host, "ADLOOM_CRAWLER_PORT": str(port)})
    from adloom.app import crawler as command

    command.main()


@app.command()
def classifier(
    *,
    host: Annotated[str, typer.Option(envvar="ADLOOM_CLASSIFIER_HOST")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=PORT_MAX, envvar="ADLOOM_CLASSIFIER_PORT")] = 3003,
) -> None:
    """Say what pages are about; it needs DATABASE_URL and REDIS_URL. Several share the work."""
    os.environ.update({"ADLOOM_CLASSIFIER_HOST": host, "ADLOOM_CLASSIFIER_PORT": str(port)})
    from adloom.app import classifier as command

    command.main()


@app.command()
def classify(
    source: Annotated[str, typer.Argument(metavar="URL|FILE|-", help="A page: HTML or plain text.")],
    *,
    is_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a page is about, and which phrases decided."""
    from adloom.cli import classify as command

    command.run(source, os.environ, is_json=is_json)


@app.command()
def bids(
    *,
    strategy: Annotated[BidStrategy, typer.Option(help="Who decides the multiplier.")],
    guard: Annotated[OnOff, typer.Option(help="Keep the cost per conversion at its target.")] = OnOff.ON,
    tolerance: Annotated[
        float, typer.Option(min=0, max=10, help="By how much of its budget a campaign may exceed its target.")
    ] = 0.0,
    weights: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="A fleet.weights of `adloom learn`, in place of the shipped one.",
        ),
    ] = None,
) -> None:
    """Answer a campaign's counters with a bid multiplier: one JSON object a line, in and out."""
    from adloom.runtime.process.tuning import use_one_thread

    use_one_thread()
    from adloom.bidding.shipped import build_nets, load_nets, read_shipped
    from adloom.bidding.window import BidRules
    from adloom.cli.bids import answer_lines

    rules = BidRules(has_guard=guard is OnOff.ON, tolerance=tolerance)
    nets = load_nets() if weights is None else build_nets(weights.read_bytes(), read_shipped("dqn"))
    for answer in answer_lines(sys.stdin.buffer, strategy, rules, nets):
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()


@app.command()
def migrate(*, data_dir: DataDir = None) -> None:
    """Bring the database to the newest schema: DATABASE_URL's, or that of a running installation."""
    from adloom.runtime.schema import upgrade_schema

    revision = asyncio.run(upgrade_schema(resolve_database_url(data_dir), say=typer.echo))
    typer.echo(f"The schema is at revision {revision}.")


@app.command()
def rollup(
    *,
    first: FirstDay,
    last: LastDay,
    data_dir: DataDir = None,
) -> None:
    """Recompute the daily statistics of some days, both included (UTC); the worker does so every night."""
    from rich.console import Console

    from adloom.cli import days
    from adloom.core.clock import SystemClock

    url, console = resolve_database_url(data_dir), Console(soft_wrap=True)
    asyncio.run(days.roll_up(url, first, last, SystemClock(), console))


@app.command()
def sync(
    *,
    first: FirstDay,
    last: LastDay,
    seller: Annotated[
        UUID | None, typer.Option(help="The advertiser whose ad accounts; all, if not given.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Have the worker fetch the statistics of ad accounts again for some days, both included."""
    from rich.console import Console

    from adloom.cli import days
    from adloom.core.clock import SystemClock
    from adloom.runtime.settings import Secret, Services

    services = Services(
        database_url=Secret(resolve_database_url(data_dir)), redis_url=Secret(resolve_redis_url(data_dir))
    )
    console, clock = Console(soft_wrap=True), SystemClock()
    asyncio.run(days.sync(services, first, last, clock=clock, console=console, seller_id=seller))


@app.command()
def openapi() -> None:
    """Print the whole API, of both listeners, as one OpenAPI document."""
    from adloom.app.control import build_openapi_document

    typer.echo(json.dumps(build_openapi_document(), indent=2, ensure_ascii=False))


@app.command()
def doctor(
    *,
    data_dir: DataDir = None,
    money: Annotated[
        bool, typer.Option("--money", help="Prove that the bill of a day is what was charged.")
    ] = False,
    day: Annotated[
        date | None,
        typer.Option(
            parser=options.parse_day, metavar="DAY", help="Which day, with --money; today, if not given."
        ),
    ] = None,
) -> None:
    """Check an installation, and say for each failure what to do."""
    from rich.console import Console

    from adloom.core.clock import SystemClock

    if money:
        from adloom.ops.checks.money import prove

        of_day = SystemClock().now().date() if day is None else day
        raise typer.Exit(0 if asyncio.run(prove(resolve_database_url(data_dir), of_day, Console())) else 1)
    if day is not None:
        raise typer.BadParameter("The day is that of --money.", param_hint="--day")
    from adloom.ops.doctor import examine, is_well, show

    findings = asyncio.run(examine(os.environ, resolve_data_directory(data_dir), SystemClock()))
    show(findings, Console())
    raise typer.Exit(0 if is_well(findings) else 1)


@app.command(context_settings=PASSED_ON)
def bench(context: typer.Context) -> None:
    """Measure what the fast routes cost, as ratios in one run. Needs a checkout."""
    _run_from_checkout("bench", context)


@app.command(context_settings=PASSED_ON)
def simulate(context: typer.Context) -> None:
    """Simulate on virtual time: `market` says what campaigns would have; `ledger`, `budgets` and `contextual` check the laws and need a checkout."""
    if context.args[:1] == ["market"]:
        from adloom.cli.simulate.commands import app as market

        market(context.args[1:], prog_name="adloom simulate market")
    _run_from_checkout("simulation", context)


def _run_from_checkout(package: str, context: typer.Context) -> None:
    """Run a package that is beside `src` in a checkout and not in the wheel."""
    root = Path(__file__).resolve().parents[3]
    if not (root / package / "__main__.py").is_file():
        sys.exit(f"adloom {context.info_name}: runs in a checkout of the sources only; {root} is none.")
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", package, *context.args]
    os.execve(sys.executable, command, environment)  # noqa: S606 - our own interpreter, no shell
