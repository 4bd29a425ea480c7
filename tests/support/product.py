"""The real product: `adloom up` as a process, whose children can be looked at and killed."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from uuid import UUID

import httpx
import msgspec
import psutil

from adloom.core.caller import Caller, Role
from adloom.runtime.auth.access_token import issue_access_token
from adloom.runtime.embedded.servers import find_database_url, find_redis_url
from adloom.runtime.installation import DataDirectory, Installation, Secrets
from tests.support.forked import run_forked
from tests.support.services import memory_folder

START_SECONDS_MAX = 100.0
ANSWER_SECONDS_MAX = 15.0
POLL_SECONDS = 0.02
MARK = (
    "LC_ADLOOM_TEST"  # Its beginning is one that the fork server knows: what it forks shows its environment.
)
# A product has a hundred megabytes at its start, and its database may log a gigabyte more.
DATA_BYTES_MIN = 6_000_000_000
# Variables that would connect the product to other servers, or change what is tested.
OWN_VARIABLES = (
    "DATABASE_URL",
    "JWT_SECRET",
    "PGSSLMODE",
    "RATE_LIMIT_PERMITS_PER_MINUTE",
    "REDIS_URL",
    "WORKER_PORT",
)
# For tests that need no pages of sites: two processes fewer to start.
NO_CRAWLS = ("--no-crawler", "--classifiers", "0")
ANY_PORTS = ("--delivery-port", "0", "--control-port", "0", "--worker-port", "0")


class Finished(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    err: str


def adloom(
    *words: str,
    cwd: Path | None = None,
    env_file: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Finished:
    """Run a command to its end."""
    named = dict(variables or {})
    if env_file is not None:
        named["ADLOOM_ENV_FILE"] = env_file
    done = run_forked(
        [sys.executable, "-m", "adloom", *words],
        cwd=cwd,
        env=clean_environment() | named,
        timeout=START_SECONDS_MAX,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def clean_environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name not in OWN_VARIABLES and not name.startswith(("ADLOOM_", "OTEL_"))
    }


def wait_until(is_so: Callable[[], bool], *, seconds: float, what: str) -> float:
    """Wait for a condition in another process, and return how long it took; without an answer it is not so yet."""
    started_at = time.monotonic()

    def is_so_now() -> bool:
        try:
            return is_so()
        except (httpx.HTTPError, urllib.error.URLError):
            return False

    while not is_so_now():
        assert time.monotonic() - started_at < seconds, f"not within {seconds} s: {what}"
        time.sleep(POLL_SECONDS)
    return time.monotonic() - started_at


@contextlib.contextmanager
def an_open_folder(parent: str | None = None) -> Generator[Path]:
    """Return a folder that every user can reach; only the user of pytest can reach its folders."""
    with tempfile.TemporaryDirectory(prefix="adloom-tests-", dir=parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def a_data_folder() -> contextlib.AbstractContextManager[Path]:
    """Return one for products: in memory where that has room for all of them, because tests wait for a slow disk."""
    return an_open_folder(memory_folder(DATA_BYTES_MIN))


def status_of(address: str) -> int | None:
    """Request an address, and return the status of the answer, or None without an answer."""
    try:
        with urllib.request.urlopen(address, timeout=ANSWER_SECONDS_MAX) as answer:  # noqa: S310 - our own
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


class Product:
    """An `adloom up` of our own on a data directory."""

    def __init__(
        self,
        data_dir: Path,
        *flags: str,
        as_user: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = data_dir
        self._mark = f"{data_dir}:{time.monotonic_ns()}"
        self._output = data_dir.with_name(f"{data_dir.name}.output")
        command = [
            *as_user,
            sys.executable,
            "-m",
            "adloom",
            "up",
            "--data-dir",
            str(data_dir),
            *ANY_PORTS,
            *flags,
        ]
        with self._output.open("wb") as writing:
            self.process = subprocess.Popen(
                command,
                cwd="/",
                env={**clean_environment(), **(variables or {}), MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> "Product":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        assert not self.left_over()

    @property
    def output(self) -> str:
        """Everything that was printed so far, by it and by its children."""
        return self._output.read_text(encoding="utf-8", errors="replace")

    @property
    def installation(self) -> Installation:
        installation = DataDirectory(self.data_dir).read_installation()
        assert installation is not None
        return installation

    @property
    def jwt_secret(self) -> str:
        return self._secrets.jwt_secret

    @property
    def _secrets(self) -> Secrets:
        secrets = DataDirectory(self.data_dir).read_secrets()
        assert secrets is not None
        return secrets

    @property
    def delivery_url(self) -> str:
        return f"http://127.0.0.1:{self.installation.delivery_port}"

    @property
    def control_url(self) -> str:
        return f"http://127.0.0.1:{self.installation.control_port}"

    @property
    def worker_url(self) -> str:
        return f"http://127.0.0.1:{self.installation.worker_port}"

    @property
    def database_url(self) -> str:
        return find_database_url({}, DataDirectory(self.data_dir))

    @property
    def redis_url(self) -> str:
        return find_redis_url({}, DataDirectory(self.data_dir))

    def wait_until_ready(self) -> "Product":
        def is_ready() -> bool:
            assert self.process.poll() is None, f"it ended with {self.process.returncode}:\n{self.output}"
            return any(line.startswith("adloom ready") for line in self.output.splitlines())

        wait_until(is_ready, seconds=START_SECONDS_MAX, what=f"ready; it printed:\n{self.output}")
        return self

    def is_well(self) -> bool:
        """Return whether all planes are ready, and PostgreSQL answers now: a health check may be a second old."""
        addresses = (
            f"{self.delivery_url}/health/ready",
            f"{self.control_url}/health/ready",
            f"{self.worker_url}/health",
        )
        if any(status_of(address) != HTTPStatus.OK for address in addresses):
            return False
        try:
            with self.admin() as admin:
                return admin.get("/admin/placements").status_code == HTTPStatus.OK
        except httpx.TransportError:
            return False

    def token(self, role: Role = Role.ADMIN, account_id: UUID | None = None) -> str:
        """Sign what `adloom token` prints, without a process of its own."""
        caller = Caller(subject="tests", role=role, account_id=account_id)
        return issue_access_token(
            self._secrets.jwt_secret, caller, now=datetime.now(UTC), lifetime=timedelta(hours=1)
        )

    def admin(self) -> httpx.Client:
        """Open a client of the control plane with an admin's token."""
        headers = {"Authorization": f"Bearer {self.token()}"}
        return httpx.Client(base_url=self.control_url, headers=headers, timeout=30)

    def children(self, kind: str) -> list[int]:
        """Return the processes of a kind: delivery, control, worker, postgres or valkey."""
        return [child.pid for child in psutil.Process(self.process.pid).children() if _kind(child) == kind]

    def kill(self, kind: str) -> int:
        """Kill one child without a chance to clean up, and return its pid."""
        # One that was killed before may not be back yet.
        wait_until(lambda: bool(self.children(kind)), seconds=60, what=f"a process to kill: {kind}")
        pid = self.children(kind)[0]
        os.kill(pid, signal.SIGKILL)
        return pid

    @contextlib.contextmanager
    def paused(self, kind: str) -> Generator[None]:
        """Let the processes of a kind do nothing for a while."""
        pids = self.children(kind)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> float:
        """Stop it, wait until it has stopped, and return how long that took."""
        started_at = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)
        return time.monotonic() - started_at

    def left_over(self) -> list[str]:
        """Return the processes of it that still run."""
        return [
            f"{process.pid} {' '.join(process.info['cmdline'] or [])}"
            for process in psutil.process_iter(["cmdline"])
            if process.pid != os.getpid() and self._is_ours(process)
        ]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            if any(word.startswith(str(self.data_dir)) for word in process.cmdline()):
                return True
            return process.environ().get(MARK) == self._mark
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False


def _kind(child: psutil.Process) -> str | None:
    try:
        words = child.cmdline()
    except psutil.NoSuchProcess:
        return None
    if "exec_child.py" in " ".join(words[:4]):
        return None
    for word in words:
        if word.startswith("adloom.app."):
            return word.removeprefix("adloom.app.")
    return {"postgres": "postgres", "valkey-server": "valkey"}.get(Path(words[0]).name) if words else None
