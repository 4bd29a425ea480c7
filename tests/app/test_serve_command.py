"""`adloom serve` as a process: delivery alone, with external servers."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from adloom.runtime.ports import find_port
from tests.support.product import clean_environment, status_of, wait_until

pytestmark = pytest.mark.process


async def test_serve_replaces_a_killed_process_and_stops_cleanly(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    port = find_port()
    output = tmp_path / "output"
    variables = {
        **clean_environment(),
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "ADLOOM_TOKEN_SECRET": "s" * 40,
        "ADLOOM_SPOOL_DIR": str(tmp_path / "spool"),
    }
    command = [sys.executable, "-m", "adloom", "serve", "--workers", "2", "--port", str(port)]
    serve = start(command, variables, output)
    try:
        wait_until(lambda: "\nadloom ready" in "\n" + output.read_text(), seconds=60, what="ready")
        children = psutil.Process(serve.pid).children()
        first, second = delivery_processes(serve)

        first.kill()
        wait_until(
            lambda: {second} < set(running := delivery_processes(serve)) and first not in running,
            seconds=60,
            what="replaced",
        )
        assert status_of(f"http://127.0.0.1:{port}/health/live") == 200
        children += psutil.Process(serve.pid).children()
    finally:
        serve.send_signal(signal.SIGINT)
        serve.wait(30)

    assert serve.returncode == 0
    assert not any(child.is_running() for child in children)


def delivery_processes(serve: subprocess.Popen[bytes]) -> list[psutil.Process]:
    running = psutil.Process(serve.pid).children()
    return [one for one in running if _name_of(one).startswith("delivery-")]


def _name_of(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def start(command: list[str], variables: dict[str, str], output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as writing:
        return subprocess.Popen(command, env=variables, stdout=writing, stderr=subprocess.STDOUT)
