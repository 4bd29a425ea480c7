"""A site in the console: created, verified, crawled and understood, as a publisher's admin does it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import Browser, Page, expect

from adloom.core.ids import SiteId
from adloom.runtime.postgres import Pool
from tests.support.chromium import Visit, a_visit
from tests.support.console import RunningConsole, a_console
from tests.support.pages import write_page
from tests.support.services import Services

pytestmark = pytest.mark.browser

PROGRESS = """
    UPDATE site_crawls SET state = 'running', started_at = $2, pages_fetched = 7, pages_classified = 5, pages_unchanged = 2
      FROM sites AS site WHERE site.id = site_id AND site.public_id = $1
"""


@pytest.fixture(scope="module")
def console(services: Services) -> Iterator[RunningConsole]:
    with a_console(services) as running:
        yield running


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Visit]:
    with a_visit(chromium, viewport={"width": 1400, "height": 900}) as visit:
        yield visit


def read_site(console: RunningConsole, site_id: str) -> dict[str, Any]:
    with console.api() as api:
        return api.get(f"/admin/sites/{site_id}").raise_for_status().json()


def create_site(page: Page) -> str:
    """Fill the form in, block a product by its name, and return the id."""
    page.get_by_label("Domain", exact=True).fill("magazine.test")
    page.get_by_label("When it is crawled").fill("30 6 * * 1")
    expect(page.get_by_text("Next: Monday")).to_be_visible()
    blocked = page.get_by_label("Products that may not be advertised")
    blocked.fill("beer")
    page.get_by_role("option", name="Beer").first.click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/console/sites/*-*")
    return page.url.split("/sites/")[1].split("?")[0]


def crawl(page: Page, console: RunningConsole, site_id: str) -> None:
    """Start a crawl, see its figures change by themselves, and cancel it."""
    page.get_by_role("button", name="Crawl now").click()
    page.wait_for_url("**?tab=crawls")
    expect(page.locator(".al-badge", has_text="Waiting").first).to_be_visible()

    async def go_on(pool: Pool) -> None:
        await pool.execute(PROGRESS, UUID(site_id), datetime.now(UTC))
        now = datetime.now(UTC)
        await write_page(pool, SiteId(UUID(site_id)), "magazine.test/paws", at=now, categories={"424": 0.9})

    console.in_database(go_on)
    expect(page.locator(".al-tile", has_text="Read").get_by_text("7", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="magazine.test/paws")).to_be_visible()
    expect(page.locator(".al-newest .al-chip", has_text="Cats")).to_be_visible()

    page.get_by_role("button", name="Cancel the crawl").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the crawl").click()
    expect(page.get_by_text("The crawl ends.")).to_be_visible()


def verify(page: Page) -> None:
    page.get_by_role("button", name="Show me how").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("https://magazine.test/.well-known/adloom.txt")).to_be_visible()
    dialog.get_by_role("button", name="Check now").click()
    expect(dialog.get_by_text("Not yet")).to_be_visible()
    dialog.get_by_role("button", name="Verify without the file").click()
    page.get_by_role("dialog").last.get_by_role("button", name="Verify", exact=True).click()
    expect(page.locator(".al-heading .al-badge", has_text="Verified")).to_be_visible()


def add_page(page: Page) -> None:
    page.get_by_role("button", name="Add a page").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Address", exact=True).fill("https://magazine.test/net")
    dialog.get_by_label("Title", exact=True).fill("At the net")
    dialog.get_by_label("Or its categories").fill("tennis")
    page.get_by_role("option", name="Sports").first.click()
    page.keyboard.press("Escape")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("link", name="At the net")).to_be_visible()


def test_a_site_is_created_verified_crawled_and_understood(visit: Visit, console: RunningConsole) -> None:
    page = visit.page
    console.log_in(page, goal="/console/sites/new")
    site_id = create_site(page)
    site = read_site(console, site_id)
    assert (site["cronSchedule"], site["adProductBlocklist"]) == ("30 6 * * 1", ["1004"])

    expect(page.get_by_text("Nothing is known about its pages yet")).to_be_visible()
    verify(page)
    assert read_site(console, site_id)["verifiedHost"] == "magazine.test"
    crawl(page, console, site_id)

    page.get_by_role("link", name="Pages", exact=True).click()
    add_page(page)
    page.get_by_role("link", name="At the net").click()
    expect(page.get_by_role("heading", name="At the net")).to_be_visible()
    expect(page.get_by_text("Somebody gave these categories by hand")).to_be_visible()
    assert visit.errors == []
