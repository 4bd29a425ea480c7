"""The learner of a worker, and what it shows to Prometheus."""

from collections.abc import Iterable
from datetime import timedelta

from adloom.core.clock import Clock
from adloom.events.ctr.publish import ModelPublisher
from adloom.events.ctr.store import LEARNING, LearningStore
from adloom.events.ctr.trainer import Trainer
from adloom.events.log.stream import Lag, ValkeyEventLog
from adloom.events.projections.projection import Projection
from adloom.runtime.postgres import Pool
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import Valkey


def make_trainer(
    pool: Pool, valkey: Valkey, clock: Clock, *, folding: Iterable[Projection], wait_seconds: int
) -> Trainer:
    """Make the trainer; it learns while this worker runs the projection that it learns from."""
    [projection] = [one for one in folding if one.name == LEARNING]
    ledger = ValkeyEventLog(valkey)

    async def lag(cursor: str) -> Lag:
        return await ledger.measure_lag(LEARNING, cursor)

    return Trainer(
        LearningStore(pool),
        ModelPublisher(valkey),
        clock,
        wait=timedelta(seconds=wait_seconds),
        is_owner=lambda: projection.is_owner,
        lag=lag,
    )


def register_learning(metrics: Metrics, trainer: Trainer) -> None:
    metrics.counters(
        "adloom_learning_examples",
        "Impressions that were learned from in this process.",
        "outcome",
        lambda: {"clicked": trainer.clicked, "not_clicked": trainer.ignored},
    )
    metrics.counter("adloom_learning_failures", "Turns that have to be repeated.", lambda: trainer.failures)
    metrics.gauge(
        "adloom_learning_version",
        "Version of what is learned; 0 where others learn.",
        lambda: trainer.version,
    )
    metrics.gauges(
        "adloom_learning_log_loss",
        "Mean log loss of the last 20,000 impressions or so, predicted before the answer was known.",
        "scoring",
        lambda: (
            {}
            if (learner := trainer.learner) is None
            else {"learned": learner.loss, "heuristic": learner.heuristic_loss}
        ),
    )
    metrics.gauge(
        "adloom_learning_calibration_ratio",
        "Clicks that came for each that was predicted, within bounds.",
        lambda: 1.0 if (learner := trainer.learner) is None else learner.calibration,
    )
