"""The product under test: a real `adloom up`, with one campaign created over the admin API."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from pathlib import Path

import msgspec

from adloom.runtime.ports import free_port
from bench.admin import AdminClient, seed_campaign
from bench.load import LoadError
from bench.processes import list_descendants, read_command_line, stop

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 15.0
DELIVERY_MODULE = "adloom.app.delivery"
# A bench measures the default product, not an installation configured in this environment.
OWN_VARIABLES = ("DATABASE_URL", "REDIS_URL", "JWT_SECRET", "WORKER_PORT", "RATE_LIMIT_PERMITS_PER_MINUTE")


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """A running product: its port, its processes, and what to request."""

    port: int
    pid: int
    delivery_pids: list[int]
    admin: AdminClient
    serve_path: str
    impression: str


@contextlib.contextmanager
def run_product(*, workers: int) -> Generator[Product]:
    """Run the product from an empty folder, and create a campaign."""
    with tempfile.TemporaryDirectory(prefix="adloom-bench-") as name:
        folder = Path(name)
        # As root, embedded servers run as another user, who needs access.
        folder.chmod(0o755)
        delivery_port, control_port = free_port(), free_port()
        ports = {"delivery": delivery_port, "control": control_port, "worker": free_port()}
        flags = [word for plane, port in ports.items() for word in (f"--{plane}-port", str(port))]
        with _run_up(folder, [*flags, "--workers", str(workers)]) as pid:
            admin = AdminClient(f"http://127.0.0.1:{control_port}", _create_token(folder))
            delivered = seed_campaign(admin, f"http://127.0.0.1:{delivery_port}")
            yield Product(
                port=delivery_port,
                pid=pid,
                admin=admin,
                delivery_pids=_find_delivery_pids(pid, workers),
                serve_path=delivered.serve_path,
                impression=delivered.impression,
            )


def filter_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Remove variables that would configure the product or connect it to other servers."""
    return {
        name: value
        for name, value in variables.items()
        if name not in OWN_VARIABLES and not name.startswith(("ADLOOM_", "OTEL_"))
    }


@contextlib.contextmanager
def _run_up(folder: Path, flags: list[str]) -> Generator[int]:
    output = folder / "output"
    command = [*_build_command(folder, "up"), "--empty", *flags]
    with output.open("wb") as writing:
        process = subprocess.Popen(  # noqa: S603 - our own command
            command,
            cwd=folder,
            env=filter_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_ready(process, output)
        yield process.pid
    finally:
        stop(process, seconds_max=STOP_SECONDS_MAX)


def _wait_until_ready(process: subprocess.Popen[bytes], output: Path) -> None:
    ends_at = time.monotonic() + START_SECONDS_MAX
    while True:
        said = output.read_text(encoding="utf-8", errors="replace")
        if any(line.startswith("adloom ready") for line in said.splitlines()):
            return
        if process.poll() is not None or time.monotonic() > ends_at:
            raise LoadError(f"The product did not start; it said:\n{said[-4000:].strip()}")
        time.sleep(0.05)


def _create_token(folder: Path) -> str:
    done = subprocess.run(  # noqa: S603 - our own command
        [*_build_command(folder, "token"), "--role", "admin"],
        cwd=folder,
        env=filter_environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LoadError(f"adloom token failed:\n{done.stderr.strip()}")
    return done.stdout.strip()


def _build_command(folder: Path, command: str) -> list[str]:
    return [sys.executable, "-m", "adloom", command, "--data-dir", str(folder / "data")]


def _find_delivery_pids(up: int, workers: int) -> list[int]:
    pids = [pid for pid in list_descendants(up) if DELIVERY_MODULE in read_command_line(pid)]
    if len(pids) != workers:
        raise LoadError(f"Expected {workers} delivery processes under {up}, found {len(pids)}.")
    return pids
