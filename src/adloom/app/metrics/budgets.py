"""What a worker shows of its budget actors to Prometheus."""

from collections.abc import Mapping

from adloom.budgets.worker import BudgetActors
from adloom.runtime.telemetry.metrics import Metrics


def register_budget_actors(metrics: Metrics, budget_actors: BudgetActors) -> None:
    """Show what budget actors do in this process, who talks to them, and what they charge."""
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
