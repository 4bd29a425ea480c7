"""One delivery process: the public path around one index."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

import uvicorn
import uvloop

from adloom.core.clock import Clock, SystemClock
from adloom.core.ids import SystemIds
from adloom.delivery.api import ServeRoutes
from adloom.delivery.health import DeliveryHealth
from adloom.delivery.limit import limited
from adloom.delivery.publish import IndexKeeper
from adloom.entrypoints.listeners import inherited_socket
from adloom.ledger.api import EventRoutes
from adloom.ledger.append import LedgerAppender
from adloom.ledger.stream import ValkeyLedger
from adloom.ledger.token import TokenKeys
from adloom.runtime.http import server
from adloom.runtime.http.client_address import networks
from adloom.runtime.http.hot import Answer, HotRoute, HotRoutes, answer_head
from adloom.runtime.http.plain import PlainApp
from adloom.runtime.http.protocol import make_protocol
from adloom.runtime.http.rate_limit import RateLimiter
from adloom.runtime.logs import configure_logs
from adloom.runtime.metrics import Metrics, serve_metrics
from adloom.runtime.postgres import open_pool
from adloom.runtime.settings import DeliverySettings, delivery_settings, with_dotenv
from adloom.runtime.tracing import configure_tracing, sampled
from adloom.runtime.valkey import open_valkey
from adloom.sample.pages import sample_routes

POOL_SIZE_MAX = 3  # The keeper of the index, and health checks: requests never use the database.
FIRST_INDEX_SECONDS_MAX = 10.0
DRAIN_SECONDS_MAX = 5
TRACED_ONE_IN = 1_000

ALIVE = Answer(
    answer_head(HTTPStatus.OK, b"application/json", (b"cache-control", b"no-store")), b'{"status":"ok"}'
)


def main() -> None:
    """Run until told to stop."""
    settings = delivery_settings(with_dotenv(os.environ, Path(".env")))
    configure_logs(settings.telemetry)
    with (
        serve_metrics(settings.telemetry) as metrics,
        configure_tracing(settings.telemetry),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(deliver(settings, metrics))


async def deliver(settings: DeliverySettings, metrics: Metrics) -> None:
    """Serve the public routes; what has been accepted is in the ledger before the process ends."""
    clock = SystemClock()
    keys = TokenKeys(settings.token_secret)
    async with (
        open_pool(settings.services.database_url, size_max=POOL_SIZE_MAX) as pool,
        open_valkey(settings.services.redis_url) as valkey,
        LedgerAppender(ValkeyLedger(valkey)) as appender,
        _kept(IndexKeeper(pool, valkey, clock)) as keeper,
    ):
        serve = ServeRoutes(
            lambda: keeper.current, keys.signer, clock, SystemIds(), public_url=settings.public_url
        )
        events = EventRoutes(lambda: keeper.current, appender, keys, clock)
        _register(metrics, keeper, serve, events, appender)
        health = DeliveryHealth(keeper, pool, valkey, clock)
        routes = _behind_limit([*_traced(serve.routes()), *events.routes()], settings, clock)
        if settings.has_sample_pages:
            routes += sample_routes()
        config = uvicorn.Config(
            PlainApp({"/health": health.ready, "/health/ready": health.ready}),
            http=make_protocol(
                HotRoutes([HotRoute(b"GET", b"/health/live", is_prefix=False, handler=_alive), *routes])
            ),
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=DRAIN_SECONDS_MAX,
        )
        await server.serve(config, inherited_socket(settings.host, settings.port))


@asynccontextmanager
async def _kept(keeper: IndexKeeper) -> AsyncGenerator[IndexKeeper]:
    """Keep an index up to date; wait for the first one, so that nobody is turned away for lack of it."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(keeper.run())
        await keeper.wait_until_there(seconds_max=FIRST_INDEX_SECONDS_MAX)
        yield keeper
        task.cancel()


def _alive(request: object) -> Answer:
    del request
    return ALIVE


def _traced(routes: list[HotRoute]) -> list[HotRoute]:
    return [
        HotRoute(
            route.method,
            route.path,
            is_prefix=route.is_prefix,
            handler=sampled(route.handler, "banners.serve", one_in=TRACED_ONE_IN),
        )
        for route in routes
    ]


def _behind_limit(routes: list[HotRoute], settings: DeliverySettings, clock: Clock) -> list[HotRoute]:
    if settings.rate_limit_permits_per_minute is None:
        return routes
    limiter = RateLimiter(settings.rate_limit_permits_per_minute)
    return limited(routes, limiter, clock, trusted=networks(settings.trusted_proxies))


def _register(
    metrics: Metrics, keeper: IndexKeeper, serve: ServeRoutes, events: EventRoutes, appender: LedgerAppender
) -> None:
    metrics.counters(
        "adloom_serve",
        "Serve requests by outcome.",
        "outcome",
        lambda: {"filled": serve.served, "empty": serve.empty},
    )
    metrics.gauge("adloom_index_version", "Catalog version of the index.", lambda: keeper.version or 0)
    metrics.counters(
        "adloom_ledger_events",
        "Events by what the ledger did with them.",
        "outcome",
        lambda: {"appended": appender.appended, "failed": appender.failed, "refused": appender.refused},
    )
    metrics.counter(
        "adloom_clicks_lost", "Clicks led on without being in the ledger.", lambda: events.clicks_lost
    )
    metrics.gauge("adloom_ledger_pending", "Events that wait for the ledger.", lambda: appender.pending)


if __name__ == "__main__":
    main()
