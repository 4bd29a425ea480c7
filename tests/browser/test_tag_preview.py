"""Preview links on a real page: the tag shows the banner for who opens the link, and nothing of it counts."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.support.chromium import a_visit, a_visit_again
from tests.support.console import log_in_to
from tests.support.product import Product
from tests.support.publisher import Seller, Site, place, tag

pytestmark = [pytest.mark.browser, pytest.mark.process]

SEEN_MS = 2_500  # More than the second after which an impression is reported, and the report.
SPACE = 'style="aspect-ratio: 4; max-width: 600px"'


def test_a_link_from_the_console_shows_a_paused_banner_on_the_page_and_nothing_counts(
    chromium: Browser, profile: BrowserContext, product: Product, seller: Seller, site: Site
) -> None:
    [live] = seller.ads("preview-live", "full_static")
    [other] = seller.ads("preview-other", "full_static")
    placement = seller.admin.get("/admin/placements", params={"search": "preview-live"}).json()["items"][0]
    draft = seller.made("campaigns", name="Still a draft", bidType="cpm", bidAmount=500)
    new = seller.made("banners", **seller.banner("preview-new", 3), mediaVariants={})
    links = f"campaigns/{draft['id']}/placements"
    seller.made(links, placementId=placement["id"])
    seller.made(f"{links}/{placement['id']}/banners", bannerId=new["id"])
    address = site.page(
        "/previewed",
        place("preview-live", SPACE) + place("preview-other", SPACE),
        head=tag(product),
    )
    site.page("/shop", "<h1>The shop</h1>")

    link = make_link(profile, product, f"campaigns/{draft['id']}?tab=banners", f"{address}?a=1")
    assert link.startswith(f"{address}?a=1&adloom-preview=")

    lines: list[str] = []
    with a_visit(chromium) as visit:
        page = visit.page
        page.on("console", lambda message: lines.append(message.text))
        page.goto(link)
        first, second = (page.locator("[data-adloom]").nth(number) for number in range(2))
        expect(first.locator(".label")).to_have_text("Preview")
        expect(first.locator(".head")).to_have_text("Autumn 4 is here")
        expect(second.locator(".label")).to_have_text("Ad")
        with page.expect_response("**/banners/events/batch"):
            page.wait_for_timeout(SEEN_MS)
        page.evaluate("adloom.refresh('preview-live')")
        expect(first.locator(".label")).to_have_text("Preview")
        [asked] = visit.sent_json("/v1/serve/page")
        reported = [
            event["bannerId"] for body in visit.sent_json("/events/batch") for event in body["events"]
        ]
        first.get_by_role("link").click()
        page.wait_for_url(f"{site.url}/shop")

        assert asked["slots"] == ["preview-other"]
        assert reported == [other]
        assert visit.requests_to("/c/") == visit.requests_to("/i/") == []
        assert lines == ["Adloom: preview: preview-live: nothing of it counts"]
        assert visit.errors == []

    # For everybody else nothing has changed, and nothing of the preview was counted.
    answer = httpx.get(f"{product.delivery_url}/banners/serve/preview-live").json()
    assert [one["id"] for one in answer["banners"]] == [live]
    assert seller.totals(new["id"])["impressions"] == seller.totals(new["id"])["clicks"] == 0
    assert (refused(product, link), refused(product, link[:-2] + "AA")) == (None, "PREVIEW_LINK_INVALID")
    token = link.partition("adloom-preview=")[2]
    for path in ("i", "c"):
        assert httpx.get(f"{product.delivery_url}/{path}/{token}").status_code == 403

    for path, body in (("/elsewhere", place("preview-other", SPACE)), ("/without", "<p>No ads</p>")):
        site.page(path, body, head=tag(product))
        said = open_with(chromium, f"{site.url}{path}?adloom-preview={token}")
        assert said == ["Adloom: preview: preview-live: not on this page"]

    with a_visit(chromium) as visit:
        lines.clear()
        visit.page.on("console", lambda message: lines.append(message.text))
        visit.page.goto(f"{address}?adloom-preview={token[:-2]}AA&adloom-debug")
        expect(visit.page.locator("[data-adloom]").first.locator(".label")).to_have_text("Ad")
        assert re.match("Adloom: preview: This preview link was not signed by this installation", lines[-1])


def open_with(chromium: Browser, address: str) -> list[str]:
    """Return what the browser's console says of a preview, also after a change of the page."""
    lines: list[str] = []
    with a_visit(chromium) as visit:
        visit.page.on("console", lambda message: lines.append(message.text))
        with visit.page.expect_console_message(lambda message: "preview" in message.text):
            visit.page.goto(address)
        visit.page.evaluate("document.body.append(document.createElement('p'))")
        visit.page.wait_for_timeout(100)
    return lines


def make_link(profile: BrowserContext, product: Product, console_page: str, address: str) -> str:
    with a_visit_again(profile) as visit:
        page = visit.page
        log_in_to(product, page)
        page.goto(f"{product.control_url}/console/{console_page}")
        page.get_by_role("button", name="On a real page").click()
        page.get_by_label("Page", exact=True).fill(address)
        page.get_by_role("button", name="Make a link").click()
        link = page.get_by_role("link", name="Open it").get_attribute("href")
    assert link is not None
    return link


def refused(product: Product, link: str) -> Any:
    body = {"token": link.partition("adloom-preview=")[2]}
    return httpx.post(f"{product.delivery_url}/v1/preview", json=body).json().get("errorCode")
