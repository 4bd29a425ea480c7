"""The campaign to measure, created over the admin API."""

import json
import time
import urllib.error
import urllib.request
from datetime import date
from typing import Any, Final

import msgspec

from bench.load import SERIAL, LoadError

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
