"""`adloom serve`: the delivery plane alone, as many processes as asked for."""

import asyncio
from collections.abc import Mapping

import msgspec

from adloom.app.listeners import listen, port_of
from adloom.app.progress import StepProgress
from adloom.app.up.plan import delivery_children
from adloom.events.log.spool.drain import make_spool_folder
from adloom.runtime.settings import delivery_settings
from adloom.runtime.supervisor.supervisor import Supervisor, run_supervised
from adloom.runtime.telemetry.logs import configure_logs


def run(variables: Mapping[str, str], *, host: str, port: int, workers: int) -> None:
    """Run delivery processes until a signal asks to stop."""
    environment = {**variables, "ADLOOM_DELIVERY_HOST": host, "ADLOOM_DELIVERY_PORT": str(port)}
    settings = delivery_settings(environment)
    make_spool_folder(settings)
    environment["ADLOOM_SPOOL_DIR"] = str(settings.spool_directory)  # Whole: children run elsewhere.
    configure_logs(msgspec.structs.replace(settings.telemetry, process="serve"))
    with listen(host, port, count=workers, flag="--port") as listeners:
        environment["ADLOOM_DELIVERY_PORT"] = str(port_of(listeners[0]))
        first = settings.telemetry.metrics_port
        # Each process has metrics of its own, so they take the port that was given and those after it.
        metrics_ports = [first and first + number for number in range(workers)]

        async def work(supervisor: Supervisor) -> None:
            await supervisor.start(
                delivery_children(listeners, host=host, environment=environment, metrics_ports=metrics_ports)
            )
            StepProgress().print_ready(f"adloom ready: delivery {delivery_settings(environment).public_url}")
            await asyncio.Event().wait()

        asyncio.run(run_supervised(work))
