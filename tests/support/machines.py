"""Two of every process of ours on one PostgreSQL and one Valkey, as on two machines; delivery of one can be cut off."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import argon2
import asyncpg

from adloom.core.caller import Role
from adloom.core.ids import SystemIds, UserId
from adloom.identity import store
from adloom.identity.model import User
from adloom.runtime.ports import find_port
from tests.support.forked import ForkedPopen
from tests.support.product import clean_environment, status_of, wait_until
from tests.support.relay import Gate

START_SECONDS_MAX = 90.0
STOP_SECONDS_MAX = 30.0
SECRET = "a-secret-of-the-tests-that-is-long-enough"
EMAIL, PASSWORD = "admin@example.com", "a password of the tests"
PLANES = ("control", "delivery", "worker")
PORTS = {"control": "ADLOOM_CONTROL_PORT", "delivery": "ADLOOM_DELIVERY_PORT", "worker": "WORKER_PORT"}


class Machine:
    """One process of each kind."""

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self._folder = folder
        self._environment = environment
        self._ports = {plane: find_port() for plane in PLANES}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.changes: dict[str, dict[str, str]] = {}

    @property
    def control(self) -> str:
        return self._url("control")

    @property
    def delivery(self) -> str:
        return self._url("delivery")

    def start(self, plane: str) -> None:
        """Start a process; `wait` waits for it."""
        folder = self._folder / self.name
        folder.mkdir(exist_ok=True)
        variables = {
            **self._environment,
            **self.changes.get(plane, {}),
            "ADLOOM_PROCESS": f"{plane}-{self.name}",
            "ADLOOM_SPOOL_DIR": str(folder / "spool"),
            PORTS[plane]: str(self._ports[plane]),
        }
        with self._output(plane).open("ab") as output:
            self.processes[plane] = ForkedPopen(
                [sys.executable, "-m", f"adloom.app.{plane}"],
                cwd="/",
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def wait(self, plane: str) -> None:
        def is_ready() -> bool:
            process = self.processes[plane]
            assert process.poll() is None, f"{plane} ended:\n{self._output(plane).read_text()}"
            return status_of(f"{self._url(plane)}/health/ready") == HTTPStatus.OK

        wait_until(is_ready, seconds=START_SECONDS_MAX, what=f"{plane} of machine {self.name} is ready")

    def kill(self, plane: str) -> None:
        """Kill a process without a chance to clean up."""
        self.processes[plane].kill()
        self.processes[plane].wait()

    def stop(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _url(self, plane: str) -> str:
        return f"http://127.0.0.1:{self._ports[plane]}"

    def _output(self, plane: str) -> Path:
        return self._folder / f"{plane}-{self.name}.output"


class Machines:
    """Two machines, and the way of the second one's delivery to its servers."""

    def __init__(self, a: Machine, b: Machine, postgres: Gate, valkey: Gate) -> None:
        self.a = a
        self.b = b
        self.postgres = postgres
        self.valkey = valkey

    def __iter__(self) -> Generator[Machine]:
        yield from (self.a, self.b)


@contextlib.contextmanager
def running_machines(
    folder: Path, database_url: str, redis_url: str, *, delivery: Mapping[str, str], **variables: str
) -> Generator[Machines]:
    """Run two machines, with an admin who can log in; `delivery` are variables of delivery alone."""
    asyncio.run(_make_admin(database_url))
    environment = {
        **clean_environment(),
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "JWT_SECRET": SECRET,
        "ADLOOM_TOKEN_SECRET": SECRET,
        "ADLOOM_SECRET": SECRET,
        "ADLOOM_ASSETS_URL": (folder / "files").as_uri(),
        "ADLOOM_LOG_LEVEL": "info",
        **variables,
    }
    with contextlib.ExitStack() as stack:
        postgres, valkey = (
            stack.enter_context(Gate(urlsplit(url).port or 0).running()) for url in (database_url, redis_url)
        )
        a, b = (Machine(name, folder, environment) for name in ("a", "b"))
        machines = Machines(a, b, postgres, valkey)
        a.changes["delivery"] = {**delivery}
        b.changes["delivery"] = {
            **delivery,
            "DATABASE_URL": _go_through(database_url, postgres),
            "REDIS_URL": _go_through(redis_url, valkey),
        }
        for machine in machines:
            stack.callback(machine.stop)
            for plane in PLANES:
                machine.start(plane)
        for machine in machines:
            for plane in PLANES:
                machine.wait(plane)
        yield machines


def _go_through(url: str, gate: Gate) -> str:
    parts = urlsplit(url)
    access, _, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{access}@127.0.0.1:{gate.port}").geturl()


async def _make_admin(database_url: str) -> None:
    user = User(id=UserId(SystemIds().make()), role=Role.ADMIN, account_id=None, disabled_at=None)
    hashed = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    connection = await asyncpg.connect(database_url)
    await store.insert_user(connection, user, email=EMAIL, password_hash=hashed, now=datetime.now(UTC))
    await connection.close()
