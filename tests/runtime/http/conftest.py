"""Servers under test, and connections to them."""

from collections.abc import Callable, Iterator

import pytest

from adloom.runtime.http.fast.fast_routes import Limits
from tests.support.echo_server import RunningServer
from tests.support.http_wire import Wire


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """A server shared by a file's tests, with the default limits except for the answer timeout."""
    running = RunningServer(Limits(answer_seconds_max=1))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def wire(server: RunningServer) -> Iterator[Wire]:
    """A fresh connection to the shared server."""
    with server.connect() as connection:
        yield connection


@pytest.fixture
def start_server() -> Iterator[Callable[[Limits], RunningServer]]:
    """Start servers with a test's own limits."""
    running: list[RunningServer] = []

    def start(limits: Limits) -> RunningServer:
        running.append(RunningServer(limits))
        running[-1].start()
        return running[-1]

    yield start
    for one in running:
        one.stop()
