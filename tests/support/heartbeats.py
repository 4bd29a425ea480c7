"""Heartbeats of processes that do not run."""

from adloom.core.clock import ManualClock
from adloom.runtime.settings import Telemetry
from adloom.runtime.telemetry.heartbeat import HeartbeatPublisher, Reading
from adloom.runtime.valkey import Valkey
from tests.support.builders import NOON


async def publish_heartbeat(valkey: Valkey, process: str, reading: Reading, **settings: str) -> None:
    telemetry = Telemetry(
        process=process, log_level="info", log_format="json", metrics_port=None, otlp_endpoint=None
    )
    publisher = HeartbeatPublisher(
        valkey,
        ManualClock(NOON),
        telemetry=telemetry,
        settings=settings,
        read=lambda: reading,
        is_serving=reading.index_version is not None,
    )
    await publisher.publish()
