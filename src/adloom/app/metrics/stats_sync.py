"""What a worker shows to Prometheus of stats sync."""

from collections.abc import Iterable
from datetime import datetime

import msgspec
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from adloom.core.clock import Clock
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.telemetry.metrics import Metrics, sum_buckets
from adloom.sync.processor import SECONDS_BOUNDS, SyncTally
from adloom.sync.queue import StatsQueue
from adloom.sync.scheduler import SyncScheduler


def register_sync(  # noqa: PLR0913 - whatever there is to look at
    metrics: Metrics,
    tally: SyncTally,
    scheduler: SyncScheduler,
    *,
    queue: StatsQueue,
    worker: JobWorker,
    clock: Clock,
) -> None:
    metrics.registry.register(_Providers(tally))
    metrics.add_counters(
        "adloom_sync_changed_rows",
        "Rows of figures that a sync has changed.",
        "table",
        lambda: {"daily": tally.daily_changed, "sellpage": tally.sellpages_changed},
    )
    metrics.add_counters(
        "adloom_sync_jobs",
        "Jobs of stats sync by how an attempt ended.",
        "outcome",
        lambda: {"done": worker.done, "failed": worker.failed, "dead": worker.dead, "lost": worker.lost},
    )
    metrics.add_gauges(
        "adloom_sync_queue_depth",
        "Jobs of stats sync by where they are, as of the last time that the clock put some.",
        "state",
        lambda: msgspec.structs.asdict(queue.counts),
    )
    _register_ages(metrics, scheduler, clock)


def _register_ages(metrics: Metrics, scheduler: SyncScheduler, clock: Clock) -> None:
    """Export ages over all sellers, and of those that wait longest: one series per seller would be too many."""

    def compute_age(moment: datetime | None) -> float:
        return 0.0 if moment is None else max(0.0, (clock.now() - moment).total_seconds())

    metrics.add_gauges(
        "adloom_sync_age_seconds",
        "How long ago the seller that waits longest was synced, and the one that was synced last.",
        "seller",
        lambda: {"oldest": compute_age(scheduler.ages.oldest), "newest": compute_age(scheduler.ages.newest)},
    )
    metrics.add_gauges(
        "adloom_sync_seller_age_seconds",
        "How long ago each of the sellers was synced that wait longest, 100 of them at most.",
        "seller",
        lambda: {str(seller_id): compute_age(at) for seller_id, at in scheduler.ages.longest},
    )
    metrics.add_gauges(
        "adloom_sync_sellers",
        "Sellers that the clock syncs, and those of them whose figures are older than an hour.",
        "state",
        lambda: {"eligible": scheduler.ages.sellers, "stale": scheduler.ages.stale},
    )


class _Providers(Collector):
    """Reads the tallies at each scrape, and never before."""

    def __init__(self, tally: SyncTally) -> None:
        self._tally = tally

    def collect(self) -> Iterable[Metric]:
        fetches = CounterMetricFamily(
            "adloom_sync_fetches",
            "Fetches of an account by how they ended.",
            labels=["provider", "outcome"],
        )
        rows = CounterMetricFamily("adloom_sync_rows", "Rows fetched.", labels=["provider"])
        seconds = HistogramMetricFamily(
            "adloom_sync_fetch_seconds", "How long fetches took, with what was appended.", labels=["provider"]
        )
        for provider, tally in self._tally.providers.items():
            for outcome, count in tally.outcomes.items():
                fetches.add_metric([provider.value, outcome], count)
            rows.add_metric([provider.value], tally.rows)
            seconds.add_metric([provider.value], sum_buckets(SECONDS_BOUNDS, tally.within), tally.seconds_sum)
        return [fetches, rows, seconds]
