"""A control plane with its console as a process of its own, for browsers.

`uv run --no-sync python -m tests.support.console [port]` runs one until Ctrl-C, with a few things in its catalog.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit

import argon2
import asyncpg
import httpx
import msgspec
from playwright.sync_api import Page

from adloom.console.sign_in.gate import COOKIE
from adloom.core.caller import Caller, Role
from adloom.core.ids import SystemIds, UserId
from adloom.identity import store
from adloom.identity.first_admin import create_welcome
from adloom.identity.model import User
from adloom.runtime.auth.access_token import issue_access_token
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.ports import find_port
from adloom.runtime.postgres import Pool, open_pool
from tests.support.builders import banner_body, campaign_body, placement_body
from tests.support.forked import ForkedPopen
from tests.support.product import Product
from tests.support.services import Services, running_services, running_valkey

T = TypeVar("T")

SECRET = "a-secret-of-the-tests-that-is-long-enough"
EMAIL = "admin@adloom.local"
PASSWORD = "a password of the tests"
START_SECONDS_MAX = 60.0
FAST_PASSWORDS = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def log_in(page: Page, url: str, *, email: str = EMAIL, password: str, goal: str | None = "/console") -> None:
    """Log in as the form does, and open a page: every page that a browser loads costs a second of a processor."""
    answer = httpx.post(f"{url}/console/login", data={"email": email, "password": password}, timeout=30)
    page.context.add_cookies([{"name": COOKIE, "value": answer.cookies[COOKIE], "url": url}])
    if goal is not None:
        page.goto(f"{url}{goal}")
        page.locator("main #content").wait_for()


def log_in_to(product: Product, page: Page) -> None:
    """Log in as an admin of a whole product."""
    token = issue_access_token(
        product.jwt_secret,
        Caller(subject="test", role=Role.ADMIN),
        now=datetime.now(UTC),
        lifetime=timedelta(hours=1),
    )
    httpx.post(
        f"{product.control_url}/admin/accounts",
        json={"email": "tester@example.com", "password": PASSWORD, "role": "admin"},
        headers={"Authorization": f"Bearer {token}"},
    )
    log_in(page, product.control_url, email="tester@example.com", password=PASSWORD, goal=None)


class RunningConsole(msgspec.Struct, frozen=True):
    """The address of a console, and its admin's credentials."""

    url: str
    database_url: str
    redis_url: str
    email: str = EMAIL
    password: str = PASSWORD

    def log_in(self, page: Page, *, goal: str = "/console") -> None:
        """Log in as the admin, and wait for the page behind."""
        log_in(page, self.url, email=self.email, password=self.password, goal=goal)

    def api(self, role: Role = Role.ADMIN) -> httpx.Client:
        """Use the admin API without an account."""
        caller = Caller(subject="test", role=role)
        token = issue_access_token(SECRET, caller, now=datetime.now(UTC), lifetime=timedelta(hours=1))
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"})

    def in_database(self, work: Callable[[Pool], Awaitable[None]]) -> None:
        """Run a coroutine in its database."""

        async def run() -> None:
            async with open_pool(self.database_url, size_max=2) as pool:
                await work(pool)

        _elsewhere(run)

    def welcome_link(self) -> str:
        """Create a link that logs the admin in once."""

        async def make() -> str:
            async with open_pool(self.database_url, size_max=1) as pool:
                return await create_welcome(pool, self.email, now=datetime.now(UTC))

        return f"{self.url}/console/welcome?token={_elsewhere(make)}"


@contextlib.contextmanager
def a_console(services: Services, *, port: int = 0, **environment: str) -> Generator[RunningConsole]:
    """Start a control plane with its own database and Valkey."""
    port = port or find_port()
    with _valkey() as valkey, _database(services) as database_url:
        running = RunningConsole(f"http://127.0.0.1:{port}", database_url, valkey.url)
        _elsewhere(lambda: _make_admin(database_url))
        process = ForkedPopen(
            [sys.executable, "-m", "adloom.app.control"],
            env={
                **os.environ,
                "DATABASE_URL": database_url,
                "REDIS_URL": valkey.url,
                "JWT_SECRET": SECRET,
                "ADLOOM_CONTROL_PORT": str(port),
                "ADLOOM_LOG_LEVEL": "warning",
                "RATE_LIMIT_PERMITS_PER_MINUTE": "100000",
                **environment,
            },
        )
        try:
            _wait(running.url, process)
            yield running
        finally:
            process.terminate()
            process.wait()


def _elsewhere(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    # Playwright's loop runs in the thread of the tests, and a thread has only one loop.
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(work())).result()


@contextlib.contextmanager
def _valkey() -> Generator[EmbeddedValkey]:
    with ThreadPoolExecutor(1) as threads, contextlib.ExitStack() as stack:
        valkey = threads.submit(stack.enter_context, running_valkey()).result()
        try:
            yield valkey
        finally:
            threads.submit(stack.close).result()


@contextlib.contextmanager
def _database(services: Services) -> Generator[str]:
    parts = urlsplit(services.template_url)
    name = f"console_{os.getpid()}_{time.monotonic_ns()}"
    server_url = parts._replace(path="/template1").geturl()

    async def run(statement: str) -> None:
        server = await asyncpg.connect(server_url)
        await server.execute(statement)
        await server.close()

    template = parts.path.removeprefix("/")
    _elsewhere(lambda: run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"))
    try:
        yield parts._replace(path=f"/{name}").geturl()
    finally:
        _elsewhere(lambda: run(f"DROP DATABASE {name} WITH (FORCE)"))


async def _make_admin(database_url: str) -> None:
    user = User(id=UserId(SystemIds().make()), role=Role.ADMIN, account_id=None, disabled_at=None)
    async with open_pool(database_url, size_max=1) as pool, pool.acquire() as connection:
        hashed = FAST_PASSWORDS.hash(PASSWORD)
        await store.insert_user(connection, user, email=EMAIL, password_hash=hashed, now=datetime.now(UTC))


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            httpx.get(f"{url}/health/live")
            return
        time.sleep(0.05)
    raise AssertionError("the control plane did not start")


def _fill(console: RunningConsole) -> None:
    with console.api() as client:
        for number in range(60):
            client.post(
                "/admin/campaigns", json=campaign_body(name=f"Campaign {number:02}")
            ).raise_for_status()
        client.post("/admin/banners", json=banner_body()).raise_for_status()
        client.post("/admin/placements", json=placement_body()).raise_for_status()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with running_services() as shared, a_console(shared, port=wanted) as it:
        _fill(it)
        shown = (it.url, it.email, it.password, it.welcome_link(), it.database_url, it.redis_url)
        print(*shown, sep="\n", flush=True)  # noqa: T201 - for the person who started it
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(10**6)
