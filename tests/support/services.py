"""Real PostgreSQL and Valkey from the wheels, started once per run and shared by its processes."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Generator
from multiprocessing.connection import Client, Listener
from pathlib import Path

import msgspec

from adloom.runtime.embedded.postgres import EmbeddedPostgres
from adloom.runtime.embedded.sockets import Listening
from adloom.runtime.embedded.valkey import EmbeddedValkey
from adloom.runtime.ports import find_port
from adloom.runtime.schema import migrate_here
from adloom.runtime.supervisor.program import Program, build_command

NO_SERVERS = "ADLOOM_TESTS_START_NO_SERVER"
PASSWORD = "a-password-of-the-tests"
STOP_SECONDS_MAX = 10
MEMORY = Path("/dev/shm")  # noqa: S108 - the folder itself gets a name of its own
MEMORY_BYTES_MIN = 2_000_000_000
# Tests need no durability through a crash of the machine.
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",  # Databases are emptied, and dropped, sooner.
    "max_connections": "200",
    "log_min_messages": "panic",
}
# One role has to show a password.
ACCESS = "host all rotating 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"


class Services(msgspec.Struct, frozen=True):
    """The addresses of the shared servers; the database is the template that each test copies."""

    template_url: str


def memory_folder(bytes_min: int = MEMORY_BYTES_MIN) -> str | None:
    """Return a folder in memory if it has room for one database per test; containers may have very little."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > bytes_min:
        return str(MEMORY)
    return None


@contextlib.contextmanager
def running_services() -> Generator[Services]:
    folder = Path(tempfile.mkdtemp(prefix="adloom-tests-", dir=memory_folder()))
    folder.chmod(0o755)
    postgres = EmbeddedPostgres(
        folder / "postgres", listening=Listening(port=find_port()), password=PASSWORD, options=FAST
    )
    asyncio.run(postgres.prepare())
    # Tests open thousands of connections, and a check of a password takes each side 5 ms.
    (folder / "postgres" / "pg_hba.conf").write_text(ACCESS, encoding="ascii")
    try:
        with running(postgres.program):
            asyncio.run(postgres.wait_until_ready())
            asyncio.run(migrate_here(postgres.url))
            yield Services(template_url=postgres.url)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class ServiceStarter:
    """Starts the services when the first test of any process needs them, and stops them."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._services: Services | None = None
        self._lock = threading.Lock()
        self._listener = Listener(family="AF_UNIX")
        self.address = str(self._listener.address)
        threading.Thread(target=self._answer_workers, daemon=True).start()

    def services(self) -> Services:
        with self._lock:
            if self._services is None:
                self._services = self._stack.enter_context(running_services())
            return self._services

    def stop(self) -> None:
        self._listener.close()
        self._stack.close()

    def _answer_workers(self) -> None:
        # The thread must live: the kernel ends the children of a thread that ends.
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.send_bytes(msgspec.json.encode(self.services()))


def ask_for_services(address: str) -> Services:
    with Client(address, family="AF_UNIX") as connection:
        return msgspec.json.decode(connection.recv_bytes(), type=Services)


@contextlib.contextmanager
def running_valkey(
    *, appendfsync: str = "no", memory_bytes_max: int | None = None
) -> Generator[EmbeddedValkey]:
    folder = Path(tempfile.mkdtemp(prefix="adloom-tests-", dir=memory_folder()))
    valkey = EmbeddedValkey(
        folder,
        listening=Listening(port=find_port()),
        password=PASSWORD,
        appendfsync=appendfsync,
        memory_bytes_max=memory_bytes_max,
        has_all_rights=True,
    )
    asyncio.run(valkey.prepare())
    try:
        with running(valkey.program):
            asyncio.run(valkey.wait_until_ready())
            yield valkey
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running(program: Program) -> Generator[subprocess.Popen[bytes]]:
    assert not os.environ.get(NO_SERVERS), "This test starts a server: mark it `server`."
    process = subprocess.Popen(
        build_command(program), env=program.environment, cwd="/", start_new_session=True
    )
    try:
        yield process
    finally:
        process.send_signal(program.stop_signal)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
