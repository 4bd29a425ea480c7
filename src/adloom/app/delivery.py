"""One delivery process: the public path around one index."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus
from typing import TypeVar

from adloom.app.delivery_auctions import (
    AuctionParts,
    build_auctions,
    build_contextual,
    build_frequency,
    build_markets,
)
from adloom.app.delivery_parts import PublicParts, RecordingParts, Running, SiteLoaders
from adloom.app.delivery_traffic import (
    build_bounds,
    build_preview_keys,
    build_sharer,
    build_token_keys,
    build_traffic,
    lift_limits,
)
from adloom.app.listeners import take_socket
from adloom.app.metrics.delivery import (
    ServeFigures,
    register_auctions,
    register_contextual,
    register_events,
    register_index,
    register_leases,
    register_model,
    register_senders,
    register_spool,
)
from adloom.app.process import run_process
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.events.auction_log.side_stream import AuctionAppender, AuctionSideStream
from adloom.events.ingest.api import EventRoutes
from adloom.events.ingest.conversion_api import ConversionRoutes
from adloom.events.log.append import EventAppender
from adloom.events.log.permissions import PermissionCheck
from adloom.events.log.spool.drain import DiskSpool, open_spool
from adloom.events.log.stream import ValkeyEventLog
from adloom.runtime.failover.dedicated_connection import DedicatedConnection
from adloom.runtime.files.place import open_files
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRoute, FastRoutes, Limits, encode_head
from adloom.runtime.http.fast.protocol import make_protocol
from adloom.runtime.http.fast.sampled_routes import trace_routes
from adloom.runtime.http.geoip import open_countries
from adloom.runtime.http.plain import PlainApp
from adloom.runtime.http.server import serve
from adloom.runtime.loops import Runnable
from adloom.runtime.postgres import open_pool
from adloom.runtime.process.tuning import (
    REQUEST_THRESHOLD,
    count_connections_max,
    freeze_new_objects,
    freeze_startup_objects,
)
from adloom.runtime.random import make_chance
from adloom.runtime.settings import DeliverySettings, read_delivery_settings
from adloom.runtime.telemetry.heartbeat import HeartbeatPublisher, mask_settings, publish_meanwhile
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import Valkey, open_valkey
from adloom.sample.content.catalog import SLOT_BY_SLUG
from adloom.sample.pages.routes import build_sample_routes
from adloom.serving.assets.api import AssetApp
from adloom.serving.auction.events import AdEventRoutes
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.background.model_loader import ModelLoader
from adloom.serving.background.page_traffic import PageTraffic
from adloom.serving.background.reporter_keys import ReporterKeys
from adloom.serving.background.site_traffic import SiteTraffic
from adloom.serving.crawler_page import build_crawler_routes
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.direct.encode import ServedEventPublisher
from adloom.serving.direct.frequency import DirectFrequency
from adloom.serving.eligibility.placement_state import PlacementStates
from adloom.serving.eligibility.rotation import Rotator
from adloom.serving.health import DeliveryHealth
from adloom.serving.index.index import Index
from adloom.serving.leases.client import LeaseClient
from adloom.serving.neutral_routes import build_neutral_routes
from adloom.serving.request.context import ContextParser
from adloom.serving.tag.page_slots import PageSlotRoutes
from adloom.serving.tag.pages import ScriptlessRoutes
from adloom.serving.tag.preview import PreviewRoutes
from adloom.serving.tag.script import build_script_routes

# The index's updates, its rebuild, health checks and previews: no other request uses the database.
POOL_SIZE_MAX = 4
FIRST_INDEX_SECONDS_MAX = 10.0
DRAIN_SECONDS_MAX = 5

ALIVE = FastAnswer(
    encode_head(HTTPStatus.OK, b"application/json", (b"cache-control", b"no-store")), b'{"status":"ok"}'
)

Part = TypeVar("Part", bound=Runnable)


def main() -> None:
    run_process(lambda variables: lift_limits(read_delivery_settings(variables)), deliver)


async def deliver(settings: DeliverySettings, metrics: Metrics) -> None:
    """Serve the public routes; whatever was accepted is in the event log before the process ends."""
    freeze_startup_objects(REQUEST_THRESHOLD)
    bounds, clock = build_bounds(settings), SystemClock()
    async with (
        open_pool(settings.services.database_url, size_max=POOL_SIZE_MAX) as pool,
        open_valkey(settings.services.redis_url) as valkey,
        aclosing(DedicatedConnection(valkey)) as line,
        aclosing(DedicatedConnection(valkey)) as line_of_events,
        aclosing(DedicatedConnection(valkey)) as line_of_auctions,
        open_spool(settings, ValkeyEventLog(valkey)) as spool,
        EventAppender(ValkeyEventLog(valkey, line_of_events), spool) as appender,
        AuctionAppender(
            beside := AuctionSideStream(valkey, line_of_auctions), appender.enqueue_all, spool
        ) as recording,
        _run_beside(sites := SiteLoaders(pool, valkey)),
        _run_beside(_make_leases(settings, valkey, states := _make_states(settings, sites), spool)) as leases,
        _run_beside(PermissionCheck(valkey)),
        _run_beside(ModelLoader(valkey, clock)) as models,
        _run_beside(build_sharer(valkey, bounds, clock, secret=settings.token_secret)),
        _run_refresher(
            IndexRefresher(
                pool,
                valkey,
                clock,
                states=states,
                markets=build_markets(settings, states, models),
                swapped=lambda index: _follow_index(index, leases, sites),
            )
        ) as refresher,
        _run_beside(ReporterKeys(pool, refresher.get_current)) as reporters,
        _run_beside(SiteTraffic(valkey, clock, leases.leases, lambda: refresher.current)) as site_traffic,
        _run_beside(PageTraffic(valkey, clock)) as page_traffic,
        open_files(settings.assets_url, clock, is_cached=True) as files,
    ):
        health = DeliveryHealth(refresher, pool, valkey, clock, spool=spool)
        running = Running(
            clock, pool, line, spool, appender, RecordingParts(beside, recording), leases, models, reporters, sites,
            valkey, refresher, bounds, site_traffic, page_traffic,
        )  # fmt: skip
        public, auctions, figures = _build_public_routes(settings, metrics, running)
        routes = _add_other_routes(public, settings, refresher)
        async with publish_meanwhile(_build_heartbeat(settings, running, figures)), health.run():
            freeze_new_objects()  # The first index.
            await serve(
                AssetApp(files, PlainApp(health.list_routes()), settings.public_url, settings.public_prefix),
                take_socket(settings.host, settings.port),
                protocol=make_protocol(
                    FastRoutes(routes, build_neutral_routes(routes, settings.public_prefix)),
                    Limits(connections_max=count_connections_max()),
                ),
                drain_seconds_max=DRAIN_SECONDS_MAX,
            )
        auctions.flush()


def _make_states(settings: DeliverySettings, sites: SiteLoaders) -> PlacementStates:
    turns = Rotator(make_chance(), sites.results.find)
    return PlacementStates(keep_seconds=settings.serve_cache_seconds, turns=turns)


def _make_leases(
    settings: DeliverySettings, valkey: Valkey, states: PlacementStates, spool: DiskSpool | None
) -> LeaseClient:
    process, draw = settings.telemetry.process, make_chance().random
    logged = int if spool is None else spool.find_logged_until
    return LeaseClient(valkey, states, SystemClock(), process=process, draw=draw, find_logged_until=logged)


def _build_heartbeat(
    settings: DeliverySettings, running: Running, figures: ServeFigures
) -> HeartbeatPublisher:
    refresher, parts = running.refresher, (running.appender, running.spool, running.clock)
    return HeartbeatPublisher(
        running.valkey,
        running.clock,
        telemetry=settings.telemetry,
        settings=mask_settings(settings),
        read=lambda: figures.take_reading(refresher, *parts, has_sample=_has_sample(refresher)),
        is_serving=True,
    )


def _add_other_routes(
    public: Sequence[FastRoute], settings: DeliverySettings, refresher: IndexRefresher
) -> list[FastRoute]:
    """Add the routes without limits: scripts, pages of the sample, and whether the process is alive."""
    routes = [*public, *build_script_routes(settings.public_prefix), *build_crawler_routes()]
    if settings.has_sample_pages:
        routes += build_sample_routes(lambda: _has_sample(refresher))
    return [*routes, FastRoute(b"GET", b"/health/live", is_prefix=False, handler=_answer_alive)]


def _build_public_routes(
    settings: DeliverySettings, metrics: Metrics, running: Running
) -> tuple[list[FastRoute], AuctionParts, ServeFigures]:
    """Build the public routes and their metrics. The auctions have to be flushed at the end."""
    clock, refresher, appender = running.clock, running.refresher, running.appender
    contexts = ContextParser(open_countries(settings.geoip_file), trusted=settings.trusted_proxies)
    traffic = build_traffic(settings, contexts, running.bounds, refresher.get_current)
    frequency = build_frequency(settings, running.line, clock)
    public = PublicParts(build_token_keys(settings), contexts, traffic, frequency)
    detector, keys, spool_folder = traffic.detector, public.keys, settings.spool_directory
    offers = ServeRoutes(
        refresher.get_current,
        keys.signer,
        clock,
        SystemIds(),
        public_url=settings.link_url,
        contexts=contexts,
        states=refresher.states,
        leases=running.leases.leases,
        publisher=ServedEventPublisher(appender.enqueue) if settings.has_served_events else None,
        senders=traffic.senders,
        frequency=DirectFrequency(frequency),
        count_traffic=running.site_traffic.count,
    )
    events = _build_events(settings, running, public)
    auctions = build_auctions(settings, running, public)
    register_events(metrics, events, (detector, traffic.offers), appender)
    register_senders(metrics, traffic.limiter, traffic.senders)
    register_spool(metrics, running.spool, spool_folder)
    register_auctions(metrics, auctions, frequency, running.recording)
    register_index(metrics, refresher, clock)
    register_leases(metrics, running.leases)
    register_model(metrics, running.models)
    contextual = build_contextual(settings, running, public, auctions)
    register_contextual(metrics, contextual, running.sites.pages)
    figures = ServeFigures(offers, auctions.routes, contextual.slots, detector.peers, spool_folder)
    figures.register(metrics)
    page_slots = PageSlotRoutes(
        refresher.get_current,
        clock,
        SystemIds(),
        direct=offers,
        auctions=auctions.routes,
        contextual=contextual.slots,
        states=refresher.states,
        frequency=DirectFrequency(frequency),
        is_paced=running.leases.leases.registry.is_paced,
        unknown=figures.unknown_slugs,
    )
    served = (offers, auctions.routes, page_slots, contextual.slots)
    routes = [
        *(route for part in served for route in trace_routes(figures.measure(part.list_routes()))),
        *contextual.texts.list_routes(),
        *events.list_routes(),
        *ConversionRoutes(appender, keys, clock, reporters=running.reporters).list_routes(),
        *AdEventRoutes(refresher.get_current, keys, clock, events).list_routes(),
        *ScriptlessRoutes(offers, events, traffic.pages, prefix=settings.public_prefix).list_routes(),
        *PreviewRoutes(running.pool, build_preview_keys(settings), clock, SystemIds()).list_routes(),
    ]
    return traffic.limiter.limit(routes), auctions, figures


def _build_events(settings: DeliverySettings, running: Running, public: PublicParts) -> EventRoutes:
    return EventRoutes(
        running.refresher.get_current,
        running.appender,
        public.keys,
        running.clock,
        detector=public.traffic.detector,
        offer_check=public.traffic.offers,
        read_request_info=public.contexts.read_request_info,
        reporters=running.reporters,
        refuses_unbound=settings.unbound_events == "refuse",
        on_seen=public.traffic.senders.note_seen,
    )


def _follow_index(index: Index, leases: LeaseClient, sites: SiteLoaders) -> None:
    leases.update(index)
    sites.prepare(index)


@asynccontextmanager
async def _run_refresher(refresher: IndexRefresher) -> AsyncGenerator[IndexRefresher]:
    """Keep an index up to date; wait for the first one, so that no request fails for lack of it."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(refresher.run())
        await refresher.wait_until_ready(seconds_max=FIRST_INDEX_SECONDS_MAX)
        yield refresher
        task.cancel()


@asynccontextmanager
async def _run_beside(part: Part) -> AsyncGenerator[Part]:
    """Run what works beside requests; leases are returned when nothing is offered any more."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(part.run(stop))
        try:
            yield part
        finally:
            stop.set()


def _has_sample(refresher: IndexRefresher) -> bool:
    """Whether the catalog has placements of the sample."""
    return any(slug.encode() in refresher.current.by_slug for slug in SLOT_BY_SLUG)


def _answer_alive(_request: object) -> FastAnswer:
    return ALIVE


if __name__ == "__main__":
    main()
