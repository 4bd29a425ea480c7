"""The control plane: composes the admin API and the console."""

import asyncio
import functools
import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

import adloom.app.api_docs
import adloom.catalog.api
import adloom.catalog.asset.api
import adloom.catalog.assignment.api
import adloom.catalog.campaign_work.api
import adloom.catalog.preview.api
import adloom.catalog.reference.api
import adloom.catalog.taxonomy.api
import adloom.explain.auction.api
import adloom.explain.campaign.api
import adloom.explain.contextual.api
import adloom.explain.placement.api
import adloom.forecast.what_if.api
import adloom.identity.account.api
import adloom.identity.api
import adloom.identity.link.api
import adloom.identity.second_factor.api
import adloom.market.approvals.api
import adloom.market.rates.api
import adloom.market.report.api
import adloom.ops.attention.api
import adloom.ops.health
import adloom.ops.jobs
import adloom.ops.system
import adloom.pages.api
import adloom.pages.crawl.api
import adloom.pages.live.api
import adloom.pages.reclassify.api
import adloom.pages.tag_check.api
import adloom.pages.verification.api
import adloom.resource.history.api
import adloom.stats.api
import adloom.stats.auctions.api
import adloom.stats.bidding.api
import adloom.stats.budget.api
import adloom.stats.calibration
import adloom.stats.comparison.api
import adloom.stats.overview.api
import adloom.stats.pacing
import adloom.stats.placements.api
import adloom.stats.privacy.api
import adloom.stats.refunds.api
import adloom.stats.rejected.api
import adloom.stats.saved_report.api
import adloom.stats.spend.api
import adloom.stats.statement.api
import adloom.sync.api
import adloom.sync.hierarchy.api
import adloom.sync.reports.api
from adloom import VERSION
from adloom.app.listeners import take_socket
from adloom.app.process import run_process
from adloom.catalog.api import CATALOG
from adloom.catalog.asset.upload import AssetUploads
from adloom.catalog.preview.token import PreviewKeys
from adloom.catalog.schedule_sync import QUEUE as BANNERS_QUEUE
from adloom.core.clock import Clock, SystemClock
from adloom.core.currency import Currency
from adloom.core.ids import IdSource, SystemIds
from adloom.forecast.what_if.runner import WhatIfRunner
from adloom.identity.parts import open_identity
from adloom.ops.health import make_checks
from adloom.ops.projections import list_projections, read_cursors
from adloom.pages.crawl.schedule import open_crawl_queue
from adloom.pages.live.feed import SiteFeed
from adloom.resource.changes import Catalog
from adloom.resource.transfer.schema import describe_document
from adloom.runtime.auth.passwords import Passwords
from adloom.runtime.encryption import SecretCipher
from adloom.runtime.files.place import open_files
from adloom.runtime.http.answering import make_postgres_question
from adloom.runtime.http.api.dependencies import build_document
from adloom.runtime.http.api.document import name_servers, tidy_document
from adloom.runtime.http.api.exception_handlers import install_problem_handlers
from adloom.runtime.http.api.middleware import RequestPipeline
from adloom.runtime.http.api.routes import DatabaseTimeout
from adloom.runtime.http.background_check import run_checks
from adloom.runtime.http.networks import Networks
from adloom.runtime.http.rate_limit import CallerLimits, RateLimiter
from adloom.runtime.http.server import serve
from adloom.runtime.jobs.queue import open_queue
from adloom.runtime.mail.send import open_mail_queue
from adloom.runtime.outbound.client import open_outbound
from adloom.runtime.postgres import open_pool
from adloom.runtime.settings import ControlSettings, read_control_settings
from adloom.runtime.telemetry.heartbeat import HeartbeatPublisher, Reading, mask_settings, publish_meanwhile
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import open_valkey
from adloom.serving.openapi import add_delivery_routes
from adloom.stats.spend.feed import SpendFeed
from adloom.sync.queue import StatsQueue, open_stats_queue

open_control_pool = functools.partial(open_pool, size_max=10, patience_seconds=0.01)  # People wait.
DRAIN_SECONDS_MAX = 5
VALKEY_SECONDS_MAX = 1.0  # Requests wait no longer for it.

front_router = APIRouter()
ROUTERS = (
    front_router,
    adloom.app.api_docs.router,
    adloom.ops.health.router,
    adloom.identity.api.auth_router,
    adloom.identity.api.api_keys_router,
    adloom.identity.api.access_tokens_router,
    adloom.identity.second_factor.api.router,
    adloom.identity.account.api.router,
    adloom.identity.link.api.router,
    adloom.identity.link.api.admin_router,
    adloom.catalog.api.advertisers_router,
    adloom.catalog.api.publishers_router,
    adloom.catalog.api.sites_router,
    adloom.pages.api.router,
    adloom.pages.reclassify.api.router,
    adloom.pages.live.api.router,
    adloom.pages.verification.api.router,
    adloom.pages.tag_check.api.router,
    adloom.pages.crawl.api.router,
    adloom.market.approvals.api.router,
    adloom.market.approvals.api.inbox_router,
    adloom.market.report.api.router,
    adloom.market.rates.api.router,
    adloom.catalog.reference.api.router,
    adloom.catalog.taxonomy.api.router,
    adloom.catalog.api.placements_router,
    adloom.catalog.api.banners_router,
    adloom.catalog.preview.api.router,
    adloom.catalog.asset.api.router,
    adloom.catalog.campaign_work.api.router,
    adloom.catalog.api.campaigns_router,
    adloom.catalog.assignment.api.router,
    adloom.catalog.assignment.api.creatives_router,
    adloom.catalog.assignment.api.assigned_router,
    adloom.catalog.assignment.api.decisions_router,
    adloom.catalog.assignment.api.inbox_router,
    adloom.stats.placements.api.banners_router,
    adloom.stats.statement.api.router,
    adloom.stats.comparison.api.placement_router,
    adloom.stats.comparison.api.campaign_router,
    adloom.resource.history.api.router,
    adloom.catalog.api.transfer_router,
    adloom.catalog.api.targeting_rules_router,
    adloom.catalog.api.frequency_caps_router,
    adloom.stats.api.router,
    adloom.stats.saved_report.api.router,
    adloom.stats.rejected.api.router,
    adloom.stats.privacy.api.router,
    adloom.stats.spend.api.router,
    adloom.stats.refunds.api.router,
    adloom.stats.auctions.api.router,
    adloom.stats.budget.api.router,
    adloom.stats.calibration.router,
    adloom.stats.spend.api.figures_router,
    adloom.stats.placements.api.offered_router,
    adloom.stats.pacing.router,
    adloom.stats.bidding.api.router,
    adloom.ops.jobs.router,
    adloom.stats.overview.api.router,
    adloom.ops.attention.api.router,
    adloom.ops.system.router,
    adloom.explain.placement.api.router,
    adloom.explain.auction.api.router,
    adloom.explain.campaign.api.router,
    adloom.explain.contextual.api.router,
    adloom.forecast.what_if.api.router,
    *adloom.sync.hierarchy.api.ROUTERS,
    adloom.sync.reports.api.router,
    adloom.sync.api.router,
)


@front_router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def answer_front(request: Request) -> Response:
    """Redirect a browser to the console; tell a program the addresses."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/console", 303)
    paths = {
        "console": "/console",
        "openapi": "/openapi.json",
        "docs": adloom.app.api_docs.PATH,
        "health": "/health/ready",
        "logIn": "/auth/login",
    }
    addresses = {name: f"{request.app.state.public_url}{path}" for name, path in paths.items()}
    return JSONResponse({"name": "Adloom", "version": VERSION, **addresses}, headers={"Vary": "Accept"})


def main() -> None:
    # Loaded now, while servers may still be starting, and not with the first work.
    importlib.import_module("adloom.console.mount")
    run_process(read_control_settings, run_control)


async def run_control(settings: ControlSettings, metrics: Metrics) -> None:
    app = build_control(settings, clock=SystemClock(), ids=SystemIds(), has_console=True)
    metrics.add_counters(
        "adloom_control_requests", "Requests by their status.", "status", lambda: app.state.answered
    )
    feed: SpendFeed = app.state.spend_feed
    site_feed: SiteFeed = app.state.site_feed

    def end_streams() -> None:
        feed.close()
        site_feed.close()

    metrics.add_gauge("adloom_spend_listeners", "Who follows what is spent.", lambda: feed.listeners)
    metrics.add_counter(
        "adloom_spend_listeners_cut_off", "Those that did not keep up with it.", lambda: feed.cut_off
    )
    listener = take_socket(settings.host, settings.port)
    async with open_valkey(settings.services.redis_url) as valkey:
        heartbeat = HeartbeatPublisher(
            valkey,
            SystemClock(),
            telemetry=settings.telemetry,
            settings=mask_settings(settings),
            read=lambda: Reading(requests=sum(app.state.answered.values())),
        )
        async with publish_meanwhile(heartbeat):
            await serve(
                app,
                listener,
                drain_seconds_max=DRAIN_SECONDS_MAX,
                has_lifespan=True,
                has_web_sockets=True,
                # Their answers would have no end.
                before_drain=end_streams,
            )


def build_control(
    settings: ControlSettings,
    *,
    clock: Clock,
    ids: IdSource,
    passwords: Passwords | None = None,
    has_console: bool = False,
) -> FastAPI:
    """Compose the control plane; it connects when it is started."""
    feed, site_feed = SpendFeed(), SiteFeed()
    redis_url = settings.services.redis_url

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with (
            open_control_pool(settings.services.database_url) as pool,
            open_valkey(redis_url, answer_seconds_max=VALKEY_SECONDS_MAX) as valkey,
            feed.run(valkey),
            site_feed.run(pool),
            open_stats_queue(redis_url, answer_seconds_max=VALKEY_SECONDS_MAX) as stats_queue,
            open_queue(BANNERS_QUEUE, redis_url, answer_seconds_max=VALKEY_SECONDS_MAX) as banner_jobs,
            open_crawl_queue(redis_url, answer_seconds_max=VALKEY_SECONDS_MAX) as crawl_queue,
            open_mail_queue(redis_url, answer_seconds_max=VALKEY_SECONDS_MAX) as mail_queue,
            open_outbound(settings.outbound) as outbound,
            open_identity(pool, valkey, settings, clock=clock, ids=ids, passwords=passwords) as identity,
            open_files(settings.assets_url, clock) as files,
            run_checks(*(checks := make_checks(pool, valkey))),
        ):
            app.state.checks = checks
            app.state.pool, app.state.valkey = pool, valkey
            app.state.stats_queue, app.state.crawl_queue = stats_queue, crawl_queue
            queues = (banner_jobs, stats_queue.queue, crawl_queue, mail_queue)
            app.state.job_queues = {queue.name: queue for queue in queues}
            app.state.outbound = outbound
            app.state.mail_queue = mail_queue if settings.mail.is_on else None
            app.state.asset_uploads = AssetUploads(files, settings.assets, ids)
            app.state.failed_jobs = functools.partial(_count_failed_jobs, stats_queue)
            app.state.ledger_cursors = functools.partial(read_cursors, list_projections(pool, valkey), pool)
            app.state.catalog = Catalog(pool, valkey, clock=clock, quotas=settings.quotas)
            for name in identity.__struct_fields__:
                setattr(app.state, name, getattr(identity, name))
            yield

    app = _build_app(lifespan)
    app.state.database_timeout = DatabaseTimeout(make_postgres_question(settings.services.database_url))
    app.state.spend_feed = feed
    app.state.site_feed = site_feed
    app.state.clock = clock
    app.state.ids = ids
    _add_settings(app, settings)
    if has_console:
        _add_console(app, settings, clock)
    app.state.answered = answered = dict[str, int]()
    app.add_middleware(
        RequestPipeline,
        ids=ids,
        answered=answered,
        is_https=settings.public_url.startswith("https://"),
    )
    return app


def _add_settings(app: FastAPI, settings: ControlSettings) -> None:
    app.state.sealer = SecretCipher(settings.sealing_secrets) if settings.sealing_secrets else None
    app.state.preview_keys = PreviewKeys(settings.token_secret) if settings.token_secret else None
    app.state.public_url, app.state.public_prefix = settings.public_url, settings.public_prefix
    app.state.delivery_url = settings.delivery_url
    app.state.rate_limiter = RateLimiter(settings.rate_limit_permits_per_minute)
    app.state.trusted_proxies = Networks(settings.trusted_proxies)
    app.state.quotas = settings.quotas
    app.state.page_fresh_hours = settings.page_fresh_hours
    app.state.currency = Currency(settings.currency or "")
    app.state.caller_limits = CallerLimits(
        at_once_max=settings.quotas.requests_at_once, per_minute=settings.quotas.requests_per_minute
    )
    app.state.auctions = settings.auctions
    app.state.what_if = WhatIfRunner()
    app.state.takes_passwords = settings.log_in.takes_passwords
    app.state.counts_unbound = settings.unbound_events == "count"


async def _count_failed_jobs(stats_queue: StatsQueue) -> int:
    await stats_queue.refresh_counts()
    return stats_queue.counts.dead


def _add_console(app: FastAPI, settings: ControlSettings, clock: Clock) -> None:
    # Not above: it takes a second to import, and the API's description needs none of it.
    from adloom.console.mount import mount_console  # noqa: PLC0415

    mount_console(
        app,
        clock=clock,
        jwt_secret=settings.jwt_secret,
        tokens=settings.tokens,
        public_url=settings.public_url,
        currency=Currency(settings.currency or ""),
    )


@functools.cache
def build_openapi_document() -> dict[str, Any]:
    """Describe both listeners in one document; it is shared, and takes seconds to build."""
    document = build_document(app := _build_app())
    add_delivery_routes(document)
    schemas = document["components"]["schemas"]
    document["components"]["schemas"] = describe_document(CATALOG.lists) | schemas
    return tidy_document(document, app.routes)


def _build_app(lifespan: Any = None) -> FastAPI:  # noqa: ANN401 - as the framework declares it
    app = FastAPI(
        title="Adloom",
        version=VERSION,
        lifespan=lifespan,
        # The framework's pages load scripts from elsewhere; the document itself is below.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    install_problem_handlers(app)
    for router in ROUTERS:
        # Not `include_router`: it would build every route a second time, in 0.4 s.
        app.router.routes.extend(router.routes)
    app.state.describing = asyncio.Lock()
    app.add_api_route("/openapi.json", _answer_openapi, include_in_schema=False)
    return app


async def _answer_openapi(request: Request) -> Response:
    urls = request.app.state.public_url, request.app.state.delivery_url
    # Only one request builds it, and in a thread: other requests are answered meanwhile.
    async with request.app.state.describing:
        body = await asyncio.to_thread(_encode_openapi, *urls)
    return Response(body, media_type="application/json")


@functools.cache
def _encode_openapi(control_url: str, delivery_url: str) -> bytes:
    return msgspec.json.encode(name_servers(build_openapi_document(), control_url, delivery_url))


if __name__ == "__main__":
    main()
