"""Every page of the console, on a computer and on a phone: nothing breaks or overflows, axe-core finds no barrier, and
names that contain scripts are shown as text.

One walk does it all, because a browser needs half a second of a processor for each page that it loads. Tabs are found on
the pages themselves; dialogs, and what a role sees otherwise, are named in `tests.support.console_walk`.

`ADLOOM_CONSOLE_PICTURES=1` also takes pictures for people to look at: in both themes, in `artifacts/console/`,
which is not committed.
"""

import importlib
import os
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, TimeoutError, expect  # noqa: A004 - that of the browser

from adloom.console import pages
from adloom.console.page import REGISTERED
from adloom.core.caller import Role
from tests.support.axe import BarrierFinder
from tests.support.chromium import Visit, a_visit, a_visit_again
from tests.support.console import PASSWORD, log_in, log_in_to
from tests.support.console_walk import (
    DIALOGS,
    OF_ROLES,
    PWNED,
    STATES,
    find_auction,
    give_account,
    give_page,
    hostile_names,
    name_page,
    open_popup,
    write_address,
)
from tests.support.product import Product

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

IS_WANTED = bool(os.environ.get("ADLOOM_CONSOLE_PICTURES"))
PICTURES = Path(__file__).resolve().parents[2] / "artifacts" / "console"
PHONE = (390, 844)
COMPUTER = (1400, 900)
SETTLE_MILLISECONDS = 200  # Figures come after the page, and charts are drawn.
FIT_MILLISECONDS = 2_000  # Charts take the width of a window a little later.
# The frame is the same on all pages of a role.
FRAME = (".al-header", ".q-drawer")
TABS = """(links) => links.filter((one) => !one.hasAttribute("aria-current"))
  .map((one) => one.getAttribute("href")).filter((one) => one.includes("?tab="))"""
# Tables that fit a phone as a whole, without being scrolled.
FITTED = (
    "/console/sites/{}?tab=market",
    "/console/sites/{}?tab=approvals",
    "/console/campaigns/{}?tab=contextual",
    "/console/history",
    "/console/system?tab=accounts",
    "/console/system?tab=transfer",
)
# Pages that nobody has to log in for; the magazine is delivery's.
GATES = ("/console/login", "/console/forgot", "/console/welcome?token=unknown")
MAGAZINE = ("/sample", "/sample/shop")
FIRST_PAGE_BYTES_MAX = 600_000
LOG_IN_BYTES_MAX = 50_000

for module in pkgutil.walk_packages(pages.__path__, f"{pages.__name__}."):
    importlib.import_module(module.name)


@pytest.fixture(scope="module")
def product(sample_product: Product) -> Product:
    return sample_product


def test_no_page_breaks_overflows_or_has_a_barrier(profile: BrowserContext, product: Product) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with (
        product.admin() as admin,
        hostile_names(admin, is_wanted=not IS_WANTED) as ids,
        a_visit_again(profile) as visit,
    ):
        ids |= {"chapter": "tag", "auction_id": find_auction(admin, ids["campaign_id"])}
        ids["page_id"] = give_page(admin, ids["site_id"])
        log_in_to(product, visit.page)
        walk = Walk(visit, product)
        with product.paused("sample_traffic"):  # Its visitors cost a tenth of the walk.
            complaints = list(walk.check_all(sorted(write_address(path, ids) for path in REGISTERED)))
            for role, paths in OF_ROLES.items():
                complaints += walk.check_role(role, paths, ids)
            errors = list(visit.errors)
            complaints += walk.check_others()

    assert not complaints, "\n".join(complaints)
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
    profile: BrowserContext, product: Product
) -> None:
    with a_visit_again(profile) as visit:
        page = visit.page
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
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


class Walk:
    """A visit to many pages one after another, by somebody who is logged in."""

    def __init__(self, visit: Visit, product: Product) -> None:
        self._page = visit.page
        self._product = product
        self._finder = BarrierFinder(visit.page)
        self._is_narrow = False
        self._is_framed = False  # Whether the frame of this role was looked at.

    def check_all(self, addresses: Sequence[str]) -> Iterator[str]:
        """Yield what is wrong with pages, their tabs and dialogs."""
        waiting = list(addresses)
        for address in waiting:
            yield from (f"{address} {complaint}" for complaint in self._check(address))
            if "?tab=" in address:
                continue  # It has the tabs of its page, and a link to the first of them.
            tabs: list[str] = self._page.locator(".al-tabs a").evaluate_all(TABS)
            waiting += [tab for tab in tabs if tab not in waiting]

    def check_role(self, role: Role, paths: Sequence[str], ids: Mapping[str, str]) -> Iterator[str]:
        """Yield what is wrong with pages as an account of a role sees them."""
        email = give_account(self._product, role, ids, PASSWORD)
        self._page.context.clear_cookies()
        log_in(self._page, self._product.control_url, email=email, password=PASSWORD, goal=None)
        self._is_framed = False
        self._resize(COMPUTER)
        for address in (write_address(path, ids) for path in paths):
            complaints = [*self._open(address), *self._find_barriers()]
            yield from (f"{address} as {role.value} {complaint}" for complaint in complaints)

    def check_others(self) -> Iterator[str]:
        """Yield what is wrong with an address without a page, the log-in and the magazine."""
        page, product = self._page, self._product
        self._resize(COMPUTER)
        page.goto(f"{product.control_url}/console/nothing")
        yield from (f"a wrong address {barrier}" for barrier in self._finder.find())
        page.context.clear_cookies()
        for address in (
            *(f"{product.control_url}{path}" for path in GATES),
            *(f"{product.delivery_url}{path}" for path in MAGAZINE),
        ):
            page.goto(address)
            yield from (f"{address} {barrier}" for barrier in self._finder.find())

    def _check(self, address: str) -> Iterator[str]:
        name = name_page(address)
        is_fitted = "?tab=" not in name or name in FITTED
        # Every second page begins in a narrow window: each change of its width is a layout.
        is_narrow_first = self._is_narrow and is_fitted
        self._resize(PHONE if is_narrow_first else COMPUTER)
        yield from self._open(address)
        if is_narrow_first:
            yield from self._check_width(address, PHONE)
        yield from self._check_width(address, COMPUTER)
        yield from self._find_barriers()
        yield from self._check_popups(name)
        if is_fitted and not is_narrow_first:
            yield from self._check_width(address, PHONE)
            self._is_narrow = True
        else:
            self._is_narrow = False

    def _open(self, address: str) -> Iterator[str]:
        page = self._page
        answer = page.goto(f"{self._product.control_url}{address}")
        if answer is None or not answer.ok:
            yield f"answers {answer and answer.status}"
        page.locator("h1").first.wait_for()
        page.wait_for_function("() => window.did_handshake")
        page.wait_for_timeout(SETTLE_MILLISECONDS)
        if page.evaluate(PWNED) != [None, 0]:
            yield "runs a name as a script"

    def _find_barriers(self) -> Iterator[str]:
        yield from self._finder.find(without=FRAME if self._is_framed else ())
        self._is_framed = True

    def _check_popups(self, name: str) -> Iterator[str]:
        page = self._page
        for clicks in DIALOGS.get(name, ()):
            with open_popup(page, clicks) as selector:
                yield from (f"{clicks[-1][1]}: {barrier}" for barrier in self._finder.find(selector))
                if page.evaluate(PWNED) != [None, 0]:
                    yield f"{clicks[-1][1]} runs a name as a script"
        if name in STATES:
            what, reach = STATES[name]
            reach(page)
            yield from (f"{what}: {barrier}" for barrier in self._finder.find("#content"))

    def _resize(self, size: tuple[int, int]) -> None:
        self._page.set_viewport_size({"width": size[0], "height": size[1]})

    def _check_width(self, address: str, size: tuple[int, int]) -> Iterator[str]:
        page, (width, _) = self._page, size
        self._resize(size)
        try:
            page.wait_for_function(
                "document.documentElement.scrollWidth <= innerWidth", timeout=FIT_MILLISECONDS
            )
        except TimeoutError:
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > width:  # A busy machine lays out late.
                yield f"is {wide} wide in a window of {width}"
        if IS_WANTED:
            page.wait_for_timeout(SETTLE_MILLISECONDS)  # Charts take the new width a little later.
        for theme in reversed(self._finder.themes) if IS_WANTED else ():
            name = name_page(address).removeprefix("/console").strip("/").replace("?tab=", "-")
            name = name.replace("/", "-").replace("{}", "one") or "overview"
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=PICTURES / f"{name}-{width}-{theme}.png", full_page=True)
