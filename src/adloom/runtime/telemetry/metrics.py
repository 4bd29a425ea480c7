"""Metrics: a Prometheus registry for each process, served on loopback only.

Hot code keeps plain integers; a collector reads them at each scrape, in the scraping thread:

    with serve_metrics(settings.telemetry) as metrics:
        metrics.add_counter("adloom_serve_requests", "Serve requests answered.", lambda: served.total)
        metrics.add_counters("adloom_events", "Events by outcome.", "outcome", lambda: outcomes)
        metrics.add_gauge("adloom_index_version", "Catalog version of the index.", lambda: holder.index.version)

Cold code may register any other kind of `prometheus_client` at `metrics.registry`.
"""

import contextlib
import platform
import selectors
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    ProcessCollector,
    make_wsgi_app,  # pyright: ignore[reportUnknownVariableType]  it has no types
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from adloom import VERSION
from adloom.runtime.settings import SettingsError, Telemetry

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

# Never another address: the figures are not public, and Prometheus runs beside us or through a tunnel.
METRICS_HOST: Final = "127.0.0.1"


class Metrics:
    """The registry of this process, and short ways to add to it."""

    def __init__(self, process: str) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # start time, CPU, memory, open files
        GCCollector(registry=self.registry)
        self._add(lambda: [_build_info(process)])

    def add_counter(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        """Add a total that only grows; Prometheus adds `_total` to its name."""
        self._add(lambda: [CounterMetricFamily(name, help_text, value=read())])

    def add_counters(
        self, name: str, help_text: str, label: str, read: Callable[[], Mapping[str, int]]
    ) -> None:
        """Add totals that only grow, one per value of a label; the values must be few."""
        self._add(lambda: [_add_labels(CounterMetricFamily(name, help_text, labels=[label]), read())])

    def add_gauge(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        self._add(lambda: [GaugeMetricFamily(name, help_text, value=read())])

    def add_gauges(
        self, name: str, help_text: str, label: str, read: Callable[[], Mapping[str, float]]
    ) -> None:
        self._add(lambda: [_add_labels(GaugeMetricFamily(name, help_text, labels=[label]), read())])

    def add_histogram(
        self,
        name: str,
        help_text: str,
        bounds: Sequence[float],
        read: Callable[[], tuple[Sequence[int], float]],
    ) -> None:
        """Add a histogram of counts by upper bound, the last beyond all bounds, and the sum of the values."""

        def collect() -> Iterable[Metric]:
            within, total = read()
            return [
                HistogramMetricFamily(name, help_text, buckets=sum_buckets(bounds, within), sum_value=total)
            ]

        self._add(collect)

    def _add(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self.registry.register(_Reading(collect))


@contextlib.contextmanager
def serve_metrics(telemetry: Telemetry) -> Generator[Metrics]:
    """Open the registry of this process, and serve it if a port is set."""
    metrics = Metrics(telemetry.process)
    if not telemetry.metrics_port:
        yield metrics
        return
    try:
        server = make_server(
            METRICS_HOST,
            telemetry.metrics_port,
            cast("WSGIApplication", make_wsgi_app(metrics.registry)),
            ThreadingWSGIServer,
            _SilentHandler,
        )
    except OSError as error:
        raise SettingsError(
            f"ADLOOM_METRICS_PORT is {telemetry.metrics_port}: cannot listen there ({error.strerror})."
        ) from error
    stop, stopped = socket.socketpair()
    thread = threading.Thread(target=_answer_until, args=(stopped, server), name="metrics", daemon=True)
    with stop, stopped, server:
        thread.start()
        try:
            yield metrics
        finally:
            stop.send(b".")
            thread.join()


def _answer_until(stopped: socket.socket, server: WSGIServer) -> None:
    """Answer scrapes until there is a byte; asleep meanwhile, where `serve_forever` would wake twice a second."""
    server.timeout = 0  # A connection may be gone again.
    with selectors.DefaultSelector() as selector:
        for one in (server, stopped):
            selector.register(one, selectors.EVENT_READ)
        while all(key.fileobj is server for key, _ in selector.select()):
            server.handle_request()


class _SilentHandler(WSGIRequestHandler):
    """Writes no line per scrape."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library names it
        pass


class _Reading(Collector):
    """Reads the figures at each scrape, and never before."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()


def sum_buckets(bounds: Sequence[float], within: Sequence[int]) -> list[tuple[str, float]]:
    """Make counts by upper bound cumulative, as Prometheus wants them."""
    names = [*(str(bound) for bound in bounds), "+Inf"]
    return list(zip(names, accumulate(map(float, within)), strict=True))


def _build_info(process: str) -> Metric:
    facts = {"version": VERSION, "python": platform.python_version(), "process": process}
    return InfoMetricFamily("adloom_build", "What runs here.", value=facts)


def _add_labels(
    family: CounterMetricFamily | GaugeMetricFamily, figures: Mapping[str, float]
) -> CounterMetricFamily | GaugeMetricFamily:
    # A copy: the loop may add a key while the scraping thread walks over the mapping.
    for label, figure in dict(figures).items():
        family.add_metric([label], figure)
    return family
