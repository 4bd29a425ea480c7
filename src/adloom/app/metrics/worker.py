"""What a worker shows to Prometheus: the event log, jobs, budgets and learning."""

from collections.abc import Callable, Iterable, Sequence

import msgspec
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from adloom.budgets.money.comparison import LedgerCheck
from adloom.budgets.money.retention import MoneyRetention
from adloom.budgets.worker import BudgetService
from adloom.catalog.schedule_sync import ScheduleSync
from adloom.events.ctr.trainer import Trainer
from adloom.events.projections.projection import Projection
from adloom.events.projections.retention import LogRetention
from adloom.events.tables.partitions import PartitionMaintenance
from adloom.identity.link.mail import LinkMailer
from adloom.market.routing import AUCTIONEER
from adloom.market.worker import MarketService
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.nats.host import NatsActorHost
from adloom.runtime.jobs.queue import JobQueue
from adloom.runtime.jobs.worker import JobWorker
from adloom.runtime.telemetry.metrics import Metrics
from adloom.stats.rollup import Rollup, StaleDays
from adloom.stats.saved_report.send import ReportMailer


def register_projections(metrics: Metrics, projections: Sequence[Projection]) -> None:
    metrics.registry.register(_Events(projections))

    def read_each(read: Callable[[Projection], int]) -> Callable[[], dict[str, int]]:
        return lambda: {one.name: read(one) for one in projections}

    metrics.add_counters(
        "adloom_projection_batches",
        "Batches applied.",
        "projection",
        read_each(lambda one: one.counters.batches),
    )
    metrics.add_counters(
        "adloom_projection_failures",
        "Tries that had to wait.",
        "projection",
        read_each(lambda one: one.failures),
    )
    metrics.add_gauges(
        "adloom_projection_is_owner",
        "Whether this process is the one that runs it.",
        "projection",
        read_each(lambda one: int(one.is_owner)),
    )


def register_ledger(metrics: Metrics, retention: LogRetention) -> None:
    metrics.add_gauges(
        "adloom_ledger_lag_entries",
        "Entries not yet applied; a group of events is one.",
        "projection",
        lambda: {name: lag.entries for name, lag in retention.lags.items()},
    )
    metrics.add_gauges(
        "adloom_ledger_lag_seconds",
        "Age of the oldest entry not yet applied.",
        "projection",
        lambda: {name: lag.seconds for name, lag in retention.lags.items()},
    )
    metrics.add_gauge(
        "adloom_ledger_entries",
        "Entries in the event log; a group of events is one.",
        lambda: retention.size.entries,
    )
    metrics.add_gauge(
        "adloom_ledger_memory_bytes", "Memory that they take, about.", lambda: retention.size.memory_bytes
    )
    metrics.add_gauge("adloom_ledger_dead_letters", "Entries laid aside.", lambda: retention.size.dead)
    metrics.add_counter("adloom_ledger_trimmed", "Old entries forgotten.", lambda: retention.trimmed)
    metrics.add_counter(
        "adloom_ledger_trimmed_for_memory",
        "Entries forgotten before their time, because memory was short.",
        lambda: retention.trimmed_for_memory,
    )


def register_days(metrics: Metrics, days: PartitionMaintenance, *, of: str, what: str) -> None:
    metrics.add_counters(
        f"adloom_{of}_partitions",
        f"Days of {what} that were made ahead of time, and that were dropped.",
        "outcome",
        lambda: {"made": days.made, "dropped": days.dropped},
    )
    metrics.add_counter(
        f"adloom_{of}_partition_failures",
        "Looks at those days that have to be repeated.",
        lambda: days.failures,
    )


def register_jobs(metrics: Metrics, queue: JobQueue, jobs: JobWorker, sync: ScheduleSync) -> None:
    metrics.add_counters(
        "adloom_jobs",
        "Jobs by how an attempt ended: done, failed, buried without attempts left, back from a lost process.",
        "outcome",
        lambda: {"done": jobs.done, "failed": jobs.failed, "dead": jobs.dead, "lost": jobs.lost},
    )
    metrics.add_counter("adloom_job_errors", "Times the queue could not be read.", lambda: jobs.errors)
    metrics.add_gauges(
        "adloom_job_queue_depth",
        "Jobs in the queue by where they are, as of the last one that was put.",
        "state",
        lambda: msgspec.structs.asdict(queue.counts),
    )
    metrics.add_counter("adloom_schedule_moves", "Statuses moved by the clock.", lambda: sync.moved)


def register_mail(metrics: Metrics, mailers: Sequence[LinkMailer | ReportMailer]) -> None:
    metrics.add_counters(
        "adloom_mails",
        "E-mails by what the mail server did: sent, or failed (tried again later).",
        "outcome",
        lambda: {
            "sent": sum(one.sent for one in mailers),
            "failed": sum(one.failed for one in mailers),
        },
    )


def register_rollup(metrics: Metrics, rollup: Rollup, stale: StaleDays) -> None:
    metrics.add_counter("adloom_rollups", "Days rolled up.", lambda: rollup.days)
    metrics.add_gauge("adloom_rollup_seconds", "How long the last of them took.", lambda: rollup.seconds)
    metrics.add_gauge(
        "adloom_rollups_stale",
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
            for outcome in ("counted", "repeated", "dropped", "dead"):
                family.add_metric([one.name, outcome], getattr(one.counters, outcome))
        return [family]


def register_budget_actors(
    metrics: Metrics, budget_actors: BudgetService, host: ActorHost | NatsActorHost | None
) -> None:
    if host is not None:
        _register_host(metrics, budget_actors, host)
    _register_inbox(metrics, budget_actors)
    metrics.add_counters(
        "adloom_money_entries",
        "Rows of the money ledger: charges, releases, and what was confirmed too late to be billed.",
        "kind",
        lambda: budget_actors.money.rows,
    )
    metrics.add_counter(
        "adloom_charged_micros", "What was charged.", lambda: budget_actors.money.charged_micros
    )
    metrics.add_counter(
        "adloom_released_micros",
        "What was held by offers that nobody confirmed in time.",
        lambda: budget_actors.money.released_micros,
    )
    metrics.add_counter(
        "adloom_charges_known_new",
        "Offers of which the money ledger was not asked.",
        lambda: budget_actors.confirms.certainly_new,
    )


def register_ledger_comparison(metrics: Metrics, books: LedgerCheck) -> None:
    metrics.add_counter(
        "adloom_books_compared",
        "Times that this worker compared the money ledger with campaigns and advertisers.",
        lambda: books.comparisons,
    )
    metrics.add_gauge(
        "adloom_books_wrong",
        "Days whose books do not agree, as of the last comparison; 0 where another worker leads.",
        lambda: len(books.wrong_days),
    )
    metrics.add_gauge("adloom_books_seconds", "How long the last comparison took.", lambda: books.seconds)


def register_money_retention(metrics: Metrics, retention: MoneyRetention | None) -> None:
    metrics.add_counter(
        "adloom_money_entries_removed",
        "Rows of old days that this worker removed from the money ledger.",
        lambda: 0 if retention is None else retention.rows,
    )


def _register_host(metrics: Metrics, budget_actors: BudgetService, host: ActorHost | NatsActorHost) -> None:
    metrics.add_gauge(
        "adloom_brain_is_owner",
        "Whether budget actors run in this process.",
        lambda: budget_actors.leader.is_leader if isinstance(host, ActorHost) else host.is_open,
    )
    metrics.add_gauge("adloom_brain_entities", "Campaigns and advertisers in memory.", lambda: host.active)
    metrics.add_gauge("adloom_brain_waiting", "Messages that wait for them.", lambda: host.waiting)
    metrics.add_gauge("adloom_brain_alarms", "Actors that have set an alarm.", lambda: host.alarms)
    metrics.add_counter("adloom_brain_batches", "Batches of messages.", lambda: host.counts.batches)
    metrics.add_counter(
        "adloom_brain_fenced",
        "Times that budget actors were found to be run by another worker.",
        lambda: host.counts.fenced,
    )

    metrics.add_counters(
        "adloom_brain_messages",
        "Messages that were taken, came to nothing, or found no inbox.",
        "outcome",
        lambda: {"taken": host.counts.steps, "failed": host.counts.failed, "refused": host.counts.refused},
    )
    metrics.add_counter(
        "adloom_brain_news_lost",
        "Messages to delivery processes that could not be published.",
        lambda: host.counts.unpublished,
    )
    metrics.add_counter(
        "adloom_brain_configurations",
        "Changes of the catalog that were passed on.",
        lambda: budget_actors.follower.notified,
    )
    decider = budget_actors.decider
    metrics.add_counters(
        "adloom_bid_decisions",
        "Multipliers that campaigns asked for.",
        "outcome",
        lambda: {"decided": decider.decided, "failed": decider.failed},
    )


def register_shards(metrics: Metrics, host: NatsActorHost) -> None:
    pulls = host.pulls
    metrics.add_gauge(
        "adloom_brain_shards", "Shards that this worker has, of 100.", lambda: len(pulls.list_held())
    )
    metrics.add_gauges(
        "adloom_brain_shard_lag",
        "Messages that wait for a shard of this worker.",
        "shard",
        lambda: {str(shard): count for shard, count in pulls.list_lags().items()},
    )
    metrics.add_counter("adloom_brain_shard_moves", "Shards that this worker got.", lambda: pulls.moves)
    metrics.add_counter(
        "adloom_brain_fenced_writes",
        "Writes of actors that were refused, because another worker had written them.",
        lambda: host.counts.fenced,
    )
    metrics.add_counter(
        "adloom_brain_streams_made", "Times that the stream was made or found.", lambda: pulls.made
    )


def _register_inbox(metrics: Metrics, budget_actors: BudgetService) -> None:
    inbox = budget_actors.inbox
    metrics.add_gauge("adloom_brain_sessions", "Delivery processes that are alive.", lambda: inbox.sessions)
    metrics.add_counter("adloom_brain_sessions_ended", "Those that are gone.", lambda: inbox.sessions_ended)
    metrics.add_gauge(
        "adloom_brain_leases", "Campaigns with leases, summed over the processes.", lambda: inbox.leases
    )
    metrics.add_counters(
        "adloom_brain_letters",
        "Mail of delivery processes by what became of it.",
        "outcome",
        lambda: inbox.envelopes,
    )


def register_market(metrics: Metrics, market: MarketService, host: ActorHost | NatsActorHost | None) -> None:
    """Register the market's metrics; a host on NATS counts messages of all its actors together."""
    metrics.add_gauge(
        "adloom_market_is_leader",
        "Whether this worker tells the contextual market of changes, and without NATS runs it.",
        lambda: float(market.leader.is_leader),
    )
    if host is None:
        return
    counts = host.counts
    metrics.add_gauge(
        "adloom_market_actors",
        "Actors of the contextual market in memory.",
        lambda: host.active if isinstance(host, ActorHost) else host.count_active({AUCTIONEER}),
    )
    if isinstance(host, ActorHost):
        metrics.add_counters(
            "adloom_market_messages",
            "Messages to actors of the contextual market, by what became of them.",
            "outcome",
            lambda: {"processed": counts.steps, "failed": counts.failed, "refused": counts.refused},
        )


def register_learning(metrics: Metrics, trainer: Trainer) -> None:
    metrics.add_counters(
        "adloom_learning_examples",
        "Impressions that were learned from in this process.",
        "outcome",
        lambda: {"clicked": trainer.clicked, "not_clicked": trainer.ignored},
    )
    metrics.add_counter(
        "adloom_learning_failures", "Turns that have to be repeated.", lambda: trainer.failures
    )
    metrics.add_gauge(
        "adloom_learning_version",
        "Version of what is learned; 0 where others learn.",
        lambda: trainer.version,
    )
    metrics.add_gauges(
        "adloom_learning_log_loss",
        "Mean log loss of the last 20,000 impressions or so, predicted before the answer was known.",
        "scoring",
        lambda: (
            {}
            if (learner := trainer.learner) is None
            else {"learned": learner.loss, "heuristic": learner.heuristic_loss}
        ),
    )
    metrics.add_gauge(
        "adloom_learning_calibration_ratio",
        "Clicks that came for each that was predicted, within bounds.",
        lambda: 1.0 if (learner := trainer.learner) is None else learner.calibration,
    )
    metrics.add_gauges(
        "adloom_ctr_calibration",
        "Predicted clicks by counted ones, over some 70,000 impressions.",
        "scoring",
        lambda: _read_calibrations(trainer),
    )


def _read_calibrations(trainer: Trainer) -> dict[str, float]:
    learner = trainer.learner
    if learner is None:
        return {}
    return {one.scoring: one.ratio for one in learner.calibrations if one.ratio is not None}
