"""What a worker shows of its brains to Prometheus."""

from collections.abc import Mapping

from adloom.budgets.worker import Brains
from adloom.runtime.telemetry.metrics import Metrics


def register_brains(metrics: Metrics, brains: Brains) -> None:
    """Show what brains do in this process, who talks to them, and what they charge."""
    _register_host(metrics, brains)
    _register_room(metrics, brains)
    metrics.counters(
        "adloom_money_entries",
        "Rows of the money ledger: charges, releases, and what was confirmed too late to be billed.",
        "kind",
        lambda: brains.money.rows,
    )
    metrics.counter("adloom_charged_micros", "What was charged.", lambda: brains.money.charged_micros)
    metrics.counter(
        "adloom_charges_known_new",
        "Offers of which the money ledger was not asked.",
        lambda: brains.charges.certainly_new,
    )


def _register_host(metrics: Metrics, brains: Brains) -> None:
    host = brains.host
    metrics.gauge("adloom_brain_is_owner", "Whether brains run in this process.", lambda: brains.turn.is_ours)
    metrics.gauge("adloom_brain_entities", "Campaigns and advertisers in memory.", lambda: host.active)
    metrics.gauge("adloom_brain_waiting", "Messages that wait for them.", lambda: host.waiting)
    metrics.gauge("adloom_brain_alarms", "Those who want to be woken some time.", lambda: host.alarms)
    metrics.counter("adloom_brain_batches", "Batches of messages.", lambda: host.counts.batches)
    metrics.counter(
        "adloom_brain_fenced", "Times that brains were found to be another's.", lambda: host.counts.fenced
    )

    def messages() -> Mapping[str, int]:
        counts = host.counts
        return {"taken": counts.steps, "failed": counts.failed, "refused": counts.refused}

    metrics.counters(
        "adloom_brain_messages",
        "Messages that were taken, came to nothing, or found no room.",
        "outcome",
        messages,
    )
    metrics.counter(
        "adloom_brain_news_lost", "News that nobody could be told.", lambda: host.counts.unpublished
    )
    metrics.counter(
        "adloom_brain_configurations", "Changes of the catalog that were told.", lambda: brains.follower.told
    )


def _register_room(metrics: Metrics, brains: Brains) -> None:
    room = brains.room
    metrics.gauge("adloom_brain_sessions", "Delivery processes that are alive.", lambda: room.sessions)
    metrics.counter("adloom_brain_sessions_ended", "Those that are gone.", lambda: room.sessions_ended)
    metrics.gauge("adloom_brain_leases", "Campaigns in which they have leases, each.", lambda: room.leases)
    metrics.counters(
        "adloom_brain_letters",
        "Mail of delivery processes by what became of it.",
        "outcome",
        lambda: room.letters,
    )
