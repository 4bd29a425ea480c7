"""The product under test: a real `adloom up`, with a campaign imported over the admin API."""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from adloom.runtime.ports import find_port
from bench.figures import PROGRESS
from bench.load import SERIAL
from bench.processes import LoadError, find_descendants, stop
from bench.servers import filter_environment, open_folder

SLUG: Final = "bench-home-hero"
PAID_SLUG: Final = "bench-paid"
PAID_PATH: Final = f"/banners/serve/{PAID_SLUG}"
REQUEST_SECONDS_MAX: Final = 10.0
SERVED_SECONDS_MAX: Final = 20.0
START_SECONDS_MAX: Final = 120.0
POLL_SECONDS: Final = 0.05
PROXY: Final = "127.0.0.1"  # Trusted to name its clients; what comes from it without a name is not counted.
NOBODY: Final = "0192e4a0-0000-7000-8000-ffffffffffff"
# An impression costs a thousandth of a unit; no bench spends this budget.
PRICED: Final = {"bidAmount": 1, "budgetDailyPaisa": 1_000_000_000_000, "pacingStrategy": "Accelerated"}
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


class Product(msgspec.Struct, frozen=True, kw_only=True):
    """A running product: its ports and processes, and what to request."""

    port: int
    control_port: int
    token: str
    pid: int
    delivery_pids: list[int]
    serve_path: str = f"/banners/serve/{SLUG}"
    impression: str = ""

    def import_catalog(self, name: str, *, campaigns: int, slots: int, terms: Mapping[str, object]) -> None:
        """Import a placement with its campaigns, and wait until it is served."""
        document = build_document(name, campaigns=campaigns, slots=slots, terms=terms)
        self.ask_control("/admin/import", document)
        self.wait_until_served(f"/banners/serve/{name}")

    def import_auction(self, name: str, *, campaigns: int) -> None:
        """Import an auctioned placement with its campaigns, and wait until it is sold."""
        document = build_document(name, campaigns=campaigns, slots=1, terms=PRICED)
        document["placements"][0] |= {"delivery": "auction", "placementType": "feed"}
        self.ask_control("/admin/import", document)
        address = f"http://127.0.0.1:{self.port}/api/v1/ads/serve"
        body = {"userId": NOBODY, "placement": name}
        _wait_for_ads(
            name, lambda: _send(address, {"Content-Type": "application/json"}, body), "impressionUrl"
        )

    def ask_control(
        self, path: str, body: dict[str, Any] | None = None, *, method: str | None = None
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        return _send(f"http://127.0.0.1:{self.control_port}{path}", headers, body, method)

    def serve(self, path: str) -> dict[str, Any]:
        return _send(f"http://127.0.0.1:{self.port}{path}", {})

    def wait_until_served(self, path: str) -> dict[str, Any]:
        """Return the first answer with banners: the index follows the catalog, and leases follow demand."""
        return _wait_for_ads(path, lambda: self.serve(path), "banners")


@contextlib.contextmanager
def run_product(*, workers: int, python: str = sys.executable) -> Generator[Product]:
    """Run the product from an empty folder behind a proxy on this machine, and create a campaign.

    With the `python` of another checkout it is the product of that.
    """
    PROGRESS.say("starting the product")
    with open_folder() as folder:
        ports = {plane: find_port() for plane in ("delivery", "control", "worker")}
        flags = [word for plane, port in ports.items() for word in (f"--{plane}-port", str(port))]
        with _run_up(python, folder, [*flags, "--workers", str(workers)]) as pid:
            product = Product(
                port=ports["delivery"],
                control_port=ports["control"],
                token=_create_token(python, folder),
                pid=pid,
                delivery_pids=find_descendants(pid, "adloom.app.delivery"),
            )
            if len(product.delivery_pids) != workers:
                raise LoadError(f"Expected {workers} delivery processes, found {product.delivery_pids}.")
            product.import_catalog(SLUG, campaigns=1, slots=1, terms={})
            impression = encode_impression(product.wait_until_served(product.serve_path))
            yield msgspec.structs.replace(product, impression=impression)


def build_document(name: str, *, campaigns: int, slots: int, terms: Mapping[str, object]) -> dict[str, Any]:
    """Build an import document with a placement and its campaigns."""
    keys = [f"{name}-{number}" for number in range(campaigns)]
    placement = {"slug": name, "label": name, "layoutType": "full_slider", "maxBanners": slots}
    return {
        "placements": [placement],
        "banners": [{"key": f"b-{key}", **BANNER} for key in keys],
        "campaigns": [{"key": f"c-{key}", "name": key, "status": "active", **terms} for key in keys],
        "links": [{"campaignId": f"c-{key}", "placementId": name} for key in keys],
        "assignments": [
            {"campaignId": f"c-{key}", "placementId": name, "bannerId": f"b-{key}"} for key in keys
        ],
    }


def encode_impression(served: dict[str, Any]) -> str:
    """Encode a browser's report of the first banner, with a placeholder for its serial number."""
    banner = served["banners"][0]
    return json.dumps(
        {
            "correlationId": SERIAL,
            "bannerId": banner["id"],
            "placementId": served["placement"]["id"],
            "campaignId": banner["campaignId"],
            "sessionId": "6f1c0f5e9d7b4a3f",
            "deviceType": "desktop",
            "pageUrl": "https://news.example/politics/2026/11/an-article-of-the-day",
            "trackingToken": banner["trackingToken"],
        }
    )


def _wait_for_ads(what: str, ask: Callable[[], dict[str, Any]], field: str) -> dict[str, Any]:
    """Ask until an answer has something in a field."""
    ends_at = time.monotonic() + SERVED_SECONDS_MAX
    said: object = None
    while time.monotonic() < ends_at:
        try:
            said = ask()
        except LoadError as error:
            said = error
        else:
            if said.get(field):
                return said
        time.sleep(POLL_SECONDS)
    raise LoadError(f"{what}: no ad came within {SERVED_SECONDS_MAX:.0f} s: {said}")


def _send(
    url: str, headers: Mapping[str, str], body: dict[str, Any] | None = None, method: str | None = None
) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=dict(headers), method=method)  # noqa: S310 - our own product
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS_MAX) as answer:  # noqa: S310 - as above
            return json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace")
        raise LoadError(f"{url} answered {error.code}: {said}") from error


@contextlib.contextmanager
def _run_up(python: str, folder: Path, flags: list[str]) -> Generator[int]:
    output = folder / "output"
    with output.open("wb") as writing:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*_build_command(python, folder, "up"), "--empty", *flags],
            cwd=folder,
            env={**filter_environment(os.environ), "ADLOOM_TRUSTED_PROXIES": PROXY},
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_ready(process, output)
        yield process.pid
    finally:
        stop(process)


def _wait_until_ready(process: subprocess.Popen[bytes], output: Path) -> None:
    ends_at = time.monotonic() + START_SECONDS_MAX
    while True:
        said = output.read_text(encoding="utf-8", errors="replace")
        if any(line.startswith("adloom ready") for line in said.splitlines()):
            return
        if process.poll() is not None or time.monotonic() > ends_at:
            raise LoadError(f"The product did not start; it said:\n{said[-4000:].strip()}")
        time.sleep(POLL_SECONDS)


def _create_token(python: str, folder: Path) -> str:
    done = subprocess.run(  # noqa: S603 - our own command
        [*_build_command(python, folder, "token"), "--role", "admin"],
        cwd=folder,
        env=filter_environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LoadError(f"adloom token failed:\n{done.stderr.strip()}")
    return done.stdout.strip()


def _build_command(python: str, folder: Path, command: str) -> list[str]:
    return [python, "-m", "adloom", command, "--data-dir", str(folder / "data")]
