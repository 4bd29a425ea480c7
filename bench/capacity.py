"""Measures the coefficients of the capacity model, one part of the product after another, and writes them to a file."""

import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Annotated, Final

import msgspec
import typer
from rich.console import Console

from adloom import VERSION
from adloom.core.clock import SystemClock
from adloom.ops.capacity.coefficients_file import find_own_file
from adloom.ops.capacity.demand import Coefficients
from bench.budgets.charges import measure_charges, measure_leasing
from bench.contextual.serve import FEW, MANY_CAMPAIGNS, MANY_PAGES, measure_size
from bench.figures import EVENT, PROGRESS, BenchTable, render
from bench.load import (
    BROWSER_HEADERS,
    SERIAL,
    USER,
    USER_BEGINS,
    BenchPlan,
    BenchSubject,
    Effort,
    Target,
    take_sample,
    take_samples,
)
from bench.processes import LoadError, ShowStatus, find_descendants, measure_usage
from bench.product import Product, run_product
from bench.routes.behind import OTHERS
from bench.routes.measure import AUCTION, MANY, build_targets
from bench.servers import filter_environment, wait_until_quiet

ROOT: Final = Path(__file__).resolve().parents[1]
CHARGED_CAMPAIGNS: Final = 500
ANSWER_SECONDS_MAX: Final = 10.0


def main(
    *,
    seconds: Annotated[float, typer.Option(min=0.1, max=600, help="Length of a round.")] = 3.0,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Rounds of each request.")] = 3,
    events: Annotated[int, typer.Option(min=1, max=10_000_000, help="Events to count and charge.")] = 100_000,
    campaigns: Annotated[int, typer.Option(min=1, max=1_000_000, help="Campaigns with leases.")] = 20_000,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here too.")] = None,
) -> None:
    """Measure what `adloom capacity` computes with, and keep it for that command."""
    console = Console()
    plan = BenchPlan(seconds=seconds, rounds=rounds, connections=32, workers=1)
    found = measure_coefficients(plan, events=events, campaigns=campaigns, say=PROGRESS.say)
    console.print(render(_tabulate(found)))
    encoded = msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    own = find_own_file(os.environ)
    for file in {own, json_file or own}:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded)
        console.print(f"written to {file}")


def measure_coefficients(plan: BenchPlan, *, events: int, campaigns: int, say: ShowStatus) -> Coefficients:
    figures = {
        **_measure_requests(plan, say),
        **_measure_contextual(plan, say),
        **_measure_charges(events, say),
        **_measure_leases(campaigns, say),
        **_measure_classifier(say),
    }
    return Coefficients(
        measured_at=SystemClock().now(),
        commit=_find_commit(),
        version=VERSION,
        python=platform.python_version(),
        processor=_find_processor(),
        cpus=os.cpu_count() or 1,
        **{name: float(f"{figure:.4g}") for name, figure in figures.items()},
    )


def _measure_requests(plan: BenchPlan, say: ShowStatus) -> dict[str, float]:
    with run_product(workers=plan.workers) as product:
        targets = {target.name: target for target in build_targets(product)}
        subjects = [
            BenchSubject(target=targets[name], pids=product.delivery_pids) for name in (MANY, AUCTION)
        ]
        samples = take_samples(subjects, plan, say)
        outcomes = [_measure_events(product, targets[EVENT], plan, number) for number in range(plan.rounds)]
        request_in, request_out = measure_bytes(targets[MANY])
        event_in, event_out = measure_bytes(targets[EVENT])
    return {
        "direct_micros": median(each.cpu_micros for each in samples if each.target == MANY),
        "auction_micros": median(each.cpu_micros for each in samples if each.target == AUCTION),
        "event_micros": median(delivery for delivery, _ in outcomes),
        "valkey_event_micros": median(valkey for _, valkey in outcomes),
        "request_in_bytes": request_in,
        "request_out_bytes": request_out,
        "event_in_bytes": event_in,
        "event_out_bytes": event_out,
        "delivery_bytes": max(each.resident_bytes for each in samples),
    }


def _measure_events(product: Product, target: Target, plan: BenchPlan, number: int) -> tuple[float, float]:
    """Return the CPU of delivery and of Valkey an event: appending it, and giving it to all projections."""
    workers, valkeys = (find_descendants(product.pid, OTHERS[name]) for name in ("worker", "Valkey"))
    effort = Effort(connections=plan.connections, seconds=plan.seconds, serial_prefix=f"capacity-{number}-")
    before = measure_usage(valkeys).cpu_seconds
    sample = take_sample(BenchSubject(target=target, pids=product.delivery_pids), effort)
    asyncio.run(wait_until_quiet(workers[0]))
    valkey = measure_usage(valkeys).cpu_seconds - before
    return sample.cpu_micros, valkey / sample.load.requests * 1e6


def measure_bytes(target: Target) -> tuple[int, int]:
    """Return how many bytes a request and its answer have, with their heads, as a browser sends them."""
    body = (target.body or "").replace(SERIAL, "capacity-bytes").replace(USER, f"{USER_BEGINS}000000000001")
    method = "POST" if target.body else "GET"
    lines = [f"{method} {target.path} HTTP/1.1", f"Host: 127.0.0.1:{target.port}"]
    lines += [f"{name}: {value}" for name, value in BROWSER_HEADERS.items()]
    lines += [f"Content-Type: application/json\r\nContent-Length: {len(body.encode())}"] if body else []
    request = ("\r\n".join([*lines, "Connection: close", "", ""]) + body).encode()
    answer = bytearray()
    with socket.create_connection(("127.0.0.1", target.port), timeout=ANSWER_SECONDS_MAX) as connection:
        connection.sendall(request)
        while part := connection.recv(65_536):
            answer += part
    if not answer.startswith(b"HTTP/1.1 2"):
        raise LoadError(f"{target.path} answered {bytes(answer[:80])!r}.")
    return len(request), len(answer)


def _measure_contextual(plan: BenchPlan, say: ShowStatus) -> dict[str, float]:
    few, many_pages, many_campaigns = (
        measure_size(size, plan, say, has_references=False) for size in (FEW, MANY_PAGES, MANY_CAMPAIGNS)
    )
    pages = MANY_PAGES.pages - FEW.pages
    campaigns = MANY_CAMPAIGNS.campaigns - FEW.campaigns
    return {
        "contextual_micros": few.micros,
        "delivery_page_bytes": max(0, many_pages.resident_bytes - few.resident_bytes) / pages,
        "delivery_campaign_bytes": max(0, many_campaigns.resident_bytes - few.resident_bytes) / campaigns,
    }


def _measure_charges(events: int, say: ShowStatus) -> dict[str, float]:
    counted, charged = asyncio.run(measure_charges(events=events, campaigns=CHARGED_CAMPAIGNS, say=say))
    return {
        "counting_micros": counted.worker_micros,
        "charging_micros": max(0.0, charged.worker_micros - counted.worker_micros),
        "database_counting_micros": counted.database_micros,
        "database_charging_micros": max(0.0, charged.database_micros - counted.database_micros),
        "log_bytes": charged.log_bytes,
        "row_bytes": charged.row_bytes,
        "wal_bytes": charged.wal_bytes,
    }


def _measure_leases(campaigns: int, say: ShowStatus) -> dict[str, float]:
    cost = asyncio.run(measure_leasing(campaigns=campaigns, say=say))
    return {
        "lease_micros": cost.cpu_seconds / campaigns * 1e6,
        "worker_bytes": cost.bytes_before,
        "worker_campaign_bytes": max(0, cost.bytes_after - cost.bytes_before) / campaigns,
    }


def _measure_classifier(say: ShowStatus) -> dict[str, float]:
    say("classifying pages")
    command = [sys.executable, "-m", "adloom.benchmark.classification", "--json"]
    done = subprocess.run(  # noqa: S603 - ourselves
        command, env=filter_environment(os.environ), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise LoadError(f"The classifier could not be measured:\n{done.stderr.strip()}")
    figures = json.loads(done.stdout)
    return {
        "page_micros": figures["figures"][0]["milliseconds"] * 1_000,
        "classifier_bytes": figures["megabytes"] * 2**20,
    }


def _find_commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    return done.stdout.strip() or "unknown"


def _find_processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _tabulate(found: Coefficients) -> BenchTable:
    rows = [
        [name, f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"]  # noqa: PLR2004 - digits that fit
        for name, value in msgspec.structs.asdict(found).items()
        if isinstance(value, float)
    ]
    return BenchTable(title=f"commit {found.commit}, {found.processor}", headings=["", "measured"], rows=rows)
