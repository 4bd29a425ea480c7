"""The worker: keeps the projections up with the ledger, and says that it does."""

import asyncio
import os
from http import HTTPStatus
from pathlib import Path

import msgspec
import uvicorn
import uvloop

from adloom.core.clock import SystemClock
from adloom.entrypoints.listeners import inherited_socket
from adloom.ledger.projection import Projection
from adloom.ledger.store import EVENT_TABLES, EventTables, all_cursors
from adloom.ledger.stream import ValkeyLedger
from adloom.ledger.upkeep import Upkeep
from adloom.runtime.http import server
from adloom.runtime.http.plain import PlainAnswer, PlainApp
from adloom.runtime.logs import configure_logs
from adloom.runtime.metrics import Metrics, serve_metrics
from adloom.runtime.postgres import open_pool
from adloom.runtime.settings import WorkerSettings, with_dotenv, worker_settings
from adloom.runtime.tracing import configure_tracing
from adloom.runtime.valkey import open_valkey

POOL_SIZE_MAX = 4
DRAIN_SECONDS_MAX = 1
# For the batch under way; one that takes longer is cut off, and comes again at the next start.
STOP_SECONDS_MAX = 2.0


class Health(msgspec.Struct, frozen=True):
    """What monitors of workers read."""

    status: str
    queue: str
    uptime: float


def main() -> None:
    """Run until told to stop."""
    settings = worker_settings(with_dotenv(os.environ, Path(".env")))
    configure_logs(settings.telemetry)
    with (
        serve_metrics(settings.telemetry) as metrics,
        configure_tracing(settings.telemetry),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(work(settings, metrics))


async def work(settings: WorkerSettings, metrics: Metrics) -> None:
    """Follow the ledger until a signal asks to stop."""
    async with (
        open_pool(settings.services.database_url, size_max=POOL_SIZE_MAX) as pool,
        open_valkey(settings.services.redis_url) as valkey,
    ):
        ledger = ValkeyLedger(valkey)
        projection = Projection(EVENT_TABLES, ledger, EventTables(pool))
        upkeep = Upkeep(ledger, lambda: all_cursors(pool), clock=SystemClock())
        _register(metrics, projection, upkeep)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(projection.run(stop)), group.create_task(upkeep.run(stop))]
            await _answer_health(settings)
            stop.set()
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS_MAX)
            for task in late:
                task.cancel()


async def _answer_health(settings: WorkerSettings) -> None:
    """Answer who asks how we are, until a signal asks to stop."""
    clock = asyncio.get_running_loop().time
    started_at = clock()

    async def health() -> PlainAnswer:
        uptime = round(clock() - started_at, 3)
        return PlainAnswer(HTTPStatus.OK, msgspec.json.encode(Health("ok", "stats-sync", uptime)))

    async def alive() -> PlainAnswer:
        return PlainAnswer(HTTPStatus.OK, b'{"status":"ok"}')

    config = uvicorn.Config(
        PlainApp({"/health": health, "/health/live": alive}),
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN_SECONDS_MAX,
    )
    await server.serve(config, inherited_socket(settings.host, settings.port))


def _register(metrics: Metrics, projection: Projection, upkeep: Upkeep) -> None:
    metrics.counters(
        "adloom_projection_events",
        "Events by what the projection did with them.",
        "outcome",
        lambda: {
            "counted": projection.counted,
            "repeated": projection.repeated,
            "dropped": projection.dropped,
            "dead": projection.dead,
        },
    )
    metrics.counter("adloom_projection_batches", "Batches folded.", lambda: projection.batches)
    metrics.counter("adloom_projection_failures", "Tries that had to wait.", lambda: projection.failures)
    metrics.gauge("adloom_ledger_lag_entries", "Entries not yet read.", lambda: upkeep.lag.entries)
    metrics.gauge(
        "adloom_ledger_lag_seconds", "Age of the oldest entry not yet read.", lambda: upkeep.lag.seconds
    )
    metrics.counter("adloom_ledger_trimmed", "Old entries forgotten.", lambda: upkeep.trimmed)


if __name__ == "__main__":
    main()
