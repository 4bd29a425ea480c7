"""Fixtures for every test: its own database and Valkey, and no connection to the outside."""

import contextlib
import gc
import inspect
import ipaddress
import os
import resource
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest
import structlog

from adloom.runtime.embedded.nats import EmbeddedNats
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.process.tuning import pause_gc, use_one_thread
from adloom.runtime.valkey import Valkey, open_valkey
from tests.support.bytecode import compile_part
from tests.support.databases import Databases
from tests.support.examples import choose_examples
from tests.support.fork_server import WORKER
from tests.support.forked import FORKED_COMMAND, fork_server
from tests.support.library_caches import share_what_libraries_read
from tests.support.product import NO_CRAWLS, Product, wait_until
from tests.support.reruns import Reruns
from tests.support.services import NO_SERVERS, Services, ServiceStarter, ask_for_services, running_valkey
from tests.support.shared_products import (
    HEALED_SECONDS_MAX,
    SharedProducts,
    SharedProductScheduling,
    is_of_product,
    order_of,
)
from tests.support.stray_exceptions import StrayExceptions

if TYPE_CHECKING:
    from tests.support.mail_server import MailServer

STARTER = pytest.StashKey[ServiceStarter]()
PRODUCTS = pytest.StashKey[SharedProducts]()
STRAY = pytest.StashKey[StrayExceptions]()
IDLE_BEFORE = pytest.StashKey[tuple[float, float]]()
NEEDS_SERVER = frozenset(["services", "shared_valkey", "nats_server"])
# Tests open thousands of connections to PostgreSQL, and to ask for TLS and be refused takes 1 ms of each.
NO_TLS = "PGSSLMODE"
# A whole run needs about 900,000, with three workers instead of four 1,600,000; leaks of tests had come to over 2,000,000.
MEMORY_KB_MAX = 1_800_000
ANSWER_SECONDS_MAX = 30.0
SLOW_MARKERS = ({"process", "browser"}, {"slow"}, {"server"})  # The slowest first.


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.register(HandOver())
    pluginmanager.register(Reruns())
    parser.addoption("--quick", action="store_true", help="only tests that start no server and are not slow")


def pytest_configure(config: pytest.Config) -> None:
    choose_examples(is_quick=bool(config.getoption("quick")))
    refuse_outside_sockets()
    render_logs_plainly()
    share_what_libraries_read()
    wait_for_answers()
    os.environ.setdefault(NO_TLS, "disable")
    config.stash[STRAY] = StrayExceptions()
    # A shell starts background jobs with SIGINT ignored, and our children would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("quick"):
        os.environ[NO_SERVERS] = "1"
    worker_input: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker_input is None:
        use_one_thread()  # Workers inherit it; they are as many as cores.
        config.stash[STARTER] = ServiceStarter()
        config.stash[IDLE_BEFORE] = count_seconds()
    elif WORKER not in sys.modules:  # It was not forked.
        compile_part(config, int(worker_input["workerid"].removeprefix("gw")), worker_input["workercount"])


def pytest_unconfigure(config: pytest.Config) -> None:
    if PRODUCTS in config.stash:
        config.stash[PRODUCTS].stop()
    if STARTER in config.stash:
        config.stash[STARTER].stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how busy the machine was: where it was not, tests wait, and another worker would help."""
    seconds, idle = (
        now - before for now, before in zip(count_seconds(), config.stash[IDLE_BEFORE], strict=True)
    )
    terminalreporter.write_line(f"the processors were busy in {1 - idle / max(seconds, 1):.0%} of the time")


def count_seconds() -> tuple[float, float]:
    """Return the seconds of all processors since the machine started, and those in which they had nothing to do."""
    times = psutil.cpu_times()
    return sum(times), times.idle


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Make no garbage collection walk over the tests themselves: they are a million objects, and all of them stay."""
    with pause_gc():
        result = yield
        gc.freeze()  # Before a collection: it would walk over them, and find next to no garbage.
    gc.collect()  # Full collections wait for a quarter of what the last one found: now nothing.
    gc.set_threshold(20_000, 5, 5)
    return result


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of the real product in the quick lane: what they import takes seconds."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return True if is_test and config.getoption("quick") and is_of_product(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if NEEDS_SERVER & set(getattr(item, "fixturenames", ())):
            item.add_marker("server")
        if item.path.parent.name == "simulation":
            item.add_marker("slow")
    # The longest files first, so that all workers end at about the same time.
    ranks = {item: _rank(item) for item in items}
    by_file: dict[Path, list[pytest.Item]] = {}
    for item in items:
        by_file.setdefault(item.path, []).append(item)
    places = {
        path: (
            order_of(found[0].nodeid.split("::")[0]),
            min(ranks[item] for item in found),
            path.parent != Path(__file__).parent,  # Those that read the whole checkout.
        )
        for path, found in by_file.items()
    }
    items.sort(key=lambda item: places[item.path])
    if config.getoption("quick"):
        config.hook.pytest_deselected(items=[item for item in items if ranks[item] < len(SLOW_MARKERS)])
        items[:] = [item for item in items if ranks[item] == len(SLOW_MARKERS)]


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[PRODUCTS] = SharedProducts(session.items)


def _rank(item: pytest.Item) -> int:
    marked = {marker.name for marker in item.iter_markers()}
    return next((rank for rank, markers in enumerate(SLOW_MARKERS) if markers & marked), len(SLOW_MARKERS))


class HandOver:
    """Passes the address of the service starter to the xdist workers, and files that share a product to one of them."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        return SharedProductScheduling(config, log) if config.getoption("dist") == "loadfile" else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_auto_num_workers(self, config: pytest.Config) -> int:
        cores = os.cpu_count() or 1  # Some tests wait, and the processors are idle meanwhile.
        return 2 * cores if config.getoption("quick") else cores + 2

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Any) -> None:
        """Fork the workers from a process that has imported the tests; coverage has to see the imports."""
        if sys.platform == "linux" and not config.pluginmanager.has_plugin("_cov"):
            words = [sys.executable, "-I", "-S", str(FORKED_COMMAND), fork_server(), WORKER]
            for spec in specs:
                spec.python = shlex.join([*words, *map(str, config.invocation_params.args)])

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["services"] = node.config.stash[STARTER].address


def render_logs_plainly() -> None:
    """Render a log line as its fields: the default colours the source of every traceback, which costs milliseconds."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["level", "event"]),
        ]
    )


def wait_for_answers() -> None:
    """Let clients without a timeout of their own wait longer than five seconds: the machine may be busy."""
    waits = inspect.signature(httpx.Client).parameters["timeout"].default
    assert isinstance(waits, httpx.Timeout), "all clients share it"
    waits.connect = waits.read = waits.write = waits.pool = ANSWER_SECONDS_MAX


def refuse_outside_sockets() -> None:
    connect = socket.socket.connect

    def connect_inside(self: socket.socket, address: Any) -> None:
        if self.family in {socket.AF_INET, socket.AF_INET6} and not is_loopback(str(address[0])):
            raise RuntimeError(f"A test tried to reach {address!r}, which is not on this machine.")
        connect(self, address)

    socket.socket.connect = connect_inside


def is_loopback(host: str) -> bool:
    return host == "localhost" or ipaddress.ip_address(host).is_loopback


@pytest.fixture(autouse=True)
def _nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves an exception to nobody, or with which the test process holds too much; it ends last."""
    yield
    assert request.config.stash[STRAY].take() == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < MEMORY_KB_MAX


@pytest.fixture(scope="session")
def services(request: pytest.FixtureRequest) -> Services:
    """PostgreSQL, started when the first test of the run needs it."""
    worker_input: dict[str, Any] | None = getattr(request.config, "workerinput", None)
    if worker_input is None:
        return request.config.stash[STARTER].services()
    return ask_for_services(worker_input["services"])


@pytest.fixture(scope="module")
def shared_product(request: pytest.FixtureRequest) -> Iterator[Product]:
    """An empty product for tests that do not break it; each creates its own placements."""
    products, learn_soon = request.config.stash[PRODUCTS], {"ADLOOM_LEARNING_WAIT_SECONDS": "2"}
    with products.borrow("shared_product", request.path, ("--empty", *NO_CRAWLS), **learn_soon) as product:
        yield product


@pytest.fixture(scope="module")
def killed_product(request: pytest.FixtureRequest) -> Iterator[Product]:
    """An empty product with two delivery processes and neutral names, for tests that kill its processes; it heals."""
    products, neutral = request.config.stash[PRODUCTS], {"ADLOOM_PUBLIC_PREFIX": "/a"}
    with products.borrow("killed_product", request.path, ("--empty", "--workers", "2"), **neutral) as product:
        yield product


@pytest.fixture(autouse=True)
def _product_is_healed(request: pytest.FixtureRequest) -> None:
    """Wait until what the last test has killed is back: one that failed is not to pull the next along."""
    if "killed_product" in request.fixturenames:
        product: Product = request.getfixturevalue("killed_product")
        wait_until(product.is_well, seconds=HEALED_SECONDS_MAX, what="healed")


@pytest.fixture(scope="module")
def sample_product(request: pytest.FixtureRequest) -> Iterator[Product]:
    """A product with its sample; tests leave the sample as they found it."""
    with request.config.stash[PRODUCTS].borrow("sample_product", request.path) as product:
        yield product


@pytest.fixture(scope="session")
def shared_valkey() -> Iterator[EmbeddedValkey]:
    """A Valkey of this test process: it starts in milliseconds, and is emptied before each test."""
    with running_valkey() as valkey:
        yield valkey


@pytest.fixture(scope="session")
def nats_server() -> Iterator[EmbeddedNats]:
    """A NATS server of this test process."""
    from tests.support.nats_server import running_nats  # noqa: PLC0415 - few tests need its client library

    with running_nats() as server:
        yield server


@pytest.fixture
async def nats_url(nats_server: EmbeddedNats) -> AsyncIterator[str]:
    """The address of a NATS server without a stream."""
    from tests.support.nats_server import delete_stream  # noqa: PLC0415 - as above

    yield nats_server.url
    await delete_stream(nats_server.url)


@pytest.fixture(scope="session")
def databases(services: Services) -> Iterator[Databases]:
    databases = Databases(services.template_url)
    yield databases
    databases.stop()


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """The test's own empty database, with the newest schema."""
    with databases.lend() as url:
        yield url


@pytest.fixture
async def redis_url(shared_valkey: EmbeddedValkey) -> str:
    """The address of an empty Valkey."""
    async with open_valkey(shared_valkey.url) as client:
        await client.flushall()
    return shared_valkey.url


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with open_pool(database_url, size_max=10) as pool:
        yield pool


@pytest.fixture
async def valkey(redis_url: str) -> AsyncIterator[Valkey]:
    async with open_valkey(redis_url) as client:
        yield client


@contextlib.contextmanager
def start_mail_server() -> "Generator[MailServer]":
    from tests.support.mail_server import a_mail_server  # noqa: PLC0415 - few tests need its packages

    with a_mail_server() as running:
        yield running


@pytest.fixture
def mails() -> "Iterator[MailServer]":
    with start_mail_server() as running:
        yield running


@pytest.fixture(scope="module")
def mail_server() -> "Iterator[MailServer]":
    """A mail server for the tests of one file."""
    with start_mail_server() as running:
        yield running
