"""`adloom bench events`: how many events per second are durably accepted, and how soon they are counted.

All on one machine: the load generator, delivery, Valkey with `appendfsync always`, the worker and PostgreSQL.
"""

import json
import time
from typing import Annotated, Final

import msgspec
import typer

from adloom.core.clock import SystemClock
from bench.figures import EVENT, BenchTable, show
from bench.load import NO_OP, SERIAL, BenchSubject, Effort, Sample, Target, take_sample
from bench.processes import CpuMeter, LoadError, ShowStatus, find_descendants
from bench.product import Product, run_product

BATCH: Final = "batch"
TOKEN: Final = "trackingToken"  # noqa: S105 - the name of a field
EVENTS_A_BATCH: Final = 50
CATCH_UP_SECONDS_MAX: Final = 120.0
LOOK_SECONDS: Final = 0.1
# Other processes that work on events, by a word of their command lines.
OTHERS: Final = {"worker": "adloom.app.worker", "Valkey": "valkey-server", "PostgreSQL": "postgres"}


class EventsOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one load."""

    sample: Sample
    events: int
    others_seconds: list[float]
    caught_up_seconds: float | None = None

    @property
    def micros(self) -> float:
        """CPU of delivery an event, or a request without events."""
        return self.sample.cpu_seconds / (self.events or self.sample.load.requests) * 1e6


def main(
    *,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="Length of each load.")] = 10.0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Delivery processes.")] = 2,
    connections: Annotated[int, typer.Option(min=1, max=1_000, help="Open connections.")] = 64,
) -> None:
    """Send no-ops, single events and batches to a temporary product, and wait until all are counted."""

    def measure(say: ShowStatus) -> BenchTable:
        outcomes: list[EventsOutcome] = []
        with run_product(workers=workers) as product:
            for target, events in _build_targets(product):
                say(f"loading {target.name}")
                effort = Effort(connections=connections, seconds=seconds, serial_prefix=f"{target.name}-")
                outcomes.append(_measure(product, target, events, effort))
        title = f"{seconds:g} s each, {workers} delivery processes, {connections} connections"
        return _tabulate(outcomes, title)

    show(measure, width=110)


def _build_targets(product: Product) -> list[tuple[Target, int]]:
    """Return the targets, each with its number of events per request."""
    # Without the token: all events of one offer are one, whatever their names.
    impression = {name: value for name, value in json.loads(product.impression).items() if name != TOKEN}
    event = {"type": "impression", **impression}
    events = [{**event, "correlationId": f"{SERIAL}-{number}"} for number in range(EVENTS_A_BATCH)]
    batch = json.dumps({"events": events}, separators=(",", ":"))
    path = "/banners/events"
    return [
        (Target(name=NO_OP, port=product.port, path="/health/live"), 0),
        (Target(name=EVENT, port=product.port, path=f"{path}/impression", body=json.dumps(impression)), 1),
        (Target(name=BATCH, port=product.port, path=f"{path}/batch", body=batch), EVENTS_A_BATCH),
    ]


def _measure(product: Product, target: Target, events: int, effort: Effort) -> EventsOutcome:
    counted_before = count_impressions(product)
    others = [CpuMeter(find_descendants(product.pid, word)) for word in OTHERS.values()]
    sample = take_sample(BenchSubject(target=target, pids=product.delivery_pids), effort)
    accepted = (sample.load.requests - sample.load.errors) * events
    # Answers after the generator stopped listening are counted too, so there may be more.
    caught_up = _wait_until_counted(product, counted_before + accepted) if events else None
    return EventsOutcome(
        sample=sample,
        events=accepted,
        others_seconds=[other.read_seconds() for other in others],
        caught_up_seconds=caught_up,
    )


def count_impressions(product: Product) -> int:
    # If midnight passes meanwhile, run the bench again.
    day = SystemClock().now().date()
    return product.ask_control(f"/admin/stats/banners?from={day}&to={day}")["totals"]["impressions"]


def _wait_until_counted(product: Product, least: int) -> float:
    """Wait until all events are counted; return the seconds since the load ended."""
    ended = time.monotonic()
    while time.monotonic() < ended + CATCH_UP_SECONDS_MAX:
        if count_impressions(product) >= least:
            return time.monotonic() - ended
        time.sleep(LOOK_SECONDS)
    raise LoadError(f"Not all of {least} events were counted within {CATCH_UP_SECONDS_MAX:.0f} s.")


def _tabulate(outcomes: list[EventsOutcome], title: str) -> BenchTable:
    headings = ["target", "events/s", "requests/s", "p99 ms", "CPU µs an event", "to no-op", *OTHERS]
    rows: list[list[str]] = []
    for each in outcomes:
        load = each.sample.load
        units = each.events or load.requests
        rows.append(
            [
                each.sample.target,
                f"{each.events / load.seconds:,.0f}" if each.events else "",
                f"{load.requests / load.seconds:,.0f}",
                f"{load.p99_micros / 1_000:.1f}",
                f"{each.micros:.1f}",
                f"{each.micros / outcomes[0].micros:.2f}",
                *(f"{seconds / units * 1e6:.1f}" for seconds in each.others_seconds),
                "" if each.caught_up_seconds is None else f"{each.caught_up_seconds:.1f}",
            ]
        )
    return BenchTable(title=title, headings=[*headings, "counted after s"], rows=rows)
