"""`adloom bench freshness`: how soon contextual delivery follows a change, on the real product under load.

A page is given with its categories: how long until it has its ad. A campaign is paused: how long until no delivery
process shows it. Readers ask for other pages meanwhile, and bids change so that the worker auctions all the time.
"""

import http.client
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from statistics import median
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from bench.figures import BenchTable, find_p99, judge, show
from bench.processes import LoadError, ShowStatus
from bench.product import Product, run_product

TOPIC: Final = "539"
OTHER_TOPIC: Final = "210"
SLOT: Final = "freshness"
DOMAIN: Final = "freshness.test"
PROCESSES: Final = 4
BACKGROUND_PAGES: Final = 100
BACKGROUND_CAMPAIGNS: Final = 30
READERS: Final = 4
SHOWN_SECONDS_MAX: Final = 2.0
GONE_SECONDS_MAX: Final = 1.0
WAIT_SECONDS_MAX: Final = 20.0
# Each connection is of one process; so many in a row without the ad meet all four, but for one time in 5,000.
CONNECTIONS_IN_A_ROW: Final = 40


def main(
    *,
    rounds: Annotated[int, typer.Option(min=1, max=10_000, help="Pages and pauses that are measured.")] = 100,
) -> None:
    """Measure how soon a classified page has its ad, and a paused campaign is gone from all processes."""
    show(lambda say: measure_freshness(rounds, say), width=110)


def measure_freshness(rounds: int, say: ShowStatus) -> BenchTable:
    with run_product(workers=PROCESSES) as product:
        market = FreshMarket(product)
        shown: list[float] = []
        gone: list[float] = []
        with market.keep_busy():
            for number in range(rounds):
                say(f"{number + 1} of {rounds}")
                campaign = market.add_campaign(TOPIC, 9)
                shown.append(market.time_page(number))
                gone.append(market.time_pause(campaign, number))
    return BenchTable(
        title=f"{rounds} pages and pauses, {PROCESSES} delivery processes, {READERS} readers without a pause",
        headings=["seconds", "median", "p99", "most"],
        rows=[_describe("a classified page has its ad", shown), _describe("a paused campaign is gone", gone)],
        goals=[
            judge(
                "a classified page has its ad within 2 s (p99)", find_p99(shown), at_most=SHOWN_SECONDS_MAX
            ),
            judge(
                "a paused campaign is gone from all processes within 1 s (p99)",
                find_p99(gone),
                at_most=GONE_SECONDS_MAX,
            ),
        ],
    )


class FreshMarket:
    """A site with a slot and many pages, and campaigns that want them."""

    def __init__(self, product: Product) -> None:
        self._product = product
        site = product.ask_control(
            "/admin/sites", {"domain": DOMAIN, "cronSchedule": None, "approvalMode": "automatic"}
        )
        self._pages = f"/admin/sites/{site['id']}/pages"
        slot = {"slug": SLOT, "label": SLOT, "layoutType": "sidebar_single", "delivery": "contextual"}
        product.ask_control("/admin/placements", {**slot, "siteId": site["id"]})
        image = {"primaryImageUrl": "https://cdn.example/a.png", "ctaUrl": "https://shop.example/"}
        self._banner = product.ask_control("/admin/banners", {"title": "Ad", **image})["id"]
        for number in range(BACKGROUND_PAGES):
            self._give_page(f"other-{number}", OTHER_TOPIC)
        self._others = [self.add_campaign(OTHER_TOPIC, 1) for _ in range(BACKGROUND_CAMPAIGNS)]

    def add_campaign(self, topic: str, bid: float) -> str:
        body = {"name": "C", "bidAmount": bid, "categories": [topic]}
        campaign = self._product.ask_control("/admin/campaigns", body)["id"]
        self._product.ask_control(f"/admin/campaigns/{campaign}/creatives", {"bannerId": self._banner})
        self._change(campaign, "activate")
        return campaign

    def time_page(self, number: int) -> float:
        """Add a page, and measure the seconds until its ad is served."""
        self._give_page(f"new-{number}", TOPIC)
        return _wait(lambda: self._ask(f"new-{number}") is not None)

    def time_pause(self, campaign: str, number: int) -> float:
        """Pause a campaign, and measure the seconds until no process serves its ad."""
        self._change(campaign, "pause")
        started_at = last_seen = time.monotonic()
        row = 0
        while row < CONNECTIONS_IN_A_ROW:
            row += 1
            if self._ask(f"new-{number}") is not None:
                row, last_seen = 0, time.monotonic()
                if last_seen > started_at + WAIT_SECONDS_MAX:
                    raise LoadError("A paused campaign goes on being shown.")
        return last_seen - started_at

    @contextmanager
    def keep_busy(self) -> Generator[None]:
        """Have readers and editors until the end."""
        ended = threading.Event()
        threads = [threading.Thread(target=self._read, args=(ended, reader)) for reader in range(READERS)]
        threads.append(threading.Thread(target=self._edit, args=(ended,)))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def _read(self, ended: threading.Event, reader: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._product.port)
        number = reader
        while not ended.is_set():
            connection.request("GET", _name_path(f"other-{number % BACKGROUND_PAGES}"))
            connection.getresponse().read()
            number += 1

    def _edit(self, ended: threading.Event) -> None:
        number = 0
        while not ended.wait(0.5):
            campaign = self._others[number % len(self._others)]
            self._send(f"/admin/campaigns/{campaign}", "PATCH", {"bidAmount": 1 + number % 7})
            number += 1

    def _give_page(self, name: str, topic: str) -> None:
        categories = [{"id": topic, "confidence": 0.9}]
        self._product.ask_control(self._pages, {"url": f"https://{DOMAIN}/{name}", "categories": categories})

    def _change(self, campaign: str, to: str) -> None:
        self._send(f"/admin/campaigns/{campaign}/{to}", "PATCH", None)

    def _send(self, path: str, method: str, body: dict[str, Any] | None) -> None:
        self._product.ask_control(path, body, method=method)

    def _ask(self, name: str) -> bytes | None:
        """Ask over a connection of its own, so that any process answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self._product.port)
        connection.request("GET", _name_path(name), headers={"Connection": "close"})
        body = connection.getresponse().read()
        connection.close()
        return body or None


def _name_path(name: str) -> str:
    return f"/v1/serve?slot={SLOT}&url={quote(f'https://{DOMAIN}/{name}', safe='')}"


def _wait(is_so: Callable[[], bool]) -> float:
    started_at = time.monotonic()
    while not is_so():
        if time.monotonic() > started_at + WAIT_SECONDS_MAX:
            raise LoadError("A page that was given has no ad.")
        time.sleep(0.01)
    return time.monotonic() - started_at


def _describe(name: str, seconds: list[float]) -> list[str]:
    return [name, f"{median(seconds):.2f}", f"{find_p99(seconds):.2f}", f"{max(seconds):.2f}"]
