"""What each kind of process tells of itself."""

from adloom.core.clock import Clock
from adloom.events.log.append import EventAppender
from adloom.events.log.spool.drain import DiskSpool
from adloom.runtime.http.fast.fast_routes import FastRoute
from adloom.runtime.http.fast.timing import ServeTimes
from adloom.runtime.settings import DeliverySettings
from adloom.runtime.telemetry.heartbeat import HeartbeatPublisher, Reading, mask_settings
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import Valkey
from adloom.serving.auction.api import AuctionRoutes
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.background.model_loader import ModelLoader
from adloom.serving.direct.api import ServeRoutes

MEDIAN = 0.5
NEARLY_ALL = 0.99


class ServeFigures:
    """What a delivery process has served, as its parts count it."""

    def __init__(self, offers: ServeRoutes, auctions: AuctionRoutes) -> None:
        self._offers = offers
        self._auctions = auctions
        self._times = ServeTimes()

    def measure(self, routes: list[FastRoute]) -> list[FastRoute]:
        return [self._times.measure(route) for route in routes]

    def register(self, metrics: Metrics) -> None:
        metrics.gauges(
            "adloom_serve_seconds",
            "From a whole request to its answer, of one in 16 requests; the last 1,024 of them.",
            "quantile",
            lambda: {
                "0.5": self._times.quantile(MEDIAN) or 0.0,
                "0.99": self._times.quantile(NEARLY_ALL) or 0.0,
            },
        )

    def reading(self, keeper: IndexRefresher, appender: EventAppender, spool: DiskSpool | None) -> Reading:
        offers, auctions = self._offers, self._auctions
        filled = offers.served + auctions.won
        return Reading(
            requests=filled + offers.empty + sum(auctions.unfilled.values()),
            filled=filled,
            index_version=keeper.version,
            p50_seconds=self._times.quantile(MEDIAN),
            p99_seconds=self._times.quantile(NEARLY_ALL),
            pending=appender.pending,
            spool_bytes=spool.waiting_bytes if spool is not None else None,
        )


def make_heartbeat(  # noqa: PLR0913 - what it reads
    settings: DeliverySettings,
    valkey: Valkey,
    clock: Clock,
    figures: ServeFigures,
    *,
    keeper: IndexRefresher,
    appender: EventAppender,
    spool: DiskSpool | None,
) -> HeartbeatPublisher:
    return HeartbeatPublisher(
        valkey,
        clock,
        telemetry=settings.telemetry,
        settings=mask_settings(settings),
        read=lambda: figures.reading(keeper, appender, spool),
        is_serving=True,
    )


def register_model(metrics: Metrics, keeper: ModelLoader) -> None:
    metrics.gauge(
        "adloom_scoring_model_version", "Version of the learned model; 0 is none.", lambda: keeper.version
    )
    metrics.gauge(
        "adloom_scoring_model_age_seconds", "Since it learned its last example.", keeper.age_seconds
    )
    metrics.gauge(
        "adloom_scoring_model_examples", "Impressions that it has learned from.", lambda: keeper.examples
    )
    metrics.counters(
        "adloom_scoring_model_loads",
        "Models that were published, by whether they could be read.",
        "outcome",
        lambda: {"used": keeper.loads, "failed": keeper.failures},
    )
