"""What a delivery process shows of its learned model to Prometheus."""

from adloom.runtime.telemetry.metrics import Metrics
from adloom.serving.background.model_loader import ModelLoader


def register_model(metrics: Metrics, keeper: ModelLoader) -> None:
    """Show which model a delivery process predicts with."""
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
