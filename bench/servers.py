"""Temporary servers for benches: PostgreSQL, Valkey and a worker as `adloom up` runs them, and nginx as a reference."""

import asyncio
import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from adloom.budgets.transport.wire import INBOX_CHANNEL
from adloom.runtime import migrate
from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.http.fast.fast_routes import FastAnswer, FastRoute, FastRoutes, encode_head
from adloom.runtime.http.fast.protocol import make_protocol
from adloom.runtime.http.plain import PlainApp
from adloom.runtime.http.server import serve
from adloom.runtime.ports import find_port, is_taken
from adloom.runtime.postgres import Pool, open_pool
from adloom.runtime.supervisor.program import Program, send, start
from adloom.runtime.valkey import Valkey, open_valkey
from bench.figures import PROGRESS
from bench.fill import fill_catalog
from bench.load import FLOOR, NGINX, BenchSubject, Target
from bench.processes import LoadError, keep_off_last_cpu, list_descendants, measure_usage, stop

PASSWORD: Final = "a-password-of-the-bench"  # noqa: S105 - of a server that is gone in a minute
POOL_SIZE_MAX: Final = 4
START_SECONDS_MAX: Final = 10.0
DELIVERY_SECONDS_MAX: Final = 120.0
WORKER_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 15.0
POLL_SECONDS: Final = 0.02
QUIET_SECONDS: Final = 0.5
QUIET_SECONDS_MAX: Final = 30.0
QUIET_SHARE_MAX: Final = 0.05  # Of a core.
# A bench measures the default product, not an installation configured in this environment.
OWN_VARIABLES: Final = (
    "DATABASE_URL",
    "REDIS_URL",
    "JWT_SECRET",
    "WORKER_PORT",
    "RATE_LIMIT_PERMITS_PER_MINUTE",
)
CHECKOUT: Final = Path(__file__).parents[1]
NO_OP_ANSWER: Final = FastAnswer(encode_head(HTTPStatus.OK, b"application/json"), b'{"status":"ok"}')
NO_OP_PATH: Final = "/health/live"
ANSWER_BYTES: Final = 1_332  # About what serve answers with one banner.
NGINX_CONFIGURATION: Final = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/files;
  }}
}}
"""


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """PostgreSQL and Valkey, and the log file of a worker."""

    pool: Pool
    valkey: Valkey
    database_url: str
    redis_url: str
    log: Path


@contextlib.asynccontextmanager
async def run_servers(*, banners: int = 1) -> AsyncGenerator[Servers]:
    """Run servers with a catalog, and remove them at the end."""
    PROGRESS.say("starting PostgreSQL and Valkey")
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(open_folder())
        postgres = EmbeddedPostgres(
            folder / "postgres", listening=Listening(port=find_port()), password=PASSWORD
        )
        valkey = EmbeddedValkey(folder / "valkey", listening=Listening(port=find_port()), password=PASSWORD)
        for server in (postgres, valkey):
            await server.prepare()
            log = folder / f"{server.program.name}.log"
            await stack.enter_async_context(run_program(server.program, log))
            await server.wait_until_ready()
        await migrate.upgrade(postgres.url)
        pool = await stack.enter_async_context(open_pool(postgres.url, size_max=POOL_SIZE_MAX))
        await fill_catalog(pool, banners)
        yield Servers(
            pool=pool,
            valkey=await stack.enter_async_context(open_valkey(valkey.url)),
            database_url=postgres.url,
            redis_url=valkey.url,
            log=folder / "worker.log",
        )


@contextlib.asynccontextmanager
async def run_worker(servers: Servers) -> AsyncGenerator[int]:
    """Run a production worker, wait until its budget actors receive messages, and yield its pid."""
    program = build_program(servers, "worker", WORKER_PORT=str(find_port()))
    async with run_program(program, servers.log) as pid:
        ends_at = asyncio.get_running_loop().time() + WORKER_SECONDS_MAX
        while not (await servers.valkey.pubsub_numsub(INBOX_CHANNEL))[0][1]:
            if asyncio.get_running_loop().time() > ends_at:
                said = servers.log.read_text(encoding="utf-8", errors="replace")
                raise LoadError(f"The worker did not start; it said:\n{said[-4000:].strip()}")
            await asyncio.sleep(POLL_SECONDS)
        yield pid


def build_program(servers: Servers, name: str, **variables: str) -> Program:
    """Build a process of the product that uses these servers."""
    return Program(
        name=name,
        arguments=(sys.executable, "-P", "-m", f"adloom.app.{name}"),
        environment={
            **filter_environment(os.environ),
            "DATABASE_URL": servers.database_url,
            "REDIS_URL": servers.redis_url,
            "ADLOOM_PROCESS": name,
            **variables,
        },
    )


@contextlib.asynccontextmanager
async def run_program(program: Program, log: Path) -> AsyncGenerator[int]:
    with log.open("wb") as output:
        process = await start(program, output=output)
    try:
        yield process.pid
    finally:
        send(process, program.stop_signal)
        try:
            async with asyncio.timeout(STOP_SECONDS_MAX):
                await process.wait()
        except TimeoutError:
            send(process, program.death_signal)
            await process.wait()


@contextlib.contextmanager
def open_folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="adloom-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # As root, the servers run as another user, who needs access.
        yield folder


async def wait_until_quiet(pid: int) -> None:
    """Wait until a process is idle."""
    for _ in range(int(QUIET_SECONDS_MAX / QUIET_SECONDS)):
        before = measure_usage([pid]).cpu_seconds
        await asyncio.sleep(QUIET_SECONDS)
        if measure_usage([pid]).cpu_seconds - before < QUIET_SECONDS * QUIET_SHARE_MAX:
            return


def filter_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Remove variables that would configure the product or connect it to other servers."""
    return {
        name: value
        for name, value in variables.items()
        if name not in OWN_VARIABLES and not name.startswith(("ADLOOM_", "OTEL_"))
    }


@contextlib.contextmanager
def run_delivery(
    module: str, *words: object, python: str = sys.executable, checkout: Path = CHECKOUT
) -> Generator[tuple[int, int]]:
    """Run a delivery process of a bench, perhaps of another checkout; yield its pid and its port."""
    port = find_port()
    command = [python, "-m", module, str(port), *map(str, words)]
    environment = {**filter_environment(os.environ), "PYTHONPATH": str(checkout / "src")}
    process = subprocess.Popen(command, env=environment, cwd=checkout)  # noqa: S603 - ourselves
    keep_off_last_cpu(process.pid)
    try:
        _wait_until_answers(process, port)
        yield process.pid, port
    finally:
        stop(process)


async def serve_routes(port: int, routes: Sequence[FastRoute]) -> None:
    """Serve the routes of a bench, and a no-op, as a delivery process does."""
    no_op = FastRoute(b"GET", NO_OP_PATH.encode(), is_prefix=False, handler=lambda _: NO_OP_ANSWER)
    with socket.create_server(("127.0.0.1", port)) as listener:
        protocol = make_protocol(FastRoutes([*routes, no_op]))
        await serve(PlainApp({}), listener, protocol=protocol, drain_seconds_max=1)


def find_nginx() -> str | None:
    """Look for nginx on the path, and in Debian's directories that are not on a user's path."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def run_nginx(program: str, *, size: int = ANSWER_BYTES) -> Generator[BenchSubject]:
    """Run nginx with one worker and one file of a size on loopback from a temporary folder, as the current user."""
    with open_folder() as folder:
        port, error_log = find_port(), folder / "error.log"
        (folder / "files").mkdir()
        (folder / "files" / "banner.json").write_text("x" * size, encoding="utf-8")
        # Only root may, and must, name the worker's user.
        user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
        configuration = NGINX_CONFIGURATION.format(folder=folder, port=port, user=user)
        (folder / "nginx.conf").write_text(configuration, encoding="utf-8")
        command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(error_log)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - nginx, our own words
        try:
            _wait_until_listening(process, port, error_log, has_workers=True)
            target = Target(name=NGINX, port=port, path="/banner.json")
            yield BenchSubject(target=target, pids=[process.pid, *list_descendants(process.pid)])
        finally:
            stop(process)


@contextlib.contextmanager
def run_floor(*, size: int = ANSWER_BYTES) -> Generator[BenchSubject]:
    """Run the least server in Python, with an answer of a size."""
    with open_folder() as folder:
        port, error_log = find_port(), folder / "error.log"
        with error_log.open("wb") as errors:
            command = [sys.executable, "-m", "bench.routes.floor", str(port), str(size)]
            process = subprocess.Popen(command, stderr=errors)  # noqa: S603 - ourselves
        try:
            _wait_until_listening(process, port, error_log)
            yield BenchSubject(target=Target(name=FLOOR, port=port, path="/"), pids=[process.pid])
        finally:
            stop(process)


def _wait_until_listening(
    process: subprocess.Popen[bytes], port: int, error_log: Path, *, has_workers: bool = False
) -> None:
    ends_at = time.monotonic() + START_SECONDS_MAX
    while not (is_taken("127.0.0.1", port) and (list_descendants(process.pid) or not has_workers)):
        if process.poll() is not None or time.monotonic() > ends_at:
            said = error_log.read_text(encoding="utf-8") if error_log.is_file() else "nothing"
            raise LoadError(f"The server did not start; it said: {said.strip()}")
        time.sleep(POLL_SECONDS)


def _wait_until_answers(process: subprocess.Popen[bytes], port: int) -> None:
    ends_at = time.monotonic() + DELIVERY_SECONDS_MAX
    while process.poll() is None and time.monotonic() < ends_at:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{NO_OP_PATH}"):
                return
        except OSError:
            time.sleep(0.1)
    raise LoadError("The delivery process did not start.")
