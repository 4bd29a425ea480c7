"""What surrounds the work of every process: its settings, logs, metrics, traces and event loop."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar

import uvloop

from adloom.runtime.process.tuning import raise_open_files
from adloom.runtime.settings import Telemetry
from adloom.runtime.supervisor.child import RENEWAL_CODE
from adloom.runtime.supervisor.liveness_pipe import run_with_signs
from adloom.runtime.supervisor.start_gate import wait_for_start
from adloom.runtime.telemetry.logs import configure_logs
from adloom.runtime.telemetry.metrics import Metrics, serve_metrics
from adloom.runtime.telemetry.tracing import configure_tracing


class ProcessSettings(Protocol):
    """What the settings of all processes have in common."""

    @property
    def telemetry(self) -> Telemetry: ...


class RenewalError(Exception):
    """The process has grown by its work and has none: a new one in its place is smaller."""


S = TypeVar("S", bound=ProcessSettings)


def run_process(
    read_settings: Callable[[Mapping[str, str]], S], work: Callable[[S, Metrics], Coroutine[Any, Any, None]]
) -> None:
    """Run a process until its work ends, or asks for a new process."""
    settings = read_settings(os.environ)
    raise_open_files()
    configure_logs(settings.telemetry)

    async def start() -> None:
        await wait_for_start(os.environ)
        await work(settings, metrics)

    with (
        serve_metrics(settings.telemetry) as metrics,
        configure_tracing(settings.telemetry),
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        try:
            runner.run(run_with_signs(start, os.environ))
        except RenewalError:
            sys.exit(RENEWAL_CODE)
