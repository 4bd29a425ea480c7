"""Take the pictures of the documentation: start the product with its sample, photograph a page, stop it.

    uv run just pictures

It needs a Chromium of the system; the pictures are committed, so nobody else does.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

from adloom.runtime.installation import DataDirectory

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1200, 930
READY_LINE = "adloom ready"
STOP_SECONDS_MAX = 15.0
PICTURE_SECONDS_MAX = 60.0
PAGE_MILLISECONDS = 4_000
PICTURE_BYTES_MAX = 150_000
ANY_PORTS = ("--delivery-port", "0", "--control-port", "0", "--worker-port", "0")
QUIET_BROWSER = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)


def main() -> None:
    """Take every picture."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"No browser is installed: looked for {', '.join(BROWSERS)}.")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="adloom-pictures-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # As root the database runs as another user, who has to get in.
        folder.chmod(0o755)
        with _running(folder / "data") as delivery_url:
            _take(browser, f"{delivery_url}/sample", PICTURES / "sample.png", profile=folder / "browser")


@contextlib.contextmanager
def _running(data_dir: Path) -> Generator[str]:
    """Run the product with its sample, and tell where pages ask for ads."""
    command = [sys.executable, "-m", "adloom", "up", "--data-dir", str(data_dir), *ANY_PORTS]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ADLOOM_")}
    with subprocess.Popen(  # noqa: S603 - our own program
        command, cwd="/", env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if not any(line.startswith(READY_LINE) for line in process.stdout):
                sys.exit("adloom up did not become ready; run it by itself to see why.")
            installation = DataDirectory(data_dir).installation()
            assert installation is not None
            yield f"http://127.0.0.1:{installation.delivery_port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS_MAX)


def _take(browser: str, address: str, picture: Path, *, profile: Path) -> None:
    subprocess.run(  # noqa: S603 - an installed browser, and our own page
        [
            browser,
            *QUIET_BROWSER,
            f"--user-data-dir={profile}",
            f"--window-size={WIDTH},{HEIGHT}",
            f"--virtual-time-budget={PAGE_MILLISECONDS}",
            f"--screenshot={picture}",
            address,
        ],
        stderr=subprocess.DEVNULL,
        timeout=PICTURE_SECONDS_MAX,
        check=True,
    )
    size = picture.stat().st_size
    if size > PICTURE_BYTES_MAX:
        sys.exit(f"{picture} has {size} bytes, and may have {PICTURE_BYTES_MAX}.")
    print(f"{picture}: {size} bytes")


if __name__ == "__main__":
    main()
