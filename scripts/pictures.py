"""Take the pictures of the documentation: start the product with its sample, photograph its pages, stop it.

    uv run just pictures

It needs a Chromium of the system; the pictures are committed, so nobody else does.
"""

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from adloom.runtime.installation import DataDirectory

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)
READY_LINE = "adloom ready"
EMAIL = "admin@adloom.local"
OWN_PASSWORD = "a password for pictures"  # noqa: S105 - of a database that is thrown away
STOP_SECONDS_MAX = 15.0
# Ads come, sliders rest, charts are drawn.
SETTLE_MILLISECONDS = 3_000
# The simulated readers are brisk at first: charts have something to show then.
FIGURES_MILLISECONDS = 60_000
PICTURE_BYTES_MAX = 250_000
ANY_PORTS = ("--delivery-port", "0", "--control-port", "0", "--worker-port", "0")
SIGNATURE = b"\x89PNG\r\n\x1a\n"


class Picture(NamedTuple):
    """A picture: its name, whose page it is, how large and in which theme; `waits` for figures to show."""

    name: str
    plane: Literal["delivery", "control"]
    path: str
    size: tuple[int, int] = (1200, 930)
    theme: Literal["light", "dark"] = "light"
    waits: bool = False


WANTED = (
    Picture("sample", "delivery", "/sample"),
    Picture("shop", "delivery", "/sample/shop", theme="dark"),
    Picture("console", "control", "/console?span=24h", size=(1400, 900), waits=True),
)


class Running(NamedTuple):
    """Where the product is, and the password of the first log-in."""

    urls: dict[str, str]
    password: str


def main() -> None:
    """Take the pictures that were named, or all."""
    named = set(sys.argv[1:]) or {picture.name for picture in WANTED}
    if unknown := named - {picture.name for picture in WANTED}:
        sys.exit(f"There is no picture {', '.join(sorted(unknown))}.")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"No browser is installed: looked for {', '.join(BROWSERS)}.")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="adloom-pictures-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        # As root the database runs as another user, who has to get in.
        folder.chmod(0o755)
        with _running(folder / "data") as running, _opened(browser) as opened:
            session = _logged_in(opened, running, folder / "session.json")
            for picture in WANTED:
                if picture.name in named:
                    _take(opened, picture, running, session)


@contextlib.contextmanager
def _running(data_dir: Path) -> Generator[Running]:
    """Run the product with its sample, and tell where it is."""
    command = [sys.executable, "-m", "adloom", "up", "--data-dir", str(data_dir), *ANY_PORTS]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ADLOOM_")}
    with subprocess.Popen(  # noqa: S603 - our own program
        command, cwd="/", env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            if not any(line.startswith(READY_LINE) for line in process.stdout):
                sys.exit("adloom up did not become ready; run it by itself to see why.")
            directory = DataDirectory(data_dir)
            installation, secrets = directory.read_installation(), directory.read_secrets()
            assert installation is not None
            assert secrets is not None
            ports = {"delivery": installation.delivery_port, "control": installation.control_port}
            urls = {plane: f"http://127.0.0.1:{port}" for plane, port in ports.items()}
            yield Running(urls, secrets.admin_password)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS_MAX)


@contextlib.contextmanager
def _opened(path: str) -> Generator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def _logged_in(browser: Browser, running: Running, kept: Path) -> Path:
    """Log in for the first time, which asks for another password; tells where the session is kept."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{running.urls['control']}/console/login")
    for passwords in ([running.password], [running.password, OWN_PASSWORD, OWN_PASSWORD]):
        page.locator("input[type=email]").fill(EMAIL)
        for field, password in zip(page.locator("input[type=password]").all(), passwords, strict=True):
            field.fill(password)
        page.keyboard.press("Enter")
        page.wait_for_load_state()
    page.wait_for_url("**/console")
    context.storage_state(path=kept)
    context.close()
    return kept


def _take(browser: Browser, picture: Picture, running: Running, session: Path) -> None:
    width, height = picture.size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=picture.theme,
        storage_state=session if picture.plane == "control" else None,
    )
    page = context.new_page()
    page.goto(f"{running.urls[picture.plane]}{picture.path}")
    page.wait_for_timeout(FIGURES_MILLISECONDS if picture.waits else SETTLE_MILLISECONDS)
    _keep(page, PICTURES / f"{picture.name}.png")
    context.close()


def _keep(page: Page, path: Path) -> None:
    path.write_bytes(packed(page.screenshot(scale="css")))
    size = path.stat().st_size
    if size > PICTURE_BYTES_MAX:
        sys.exit(f"{path} has {size} bytes, and may have {PICTURE_BYTES_MAX}.")
    print(f"{path}: {size} bytes")


def packed(png: bytes) -> bytes:
    """Pack a picture as tightly as it goes: a browser is in a hurry."""
    chunks = list(_chunks(png))
    pixels = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    kept = [chunk for chunk in chunks if chunk[0] in {b"IHDR", b"PLTE", b"tRNS"}]
    kept += [(b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    return SIGNATURE + b"".join(_chunk(kind, body) for kind, body in kept)


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    assert png.startswith(SIGNATURE)
    at = len(SIGNATURE)
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


if __name__ == "__main__":
    main()
