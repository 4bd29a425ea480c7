"""The product under test: a real `adloom up`, with one campaign created over the admin API."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

import msgspec

from adloom.runtime.ports import free_port
from bench.load import SERIAL, LoadError
from bench.processes import list_descendants, read_command_line, stop

SLUG: Final = "bench-home-hero"
REQUEST_SECONDS_MAX = 10.0
SERVED_SECONDS_MAX = 10.0
PLACEMENT: Final = {"slug": SLUG, "label": "Home, top", "layoutType": "full_slider", "maxBanners": 1}
BANNER: Final = {
    "title": "Autumn sale",
    "headline": "Up to 30 % off everything warm",
    "subheadline": "Until Sunday",
    "primaryImageUrl": "https://cdn.example/banners/autumn-sale-1200x400.webp",
    "primaryImageAlt": "A wool coat on a chair",
    "ctaLabel": "See the sale",
    "ctaUrl": "https://shop.example/sale?ref=adloom",
    "utmSource": "adloom",
    "utmMedium": "banner",
    "utmCampaign": "autumn",
}


class SeededCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """How to request and report the seeded campaign's banner."""

    serve_path: str
    impression: str


class AdminClient:
    """A small client of the admin API."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._send("POST", path, body)

    def patch(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._send("PATCH", path, body)

    def count_impressions(self, day: date) -> int:
        found = self._send("GET", f"/admin/stats/banners?from={day}&to={day}", None)
        return found["totals"]["impressions"]

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return send_request(
            urllib.request.Request(  # noqa: S310 - our own product, on loopback
                self._url + path, data=data, headers=headers, method=method
            )
        )


def seed_campaign(admin: AdminClient, delivery_url: str) -> SeededCampaign:
    """Create a placement, a banner and a campaign that links them, and wait until the banner is served."""
    placement = admin.post("/admin/placements", PLACEMENT)
    banner = admin.post("/admin/banners", BANNER)
    campaign = admin.post("/admin/campaigns", {"name": "Autumn"})
    links = f"/admin/campaigns/{campaign['id']}/placements"
    admin.post(links, {"placementId": placement["id"]})
    admin.post(f"{links}/{placement['id']}/banners", {"bannerId": banner["id"]})
    admin.patch(f"/admin/campaigns/{campaign['id']}/activate", {})
    serve_path = f"/banners/serve/{SLUG}"
    served = _wait_until_served(delivery_url + serve_path)
    return SeededCampaign(serve_path=serve_path, impression=encode_impression(served, placement["id"]))


def encode_impression(served: dict[str, Any], placement_id: str) -> str:
    """Encode a browser's report, with a placeholder for its serial number."""
    return json.dumps(
        {
            "correlationId": SERIAL,
            "bannerId": served["id"],
            "placementId": placement_id,
            "campaignId": served["campaignId"],
            "sessionId": "6f1c0f5e9d7b4a3f",
            "deviceType": "desktop",
            "pageUrl": "https://news.example/politics/2026/11/an-article-of-the-day",
            "trackingToken": served["trackingToken"],
        }
    )


def send_request(request: urllib.request.Request) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS_MAX) as answer:  # noqa: S310 - as above
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace")
        raise LoadError(f"{request.get_method()} {request.full_url} answered {error.code}: {said}") from error


def _wait_until_served(url: str) -> dict[str, Any]:
    ends_at = time.monotonic() + SERVED_SECONDS_MAX
    said: object = None
    while time.monotonic() < ends_at:
        try:
            said = send_request(urllib.request.Request(url))  # noqa: S310 - as above
        except LoadError as error:
            said = error
        else:
            if said["banners"]:
                return said["banners"][0]
        time.sleep(0.05)
    raise LoadError(f"The banner was not served within {SERVED_SECONDS_MAX:.0f} s: {said}")


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
