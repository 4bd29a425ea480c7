"""The classifier: works off the queue of pages and says what they are about."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from adloom.app.health import answer_health, run_until_stopped, wait_until_lasting
from adloom.app.process import RenewalError, run_process
from adloom.core.clock import SystemClock
from adloom.core.ids import SystemIds
from adloom.pages.classify.language_model import LanguageModelClassifier, open_model_client
from adloom.pages.classify.model_questions import PROVIDERS
from adloom.pages.classify.protocol import Classifier
from adloom.pages.classify.queue import STREAM
from adloom.pages.classify.worker import ClassifyWorker
from adloom.runtime.background_settings import (
    ClassifierSettings,
    LanguageModelSettings,
    read_classifier_settings,
)
from adloom.runtime.postgres import open_pool
from adloom.runtime.process.tuning import use_one_thread
from adloom.runtime.supervisor.liveness_pipe import is_supervised
from adloom.runtime.telemetry.heartbeat import HeartbeatPublisher, mask_settings
from adloom.runtime.telemetry.metrics import Metrics
from adloom.runtime.valkey import open_valkey

POOL_SIZE: Final = 4  # As many as pages are worked on at once.
# Twice what it needs. Beyond this the process ends, and is started again: nothing is lost.
MEMORY_BYTES_MAX: Final = 400 * 2**20

log: structlog.stdlib.BoundLogger = structlog.get_logger()


def main() -> None:
    use_one_thread()
    run_process(read_classifier_settings, classify)


async def classify(settings: ClassifierSettings, metrics: Metrics) -> None:
    """Classify pages until a signal asks to stop."""
    clock = SystemClock()
    async with (
        open_pool(settings.services.database_url, size_max=POOL_SIZE) as pool,
        open_valkey(settings.services.redis_url) as valkey,
        open_classifier(settings.language_model) as load,
    ):
        worker = ClassifyWorker(
            pool,
            valkey,
            load,
            # After a restart it has the same name and finds its own entries.
            consumer=f"{settings.telemetry.process}@{socket.gethostname()}",
            clock=clock,
            ids=SystemIds(),
            fresh_hours=settings.page_fresh_hours,
        )
        _register(metrics, worker)
        heartbeat = HeartbeatPublisher(
            valkey, clock, telemetry=settings.telemetry, settings=mask_settings(settings)
        )
        health = answer_health(settings.host, settings.port, STREAM, pool=pool, valkey=valkey)
        ends: list[Coroutine[Any, Any, object]] = [wait_until_lasting(_is_too_large, polls=1)]
        if is_supervised(os.environ):
            # A process that has loaded the classifier keeps 35 MB of it. Without a supervisor it would not be restarted.
            ends.append(worker.unloaded.wait())
        if await run_until_stopped([worker.run, heartbeat.run], health, *ends):
            raise RenewalError


@asynccontextmanager
async def open_classifier(
    settings: LanguageModelSettings,
) -> AsyncGenerator[Callable[[], Coroutine[Any, Any, Classifier]]]:
    """Yield what loads the classifier of the settings."""
    api = PROVIDERS.get(settings.provider)
    if api is None:
        yield load_embedded
        return
    assert settings.key, "checked where settings are read"
    async with open_model_client() as http:
        classifier = LanguageModelClassifier(
            http,
            api,
            key=settings.key,
            model=settings.model,
            url=settings.url,
            fallback=load_embedded,
            requests_per_minute=settings.requests_per_minute,
        )

        async def load() -> Classifier:
            return classifier

        yield load


async def load_embedded() -> Classifier:
    """Load NumPy, the encoder and the phrases: some seconds and 150 MB, so not before the first page."""
    from adloom.pages.classify.embedded.classifier import load_embedded_classifier  # noqa: PLC0415 - see above

    classifier = await asyncio.to_thread(load_embedded_classifier)
    log.info("classifier_loaded", name=classifier.name, version=classifier.version)
    return classifier


def _is_too_large() -> bool:
    used = read_memory_bytes()
    if used > MEMORY_BYTES_MAX:
        log.error("classifier_too_large", bytes=used, bytes_max=MEMORY_BYTES_MAX)
    return used > MEMORY_BYTES_MAX


def read_memory_bytes() -> int:
    """Return the resident memory of this process; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - as short
            return int(file.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0


def _register(metrics: Metrics, worker: ClassifyWorker) -> None:
    tally = worker.tally
    metrics.add_counters(
        "adloom_classify_pages", "Pages by what came of them.", "outcome", lambda: dict(tally.outcomes)
    )
    metrics.add_counter(
        "adloom_classify_seconds", "Time spent on classifying.", lambda: tally.milliseconds / 1000
    )
    metrics.add_counter("adloom_classify_waits", "Times that a server was away.", lambda: tally.away)
    metrics.add_gauge(
        "adloom_classify_queue_length", "Pages that wait or are worked on.", lambda: tally.queue_length
    )


if __name__ == "__main__":
    main()
