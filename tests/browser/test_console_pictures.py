"""Every page of the console, on a computer and on a phone: nothing breaks or overflows, and axe-core finds no barrier.

`ADLOOM_CONSOLE_PICTURES=1` also takes pictures for people to look at: in both themes, in `artifacts/console/`,
which is not committed.
"""

import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from playwright.sync_api import Browser, TimeoutError, expect  # noqa: A004 - that of the browser

from adloom.console import pages
from adloom.console.page import REGISTERED
from tests.support.axe import find_barriers
from tests.support.chromium import Visit, a_visit
from tests.support.console import log_in_to
from tests.support.product import Product, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

IS_WANTED = bool(os.environ.get("ADLOOM_CONSOLE_PICTURES"))
PICTURES = Path(__file__).resolve().parents[2] / "artifacts" / "console"
SIZES = ((390, 844), (1400, 900))
THEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
SETTLE_MILLISECONDS = 400  # Figures come after the page, and charts are drawn.
FIT_MILLISECONDS = 2_000  # Charts take the width of a window a little later.
# Lists with an id of each kind; the sample has some of all.
LISTS = {
    "campaign_id": "/admin/campaigns",
    "banner_id": "/admin/banners",
    "placement_id": "/admin/placements",
    "site_id": "/admin/sites",
    "advertiser_id": "/admin/advertisers",
    "publisher_id": "/admin/publishers",
    "auction_id": "/api/v1/admin/auctions",
}
# Tabs that are tables of their own.
TABS = (
    "/console/sites/{site_id}?tab=market",
    "/console/sites/{site_id}?tab=approvals",
    "/console/campaigns/{campaign_id}?tab=contextual",
    "/console/system?tab=transfer",
)
# Pages that nobody has to log in for; the magazine is delivery's.
GATES = ("/console/login", "/console/forgot", "/console/welcome?token=unknown")
MAGAZINE = ("/sample", "/sample/shop")
FIRST_PAGE_BYTES_MAX = 600_000
LOG_IN_BYTES_MAX = 50_000
PARAMETER = re.compile(r"\{(\w+)\}")

for module in pkgutil.walk_packages(pages.__path__, f"{pages.__name__}."):
    importlib.import_module(module.name)


@pytest.fixture(scope="module")
def product(sample_product: Product) -> Product:
    return sample_product


@pytest.fixture(scope="module")
def addresses(product: Product) -> list[str]:
    """One address of every page."""
    headers = {"Authorization": f"Bearer {product.token()}"}
    with httpx.Client(base_url=product.control_url, headers=headers, timeout=30) as admin:

        def first_of(path: str) -> str | None:
            items = admin.get(path).raise_for_status().json()["items"]
            return items[0]["id"] if items else None

        wait_until(lambda: first_of(LISTS["auction_id"]) is not None, seconds=60, what="an auction")
        ids = {name: first_of(path) for name, path in LISTS.items()}
        ids["chapter"] = "tag"
        ids["page_id"] = give_page(admin, str(ids["site_id"]))
    return sorted(PARAMETER.sub(lambda found: str(ids[found[1]]), path) for path in (*REGISTERED, *TABS))


def give_page(admin: httpx.Client, site_id: str) -> str:
    """Add a page of a site, and return its id."""
    path = f"/admin/sites/{site_id}"
    domain = admin.get(path).raise_for_status().json()["domain"]
    body = {
        "url": f"https://{domain}/given",
        "title": "A page with a long title that has to be cut somewhere on a phone",
        "categories": [{"id": "275", "confidence": 0.9}, {"id": "424", "confidence": 0.2}],
    }
    return admin.post(f"{path}/pages", json=body).raise_for_status().json()["id"]


def test_no_page_breaks_or_overflows(chromium: Browser, product: Product, addresses: list[str]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with a_visit(chromium, reduced_motion="reduce") as visit:
        log_in_to(product, visit.page)
        complaints = [complaint for address in addresses for complaint in check_page(visit, product, address)]
        errors = list(visit.errors)
        complaints += check_others(visit, product)

    assert complaints == []
    assert errors == []


def test_the_first_pages_are_light(chromium: Browser, product: Product) -> None:
    with a_visit(chromium, viewport={"width": 1366, "height": 900}) as visit:
        page = visit.page
        received: list[float] = []
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")

        def note_bytes(event: dict[str, Any]) -> None:
            received.append(event["encodedDataLength"])

        session.on("Network.loadingFinished", note_bytes)
        page.goto(f"{product.control_url}/console/login", wait_until="networkidle")
        log_in = sum(received)
        log_in_to(product, page)
        # With what the log-in page has left in the cache, as for everybody.
        page.goto(f"{product.control_url}/console")
        page.locator(".al-drawn svg").first.wait_for()
        page.wait_for_timeout(SETTLE_MILLISECONDS)

    print(f"log-in page: {log_in:,.0f} bytes, then the overview: {sum(received) - log_in:,.0f} bytes")  # noqa: T201 - the figure
    assert log_in < LOG_IN_BYTES_MAX
    assert sum(received) < FIRST_PAGE_BYTES_MAX


def test_the_figures_of_a_report_are_on_the_first_screen_of_a_phone(
    chromium: Browser, product: Product
) -> None:
    with a_visit(chromium, viewport={"width": 390, "height": 844}) as visit:
        page = visit.page
        log_in_to(product, page)
        page.goto(f"{product.control_url}/console/reports?device=mobile&compare=1")
        figures = page.locator(".al-tile .figure")
        figures.first.wait_for()
        ends = [box["y"] + box["height"] for one in figures.all() if (box := one.bounding_box())]
        country = page.get_by_label("Only the country")

        expect(country).to_be_hidden()
        page.get_by_role("button", name="More (2)").click()

        expect(country).to_be_visible()
        expect(page.get_by_role("button", name="More (2)")).to_have_attribute("aria-expanded", "true")
        assert len(ends) >= 4
        assert max(ends) < 844


def check_others(visit: Visit, product: Product) -> Iterator[str]:
    """Yield what is wrong with a dialog, an address without a page, the log-in and the magazine."""
    page = visit.page
    page.goto(f"{product.control_url}/console/system?tab=keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("dialog").get_by_label("Name").wait_for()
    page.wait_for_timeout(SETTLE_MILLISECONDS)
    # Of buttons above a page that is fixed axe does not find the background; other pages have the same buttons.
    yield from (f"a dialog {barrier}" for barrier in find_barriers(page) if "color-contrast" not in barrier)
    page.goto(f"{product.control_url}/console/nothing")
    yield from (f"a wrong address {barrier}" for barrier in find_barriers(page))
    page.context.clear_cookies()
    for address in (
        *(f"{product.control_url}{path}" for path in GATES),
        *(f"{product.delivery_url}{path}" for path in MAGAZINE),
    ):
        page.goto(address)
        yield from (f"{address} {barrier}" for barrier in find_barriers(page))


def check_page(visit: Visit, product: Product, address: str) -> Iterator[str]:
    """Yield what is wrong with a page; also take pictures of it if they are wanted."""
    page = visit.page
    answer = page.goto(f"{product.control_url}{address}")
    if answer is None or not answer.ok:
        yield f"{address} answers {answer and answer.status}"
    page.locator("h1").first.wait_for()
    page.wait_for_timeout(SETTLE_MILLISECONDS)
    name = address.removeprefix("/console").strip("/").replace("?tab=", "-").replace("/", "-") or "overview"
    name = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "one", name)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        try:
            page.wait_for_function(
                "document.documentElement.scrollWidth <= innerWidth", timeout=FIT_MILLISECONDS
            )
        except TimeoutError:
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > width:  # A busy machine lays out late.
                yield f"{address} is {wide} wide in a window of {width}"
        for theme in THEMES if IS_WANTED else ():
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=PICTURES / f"{name}-{width}-{theme}.png", full_page=True)
    yield from (f"{address} {barrier}" for barrier in find_barriers(page))
