"""Fuzz the control plane by its own description: no 500, and no answer that the description does not have.

    uv run just fuzz                    # 3 minutes
    uv run just fuzz --max-time 600     # arguments go to Schemathesis

Schemathesis runs in an environment of its own (`uvx`), so the product does not depend on it.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

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
# Delivery is in the description too, but listens elsewhere and has its own tests.
OF_CONTROL = "^/(admin|auth|health)"
READY_LINE = "adloom ready"
STOP_SECONDS_MAX = 15.0
ANY_PORTS = ("--delivery-port", "0", "--control-port", "0", "--worker-port", "0")


def main() -> None:
    """Fuzz an empty product, and end as the fuzzer does."""
    with tempfile.TemporaryDirectory(prefix="adloom-fuzz-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # As root the database runs as another user, who has to get in.
        folder.chmod(0o755)
        with _running(folder / "data") as control_url:
            command = [
                *("uvx", "--from", FUZZER, "schemathesis", "run", f"{control_url}/openapi.json"),
                *("--header", f"Authorization: Bearer {_admin_token(folder / 'data')}"),
                *("--include-path-regex", OF_CONTROL, "--checks", ",".join(CHECKS)),
                *("--max-time", "180", "--continue-on-failure", "--warnings", "off"),
                *sys.argv[1:],
            ]
            done = subprocess.run(command, cwd=folder, check=False)  # noqa: S603 - the fuzzer, and our own words
    sys.exit(done.returncode)


@contextlib.contextmanager
def _running(data_dir: Path) -> Generator[str]:
    """Run the product without its sample, and tell where control listens."""
    command = [sys.executable, "-m", "adloom", "up", "--empty", "--data-dir", str(data_dir), *ANY_PORTS]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ADLOOM_")}
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
            yield f"http://127.0.0.1:{installation.control_port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS_MAX)


def _admin_token(data_dir: Path) -> str:
    command = [sys.executable, "-m", "adloom", "token", "--role", "admin", "--data-dir", str(data_dir)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - our own program


if __name__ == "__main__":
    main()
