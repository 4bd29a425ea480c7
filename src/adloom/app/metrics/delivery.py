"""What a delivery process shows to Prometheus and in its heartbeat."""

import math
from pathlib import Path
from shutil import disk_usage

from adloom.app.delivery_auctions import AuctionParts, ContextualParts
from adloom.app.delivery_parts import RecordingParts
from adloom.core.clock import Clock
from adloom.events.ingest.api import EventRoutes
from adloom.events.ingest.ivt.detector import PeerCounter, TrafficDetector
from adloom.events.ingest.ivt.offers import OfferCheck
from adloom.events.log.append import EventAppender
from adloom.events.log.spool.drain import DiskSpool
from adloom.runtime.http.fast.fast_routes import FastRoute
from adloom.runtime.http.fast.sampled_routes import SECONDS_BOUNDS, ServeTimes
from adloom.runtime.telemetry.heartbeat import Reading
from adloom.runtime.telemetry.metrics import Metrics
from adloom.serving.auction.api import AuctionRoutes
from adloom.serving.background.index_refresh import IndexRefresher
from adloom.serving.background.model_loader import ModelLoader
from adloom.serving.background.site_tables import PageLoader
from adloom.serving.contextual.api import SlotRoutes
from adloom.serving.direct.api import ServeRoutes
from adloom.serving.eligibility.frequency_lookup import FrequencyLookup
from adloom.serving.leases.client import LeaseClient
from adloom.serving.request.rate_limit import RequestLimiter
from adloom.serving.request.sender_limits import SenderCheck
from adloom.serving.tag.unknown_slugs import UnknownSlugs

MEDIAN = 0.5
NEARLY_ALL = 0.99


class ServeFigures:
    """What a delivery process has served, as its parts count it."""

    def __init__(
        self,
        offers: ServeRoutes,
        auctions: AuctionRoutes,
        slots: SlotRoutes,
        peers: PeerCounter,
        spool_folder: Path,
    ) -> None:
        self.unknown_slugs = UnknownSlugs()
        self._offers = offers
        self._auctions = auctions
        self._slots = slots
        self._peers = peers
        self._spool_folder = spool_folder
        self._times = ServeTimes()

    def measure(self, routes: list[FastRoute]) -> list[FastRoute]:
        return [self._times.measure(route) for route in routes]

    def register(self, metrics: Metrics) -> None:
        metrics.add_counters(
            "adloom_serve",
            "Serve requests by outcome.",
            "outcome",
            lambda: {"filled": self._offers.served, "empty": self._offers.empty},
        )
        metrics.add_histogram(
            "adloom_serve_seconds",
            "From a whole request to its answer, of one in 16 requests.",
            SECONDS_BOUNDS,
            lambda: (self._times.within, self._times.seconds_sum),
        )

    def take_reading(
        self,
        refresher: IndexRefresher,
        appender: EventAppender,
        spool: DiskSpool | None,
        clock: Clock,
        *,
        has_sample: bool,
    ) -> Reading:
        offers, auctions, slots = self._offers, self._auctions, self._slots
        filled = offers.served + auctions.won + slots.served
        unfilled = offers.empty + sum(auctions.unfilled.values()) + sum(slots.unfilled.values())
        return Reading(
            requests=filled + unfilled,
            filled=filled,
            index_version=refresher.version,
            p50_seconds=self._times.compute_quantile(MEDIAN),
            p99_seconds=self._times.compute_quantile(NEARLY_ALL),
            pending=appender.pending,
            spool_bytes=spool.waiting_bytes if spool is not None else None,
            disk_free_bytes=_find_room(self._spool_folder) if spool is not None else None,
            # The visitors of the sample are on this machine.
            only_peer=None if has_sample else self._peers.only_internal,
            unknown_slugs=dict(self.unknown_slugs.read(refresher.current, clock.now())),
        )


def register_model(metrics: Metrics, models: ModelLoader) -> None:
    metrics.add_gauge(
        "adloom_scoring_model_version", "Version of the learned model; 0 is none.", lambda: models.version
    )
    metrics.add_gauge(
        "adloom_scoring_model_age_seconds", "Since it learned its last example.", models.measure_age_seconds
    )
    metrics.add_gauge(
        "adloom_scoring_model_examples", "Impressions that it has learned from.", lambda: models.examples
    )
    metrics.add_counters(
        "adloom_scoring_model_loads",
        "Models that were published, by whether they could be read.",
        "outcome",
        lambda: {"used": models.loads, "failed": models.failures},
    )


def register_contextual(metrics: Metrics, contextual: ContextualParts, pages: PageLoader) -> None:
    metrics.add_counters(
        "adloom_page_texts",
        "Texts of pages from readers' browsers, by what became of them.",
        "outcome",
        lambda: contextual.texts.outcomes,
    )
    metrics.add_counters(
        "adloom_page_requests",
        "Requests for contextual slots, by what is known of their page.",
        "page",
        lambda: contextual.slots.asked,
    )
    metrics.add_counters(
        "adloom_page_slots",
        "Contextual slots of requests: filled, or what left them empty.",
        "outcome",
        lambda: {"filled": contextual.slots.served, **contextual.slots.unfilled},
    )
    metrics.add_gauge("adloom_pages_in_memory", "Pages of sites that are in memory.", lambda: pages.pages)
    metrics.add_gauge("adloom_page_sites_in_memory", "Sites whose pages are in memory.", lambda: pages.sites)
    metrics.add_counters(
        "adloom_page_reads",
        "Sites whose pages were read, by why; evicted ones made room.",
        "what",
        lambda: {"loaded": pages.loads, "updated": pages.updates, "evicted": pages.evictions},
    )


def register_index(metrics: Metrics, refresher: IndexRefresher, clock: Clock) -> None:
    def measure_age() -> float:
        age = refresher.measure_age(clock.now())
        return math.inf if age is None else age.total_seconds()

    metrics.add_gauge("adloom_index_version", "Catalog version of the index.", lambda: refresher.version or 0)
    metrics.add_gauge("adloom_index_age_seconds", "Since the index was known to be the newest.", measure_age)
    metrics.add_counters(
        "adloom_serve_answers",
        "Answers by whether they came from the cache.",
        "from",
        lambda: {"cache": refresher.states.hits, "decision": refresher.states.misses},
    )


def register_senders(metrics: Metrics, limiter: RequestLimiter, senders: SenderCheck) -> None:
    metrics.add_counter(
        "adloom_requests_refused", "Requests beyond the limit of their address.", lambda: limiter.refused
    )
    metrics.add_counters(
        "adloom_serve_free",
        "Answers whose offers hold nothing because of their sender, by why.",
        "reason",
        lambda: senders.free,
    )


def register_events(
    metrics: Metrics,
    events: EventRoutes,
    checks: tuple[TrafficDetector, OfferCheck],
    appender: EventAppender,
) -> None:
    metrics.add_counters(
        "adloom_batch_events",
        "Events of batches by what became of them.",
        "outcome",
        lambda: {"accepted": events.batched, "rejected": events.batch_rejected},
    )
    metrics.add_counters(
        "adloom_events_marked",
        "Events that were accepted with a doubt, by the doubt.",
        "mark",
        lambda: {mark.value: count for check in checks for mark, count in check.marked.items()},
    )
    metrics.add_counter("adloom_ledger_batches", "Appends, each of many events.", lambda: appender.batches)
    metrics.add_counters(
        "adloom_ledger_events",
        "Events by what the ledger did with them.",
        "outcome",
        lambda: {
            "appended": appender.appended,
            "spooled": appender.spooled,
            "failed": appender.failed,
            "refused": appender.refused,
            "dropped": appender.dropped,
        },
    )
    metrics.add_counter(
        "adloom_clicks_lost", "Clicks that were redirected but not recorded.", lambda: events.clicks_lost
    )
    metrics.add_gauge("adloom_ledger_pending", "Events that wait for the ledger.", lambda: appender.pending)


def register_spool(metrics: Metrics, spool: DiskSpool | None, folder: Path) -> None:
    if spool is None:
        return
    metrics.add_gauge(
        "adloom_spool_bytes", "What waits on the disk for the ledger.", lambda: spool.waiting_bytes
    )
    metrics.add_gauge(
        "adloom_spool_disk_free_bytes", "Room on the disk of the spool.", lambda: _find_room(folder)
    )
    metrics.add_counters(
        "adloom_spool_events",
        "Events by what became of them in the spool; damaged are places that could not be read.",
        "outcome",
        lambda: {
            "spooled": spool.spooled,
            "drained": spool.drained,
            "refused": spool.refused,
            "damaged": spool.damaged,
        },
    )


def _find_room(folder: Path) -> int:
    try:
        return disk_usage(folder).free
    except OSError:  # A disk that is gone has no room.
        return 0


def register_leases(metrics: Metrics, leases: LeaseClient) -> None:
    local = leases.leases
    metrics.add_gauge(
        "adloom_leases", "Campaigns with a budget that can be offered here.", lambda: local.offerable_count
    )
    metrics.add_counters(
        "adloom_lease_reports",
        "Reports about leases by what became of them; late are answers that came after the wait.",
        "outcome",
        lambda: {
            "asked": local.asked,
            "repeated": local.repeated,
            "granted": local.granted,
            "voided": local.voided,
            "late": local.late,
        },
    )
    metrics.add_counters(
        "adloom_lease_refusals",
        "Leases that were refused, by what stands in the way.",
        "reason",
        lambda: {verdict.value: count for verdict, count in local.refused.items()},
    )
    metrics.add_counter(
        "adloom_offers_left_out", "Offers that campaigns left out to keep pace.", lambda: local.left_out
    )
    metrics.add_counter("adloom_lease_sessions", "Sessions that were begun.", lambda: leases.sessions)


def register_auctions(
    metrics: Metrics, auctions: AuctionParts, frequency: FrequencyLookup, recording: RecordingParts
) -> None:
    routes, recorder, _ = auctions
    metrics.add_counters(
        "adloom_auctions",
        "Auctions by outcome; all but won are answered 204, by the cause.",
        "outcome",
        lambda: {"won": routes.won, **routes.unfilled},
    )
    metrics.add_counter(
        "adloom_auction_revenue_micros",
        "Final prices of all wins, as if each was seen once.",
        lambda: routes.revenue_micros,
    )
    metrics.add_counters(
        "adloom_auction_records",
        "Auctions by whether all their bids were recorded.",
        "outcome",
        lambda: {
            "recorded": recording.beside.kept,
            "sampled_out": recorder.sampled_out,
            "left_out": recorder.left_out + recording.left_out,
        },
    )
    metrics.add_counters(
        "adloom_frequency_looks",
        "Requests that depended on what the visitor has seen, and round trips for that.",
        "what",
        lambda: {
            "requests": frequency.asked,
            "round_trips": frequency.looked_up,
            "failures": frequency.failures,
        },
    )
    metrics.add_counters(
        "adloom_frequency_unknown",
        "Requests whose visitor's impressions were not known, by what happened to capped ads.",
        "capped_ads",
        lambda: {
            "offered": frequency.offered_unknown,
            "withheld": frequency.withheld_unknown,
        },
    )
