"""Fuzz both planes by their own description: no 500, and no answer that the description does not have.

    uv run just fuzz                    # 3 minutes each
    uv run just fuzz --max-time 600     # arguments go to Schemathesis

Schemathesis runs in an environment of its own (`uvx`), so the product does not depend on it.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx

from adloom.runtime.installation import DataDirectory

FUZZER = "schemathesis==4.32.5"
# What a description promises, and that what it does not have is refused: a method, a request without a token.
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "ignored_auth",
    "unsupported_method",
    "allow_header_conformance",
)
# Answers that do not end.
STREAMS = "(/stream|/events)$"
READY_LINE = "adloom ready"
STOP_SECONDS_MAX = 15.0
ANY_PORTS = ("--delivery-port", "0", "--control-port", "0", "--worker-port", "0")


def main() -> None:
    """Fuzz an empty product, and end as the fuzzer does with the plane that it has more to say about."""
    with tempfile.TemporaryDirectory(prefix="adloom-fuzz-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # As root the database runs as another user, who has to get in.
        folder.chmod(0o755)
        with _running(folder / "data") as urls:
            token = f"Authorization: Bearer {_admin_token(folder / 'data')}"
            document = httpx.get(f"{urls[0]}/openapi.json", timeout=60).json()
            codes = [
                _fuzz(folder, urls[0], split_plane(document, is_delivery=False), "--header", token),
                _fuzz(folder, urls[1], split_plane(document, is_delivery=True)),
            ]
    sys.exit(max(codes))


def split_plane(document: dict[str, Any], *, is_delivery: bool) -> dict[str, Any]:
    """Return the part of a description that is about one plane: only operations of delivery name their server."""
    paths = {
        path: {method: one for method, one in item.items() if ("servers" in one) == is_delivery}
        for path, item in document["paths"].items()
    }
    return {**document, "paths": {path: item for path, item in paths.items() if item}}


def _fuzz(folder: Path, url: str, document: dict[str, Any], *words: str) -> int:
    (folder / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    command = [
        *("uvx", "--from", FUZZER, "schemathesis", "run", "openapi.json", "--url", url, *words),
        *("--exclude-path-regex", STREAMS, "--checks", ",".join(CHECKS)),
        *("--max-time", "180", "--continue-on-failure", "--warnings", "off"),
        *sys.argv[1:],
    ]
    return subprocess.run(command, cwd=folder, check=False).returncode  # noqa: S603 - the fuzzer, and our own words


@contextlib.contextmanager
def _running(data_dir: Path) -> Generator[tuple[str, str]]:
    """Run the product without its sample and without limits; return where control and delivery listen."""
    command = [sys.executable, "-m", "adloom", "up", "--empty", "--data-dir", str(data_dir), *ANY_PORTS]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ADLOOM_")}
    environment["ADLOOM_TRAFFIC_LIMITS"] = "off"
    with (
        (data_dir.parent / "log").open("w") as log,
        subprocess.Popen(  # noqa: S603 - our own program
            command, cwd="/", env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            if not any(line.startswith(READY_LINE) for line in process.stdout):
                sys.exit("adloom up did not become ready; run it by itself to see why.")
            installation = DataDirectory(data_dir).read_installation()
            assert installation is not None
            ports = (installation.control_port, installation.delivery_port)
            yield (f"http://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS_MAX)


def _admin_token(data_dir: Path) -> str:
    command = [sys.executable, "-m", "adloom", "token", "--role", "admin", "--data-dir", str(data_dir)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - our own program


if __name__ == "__main__":
    main()
