"""nginx with one worker and one file of 500 bytes, a well-known reference."""

import contextlib
import getpass
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import msgspec

from adloom.runtime.ports import free_port, is_taken
from bench.figures import NGINX
from bench.load import LoadError, Target
from bench.processes import list_descendants, stop

FILE_BYTES = 500
START_SECONDS_MAX = 5.0
STOP_SECONDS_MAX = 5.0
CONFIGURATION = """
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


class Nginx(msgspec.Struct, frozen=True, kw_only=True):
    """A running nginx: its target and processes."""

    target: Target
    pids: list[int]


def find_nginx() -> str | None:
    """Look for nginx on the path, and in Debian's directories that are not on a user's path."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def run_nginx(program: str) -> Generator[Nginx]:
    """Run nginx on loopback from a temporary folder, as the current user."""
    with tempfile.TemporaryDirectory(prefix="adloom-nginx-") as name:
        folder, port = Path(name), free_port()
        (folder / "files").mkdir()
        (folder / "files" / "banner.json").write_text("x" * FILE_BYTES, encoding="utf-8")
        (folder / "nginx.conf").write_text(build_configuration(folder, port), encoding="utf-8")
        command = [program, "-p", name, "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - nginx, our own words
        try:
            _wait_until_listening(process, port, folder / "error.log")
            target = Target(name=NGINX, port=port, path="/banner.json")
            yield Nginx(target=target, pids=[process.pid, *list_descendants(process.pid)])
        finally:
            stop(process, seconds_max=STOP_SECONDS_MAX)


def build_configuration(folder: Path, port: int) -> str:
    """Build nginx's configuration; only root may, and must, name the worker's user."""
    user = f"user {getpass.getuser()};" if os.geteuid() == 0 else ""
    return CONFIGURATION.format(folder=folder, port=port, user=user)


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, error_log: Path) -> None:
    ends_at = time.monotonic() + START_SECONDS_MAX
    while not (is_taken("127.0.0.1", port) and list_descendants(process.pid)):
        if process.poll() is not None or time.monotonic() > ends_at:
            said = error_log.read_text(encoding="utf-8") if error_log.is_file() else "nothing"
            raise LoadError(f"nginx did not start; it said: {said.strip()}")
        time.sleep(0.02)
