"""What a worker shows of itself and of the ledger to Prometheus."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from adloom.budgets.worker import BudgetActors
from adloom.catalog.schedule_sync import ScheduleSync
from adloom.events.projections.projection import Projection
from adloom.events.projections.retention import LogRetention
from adloom.events.tables.partitions import PartitionMaintenance
from adloom.runtime.jobs.queue import JobQueue
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.telemetry.metrics import Metrics
from adloom.stats.rollup import Rollup, StaleDays


def register_projections(metrics: Metrics, projections: Sequence[Projection]) -> None:
    metrics.registry.register(_Events(projections))

    def each(read: Callable[[Projection], int]) -> Callable[[], dict[str, int]]:
        return lambda: {one.name: read(one) for one in projections}

    metrics.counters(
        "adloom_projection_batches", "Batches folded.", "projection", each(lambda one: one.counters.batches)
    )
    metrics.counters(
        "adloom_projection_failures",
        "Tries that had to wait.",
        "projection",
        each(lambda one: one.failures),
    )
    metrics.gauges(
        "adloom_projection_is_owner",
        "Whether this process is the one that folds.",
        "projection",
        each(lambda one: int(one.is_owner)),
    )


def register_ledger(metrics: Metrics, upkeep: LogRetention) -> None:
    metrics.gauges(
        "adloom_ledger_lag_entries",
        "Entries not yet folded.",
        "projection",
        lambda: {name: lag.entries for name, lag in upkeep.lags.items()},
    )
    metrics.gauges(
        "adloom_ledger_lag_seconds",
        "Age of the oldest entry not yet folded.",
        "projection",
        lambda: {name: lag.seconds for name, lag in upkeep.lags.items()},
    )
    metrics.gauge("adloom_ledger_entries", "Entries in the ledger.", lambda: upkeep.size.entries)
    metrics.gauge(
        "adloom_ledger_memory_bytes", "Memory that they take, about.", lambda: upkeep.size.memory_bytes
    )
    metrics.gauge("adloom_ledger_dead_letters", "Entries laid aside.", lambda: upkeep.size.dead)
    metrics.counter("adloom_ledger_trimmed", "Old entries forgotten.", lambda: upkeep.trimmed)


def register_days(metrics: Metrics, days: PartitionMaintenance) -> None:
    metrics.counters(
        "adloom_event_days",
        "Days of the event tables that were made ahead of time, and that were dropped.",
        "outcome",
        lambda: {"made": days.made, "dropped": days.dropped},
    )
    metrics.counter(
        "adloom_event_days_failures", "Looks at the days that have to be repeated.", lambda: days.failures
    )


def register_auction_days(metrics: Metrics, days: PartitionMaintenance) -> None:
    metrics.counters(
        "adloom_auction_days",
        "Days of recorded auctions that were made ahead of time, and that were dropped.",
        "outcome",
        lambda: {"made": days.made, "dropped": days.dropped},
    )
    metrics.counter(
        "adloom_auction_days_failures", "Looks at those days that have to be repeated.", lambda: days.failures
    )


def register_jobs(metrics: Metrics, queue: JobQueue, jobs: JobWorker, sync: ScheduleSync) -> None:
    metrics.counters(
        "adloom_jobs",
        "Jobs by how an attempt ended: done, failed, buried without attempts left, back from a lost process.",
        "outcome",
        lambda: {"done": jobs.done, "failed": jobs.failed, "dead": jobs.dead, "lost": jobs.lost},
    )
    metrics.counter("adloom_job_errors", "Times the queue could not be read.", lambda: jobs.errors)
    metrics.gauges(
        "adloom_job_queue_depth",
        "Jobs in the queue by where they are, as of the last one that was put.",
        "state",
        lambda: msgspec.structs.asdict(queue.counts),
    )
    metrics.counter("adloom_schedule_moves", "Statuses moved by the clock.", lambda: sync.moved)


def register_rollup(metrics: Metrics, rollup: Rollup, stale: StaleDays) -> None:
    metrics.counter("adloom_rollup_days", "Days rolled up.", lambda: rollup.days)
    metrics.gauge("adloom_rollup_seconds", "How long the last of them took.", lambda: rollup.seconds)
    metrics.gauge(
        "adloom_rollup_stale_days",
        "Days whose night has come and whose rollup lacks events, as of the last look.",
        lambda: stale.count,
    )


class _Events(Collector):
    """Reads the tallies at each scrape, and never before."""

    def __init__(self, projections: Sequence[Projection]) -> None:
        self._projections = projections

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            "adloom_projection_events",
            "Events by what a projection did with them.",
            labels=["projection", "outcome"],
        )
        for one in self._projections:
            counters = one.counters
            family.add_metric([one.name, "counted"], counters.counted)
            family.add_metric([one.name, "repeated"], counters.repeated)
            family.add_metric([one.name, "dropped"], counters.dropped)
            family.add_metric([one.name, "dead"], counters.dead)
        return [family]


def register_budget_actors(metrics: Metrics, budget_actors: BudgetActors) -> None:
    _register_host(metrics, budget_actors)
    _register_inbox(metrics, budget_actors)
    metrics.counters(
        "adloom_money_entries",
        "Rows of the money ledger: charges, releases, and what was confirmed too late to be billed.",
        "kind",
        lambda: budget_actors.money.rows,
    )
    metrics.counter("adloom_charged_micros", "What was charged.", lambda: budget_actors.money.charged_micros)
    metrics.counter(
        "adloom_charges_known_new",
        "Offers of which the money ledger was not asked.",
        lambda: budget_actors.charges.certainly_new,
    )


def _register_host(metrics: Metrics, budget_actors: BudgetActors) -> None:
    host = budget_actors.host
    metrics.gauge(
        "adloom_brain_is_owner",
        "Whether budget actors run in this process.",
        lambda: budget_actors.leader.is_leader,
    )
    metrics.gauge("adloom_brain_entities", "Campaigns and advertisers in memory.", lambda: host.active)
    metrics.gauge("adloom_brain_waiting", "Messages that wait for them.", lambda: host.waiting)
    metrics.gauge("adloom_brain_alarms", "Those who want to be woken some time.", lambda: host.alarms)
    metrics.counter("adloom_brain_batches", "Batches of messages.", lambda: host.counts.batches)
    metrics.counter(
        "adloom_brain_fenced",
        "Times that budget actors were found to be another's.",
        lambda: host.counts.fenced,
    )

    def messages() -> Mapping[str, int]:
        counts = host.counts
        return {"taken": counts.steps, "failed": counts.failed, "refused": counts.refused}

    metrics.counters(
        "adloom_brain_messages",
        "Messages that were taken, came to nothing, or found no inbox.",
        "outcome",
        messages,
    )
    metrics.counter(
        "adloom_brain_news_lost", "News that nobody could be told.", lambda: host.counts.unpublished
    )
    metrics.counter(
        "adloom_brain_configurations",
        "Changes of the catalog that were told.",
        lambda: budget_actors.follower.told,
    )


def _register_inbox(metrics: Metrics, budget_actors: BudgetActors) -> None:
    inbox = budget_actors.inbox
    metrics.gauge("adloom_brain_sessions", "Delivery processes that are alive.", lambda: inbox.sessions)
    metrics.counter("adloom_brain_sessions_ended", "Those that are gone.", lambda: inbox.sessions_ended)
    metrics.gauge("adloom_brain_leases", "Campaigns in which they have leases, each.", lambda: inbox.leases)
    metrics.counters(
        "adloom_brain_letters",
        "Mail of delivery processes by what became of it.",
        "outcome",
        lambda: inbox.envelopes,
    )
