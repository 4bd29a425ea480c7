"""A publisher's site on its own origin, and a client that places ads on it."""

import contextlib
import http.server
import threading
from collections.abc import Generator
from typing import Any

import httpx

from tests.support.days import these_days
from tests.support.product import Product, wait_until

SERVED_SECONDS_MAX = 60.0
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 300">'
    '<rect width="800" height="300" fill="{0}"/><circle cx="620" cy="130" r="90" fill="#fff8"/>'
    '<path d="M0 300 L180 170 L330 260 L520 120 L800 300Z" fill="#0003"/></svg>'
)
COLOURS = ("#c2613a", "#2f6f73", "#7a5c9e", "#b08a2e", "#3d5a98")


def tag(product: Product, how: str = "async", **options: str) -> str:
    """Return the first of the two lines of the tag."""
    attributes = "".join(f' data-{name}="{value}"' for name, value in options.items())
    return f'<script {how} src="{product.delivery_url}/tag.js"{attributes}></script>'


def place(slug: str, more: str = "") -> str:
    """Return the second line of the tag."""
    return f'<div data-adloom="{slug}" {more}></div>'


class Site:
    """Pages by their paths, under `localhost`, which is not the origin of a product on 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.url = f"http://localhost:{port}"
        self.pages: dict[str, tuple[str, str]] = {"/favicon.ico": ("image/svg+xml", SVG.format("#888"))}
        self.asked: list[str] = []
        for number, colour in enumerate(COLOURS):
            self.pages[f"/picture-{number}.svg"] = ("image/svg+xml", SVG.format(colour))

    def page(self, path: str, body: str, *, head: str = "") -> str:
        """Add a page, and return its address."""
        text = f'<!doctype html><html lang="en"><head><meta charset="utf-8">{head}<title>A page</title></head><body>{body}</body></html>'
        self.pages[path] = ("text/html; charset=utf-8", text)
        return f"{self.url}{path}"

    def picture(self, number: int = 0) -> str:
        return f"{self.url}/picture-{number % len(COLOURS)}.svg"


@contextlib.contextmanager
def a_site() -> Generator[Site]:
    """Serve a site until it is no longer needed."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.asked.append(self.path)
            content_type, text = site.pages.get(self.path.partition("?")[0], ("text/plain", ""))
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of its parent
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Seller:
    """Puts ads on the placements of a product, over its admin API."""

    def __init__(self, product: Product, admin: httpx.Client, site: Site) -> None:
        self._product = product
        self.admin = admin
        self._site = site

    def made(self, path: str, **body: object) -> dict[str, Any]:
        answer = self.admin.post(f"/admin/{path}", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def ads(self, slug: str, layout: str, count: int = 1, **banner: object) -> list[str]:
        """Create a placement with some ads, wait until it is served, and return the ids of its banners."""
        placement = self.made(
            "placements", slug=slug, label=slug, layoutType=layout, maxBanners=max(count, 1)
        )
        campaign = self.made("campaigns", name=slug)
        links = f"campaigns/{campaign['id']}/placements"
        self.made(links, placementId=placement["id"])
        ids: list[str] = []
        for number in range(count):
            one = self.made("banners", **(self.banner(slug, number) | banner))
            self.made(f"{links}/{placement['id']}/banners", bannerId=one["id"], displayOrder=number)
            ids.append(one["id"])
        assert self.admin.patch(f"/admin/campaigns/{campaign['id']}/activate").status_code == 200
        self.wait_until_served(slug, count)
        return ids

    def wait_until_served(self, slug: str, count: int) -> None:
        def is_served() -> bool:
            answer = httpx.get(f"{self._product.delivery_url}/banners/serve/{slug}")
            return len(answer.json().get("banners", "?")) == count

        wait_until(is_served, seconds=SERVED_SECONDS_MAX, what=f"{slug} is served")

    def counted(self, banner_id: str) -> tuple[int, int]:
        """Return the impressions and clicks of a banner that are believed."""
        totals = self.totals(banner_id)
        return (
            totals["impressions"] - totals["unboundImpressions"],
            totals["clicks"] - totals["unboundClicks"],
        )

    def totals(self, banner_id: str) -> dict[str, int]:
        asked = {**these_days(), "bannerId": banner_id}
        return self.admin.get("/admin/stats/banners", params=asked).raise_for_status().json()["totals"]

    def banner(self, slug: str, number: int) -> dict[str, object]:
        return {
            "title": f"{slug} {number}",
            "primaryImageUrl": self._site.picture(number),
            "primaryImageAlt": "Hills and the sun",
            "headline": f"Autumn {number + 1} is here",
            "subheadline": "Warm things for cold evenings",
            "description": "Blankets, lamps and tea.",
            "ctaLabel": "Have a look",
            "ctaUrl": f"{self._site.url}/shop",
        }


@contextlib.contextmanager
def a_seller(product: Product, site: Site) -> Generator[Seller]:
    """Return a seller with an admin's token."""
    headers = {"Authorization": f"Bearer {product.token()}"}
    with httpx.Client(base_url=product.control_url, headers=headers) as admin:
        yield Seller(product, admin, site)
