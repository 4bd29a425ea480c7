"""`python -m bench.events`: how many events per second are durably accepted, and how soon they are counted.

All on one machine: the load generator, delivery, Valkey with `appendfsync always`, the worker and PostgreSQL.
"""

import json
import time
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from adloom.core.clock import SystemClock
from bench.figures import EVENT, NO_OP
from bench.load import SERIAL, Effort, Load, LoadError, Target, run_wrk
from bench.processes import list_descendants, measure_usage, read_command_line
from bench.product import Product, run_product
from bench.rounds import ERROR_SHARE_MAX

BATCH: Final = "batch"
EVENTS_A_BATCH: Final = 50
CATCH_UP_SECONDS_MAX: Final = 120.0
LOOK_SECONDS: Final = 0.1
# Other processes that work on events, by a word of their command lines.
OTHERS: Final = {"worker": "adloom.app.worker", "Valkey": "valkey-server", "PostgreSQL": "postgres"}


class EventsOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one load."""

    target: str
    load: Load
    events: int
    delivery_seconds: float
    others_seconds: dict[str, float]
    caught_up_seconds: float | None = None


def main(
    *,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="Length of each load.")] = 10.0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Delivery processes.")] = 2,
    connections: Annotated[int, typer.Option(min=1, max=1_000, help="Open connections.")] = 64,
) -> None:
    """Send no-ops, single events and batches to a temporary product, and wait until all are counted."""
    console = Console()
    with console.status("starting the product") as status, run_product(workers=workers) as product:
        outcomes: list[EventsOutcome] = []
        for target, events in _build_targets(product):
            status.update(f"loading {target.name}")
            effort = Effort(connections=connections, seconds=seconds, serial_prefix=f"{target.name}-")
            outcomes.append(_measure(product, target, events, effort))
    _show(
        console,
        outcomes,
        title=f"{seconds:g} s each, {workers} delivery processes, {connections} connections",
    )


def _build_targets(product: Product) -> list[tuple[Target, int]]:
    """Return the targets, each with its number of events per request."""
    event = {"type": "impression", **json.loads(product.impression)}
    events = [{**event, "correlationId": f"{SERIAL}-{number}"} for number in range(EVENTS_A_BATCH)]
    return [
        (Target(name=NO_OP, port=product.port, path="/health/live"), 0),
        (
            Target(name=EVENT, port=product.port, path="/banners/events/impression", body=product.impression),
            1,
        ),
        (
            Target(
                name=BATCH,
                port=product.port,
                path="/banners/events/batch",
                body=json.dumps({"events": events}, separators=(",", ":")),
            ),
            EVENTS_A_BATCH,
        ),
    ]


def _measure(product: Product, target: Target, events: int, effort: Effort) -> EventsOutcome:
    others = {name: _find_pids(product, word) for name, word in OTHERS.items()}
    day = SystemClock().now().date()
    counted_before = product.admin.count_impressions(day)
    delivery_before = measure_usage(product.delivery_pids).cpu_seconds
    before = {name: measure_usage(pids).cpu_seconds for name, pids in others.items()}
    load = run_wrk(target, effort)
    ended = time.monotonic()
    if load.requests == 0 or load.errors > load.requests * ERROR_SHARE_MAX:
        raise LoadError(f"{target.name}: {load.errors} errors in {load.requests} requests.")
    delivery = measure_usage(product.delivery_pids).cpu_seconds - delivery_before
    # Answers after the generator stopped listening are counted too, so there may be more.
    least = counted_before + (load.requests - load.errors) * events
    caught_up = _wait_until_counted(product, least, ended) if events else None
    return EventsOutcome(
        target=target.name,
        load=load,
        events=(load.requests - load.errors) * events,
        delivery_seconds=delivery,
        others_seconds={
            name: measure_usage(pids).cpu_seconds - before[name] for name, pids in others.items()
        },
        caught_up_seconds=caught_up,
    )


def _find_pids(product: Product, word: str) -> list[int]:
    return [
        pid
        for pid in list_descendants(product.pid)
        if any(word in part for part in read_command_line(pid)[:4])
    ]


def _wait_until_counted(product: Product, least: int, ended: float) -> float:
    """Wait until all events are counted; return the seconds since the load ended."""
    while time.monotonic() < ended + CATCH_UP_SECONDS_MAX:
        # Midnight may pass meanwhile: then run the bench again.
        if product.admin.count_impressions(SystemClock().now().date()) >= least:
            return time.monotonic() - ended
        time.sleep(LOOK_SECONDS)
    raise LoadError(f"Not all of {least} events were counted within {CATCH_UP_SECONDS_MAX:.0f} s.")


def _show(console: Console, outcomes: list[EventsOutcome], *, title: str) -> None:
    table = Table(title=title, title_justify="left", title_style="dim")
    table.add_column("target", no_wrap=True)
    for heading in (
        "events/s",
        "requests/s",
        "p99 ms",
        "CPU µs an event",
        "to no-op",
        *OTHERS,
        "counted after s",
    ):
        table.add_column(heading, justify="right")
    no_op = _compute_delivery_micros(outcomes[0])
    for each in outcomes:
        micros = _compute_delivery_micros(each)
        units = each.events or each.load.requests
        table.add_row(
            each.target,
            f"{each.events / each.load.seconds:,.0f}" if each.events else "",
            f"{each.load.requests / each.load.seconds:,.0f}",
            f"{each.load.p99_micros / 1_000:.1f}",
            f"{micros:.1f}",
            f"{micros / no_op:.2f}",
            *(f"{seconds / units * 1e6:.1f}" for seconds in each.others_seconds.values()),
            "" if each.caught_up_seconds is None else f"{each.caught_up_seconds:.1f}",
        )
    console.print(table)


def _compute_delivery_micros(outcome: EventsOutcome) -> float:
    return outcome.delivery_seconds / (outcome.events or outcome.load.requests) * 1e6


if __name__ == "__main__":
    typer.run(main)
