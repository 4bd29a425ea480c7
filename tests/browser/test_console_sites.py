"""A site in the console: created, verified, crawled and understood, its ads approved, as a publisher's admin does it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from adloom.core.ids import SiteId
from adloom.runtime.postgres import Pool
from tests.support.builders import banner_body, campaign_body, site_body
from tests.support.chromium import Visit, a_visit_again
from tests.support.console import RunningConsole, a_console
from tests.support.pages import insert_approval, write_page
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
def visit(profile: BrowserContext) -> Iterator[Visit]:
    with a_visit_again(profile) as visit:
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
    # Text alone would find "Not verified" too.
    expect(page.locator(".al-heading .al-badge", has_text=re.compile("^Verified"))).to_be_visible()


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


class AdsOfSite:
    """A site where ads want to be shown."""

    def __init__(self, console: RunningConsole) -> None:
        self._console = console
        self.site_id = self._make("/admin/sites", site_body(domain="inbox.test"))
        self._campaign_id = self._make("/admin/campaigns", campaign_body(name="Autumn"))

    def _make(self, path: str, body: dict[str, Any]) -> str:
        with self._console.api() as api:
            return api.post(path, json=body).raise_for_status().json()["id"]

    def add(self, *titles: str) -> None:
        """Let ads wait for a decision, as the market does."""
        picture = (
            f"{self._console.url}/console/preview/tag.js"  # Loaded, but no picture: it needs no other server.
        )
        banners = [
            self._make("/admin/banners", banner_body(title=title, headline=title, primaryImageUrl=picture))
            for title in titles
        ]

        async def insert(pool: Pool) -> None:
            for banner_id in banners:
                now = datetime.now(UTC)
                await insert_approval(pool, self.site_id, banner_id, self._campaign_id, at=now)

        self._console.in_database(insert)

    def rename(self, title: str, other: str) -> None:
        with self._console.api() as api:
            (banner,) = api.get("/admin/banners", params={"search": title}).raise_for_status().json()["items"]
            api.patch(f"/admin/banners/{banner['id']}", json={"title": other}).raise_for_status()

    def listed(self, state: str) -> list[tuple[str, str | None]]:
        """Return the titles and reasons of the ads in a state."""
        with self._console.api() as api:
            answer = api.get(f"/admin/sites/{self.site_id}/approvals", params={"state": state})
        return sorted((one["title"], one["reason"]) for one in answer.raise_for_status().json()["items"])


def test_ads_are_decided_about_by_keys_one_by_one_and_together(visit: Visit, console: RunningConsole) -> None:
    page, ads = visit.page, AdsOfSite(console)
    ads.add("Assam", "Ceylon", "Darjeeling", "Earl Grey")
    console.log_in(page, goal=f"/console/approvals?site={ads.site_id}")
    current = page.locator(".al-inbox [aria-current]")
    expect(current).to_contain_text("Assam")
    expect(page.get_by_text("Keys:")).to_contain_text("a approve")

    page.keyboard.press("j")
    expect(current).to_contain_text("Ceylon")
    expect(current).to_be_focused()
    page.keyboard.press("a")
    expect(page.get_by_text("1 ad is approved.")).to_be_visible()
    expect(current).to_contain_text("Darjeeling")
    assert ads.listed("approved") == [("Ceylon", None)]

    page.keyboard.press("r")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Why").fill("a rather loud ad")
    dialog.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("1 ad is rejected.")).to_be_visible()
    assert ads.listed("rejected") == [("Darjeeling", "a rather loud ad")]

    ads.add("Formosa")
    expect(page.get_by_role("button", name="Formosa")).to_be_visible()
    expect(page.get_by_role("link", name="Waiting (3)")).to_be_visible()
    page.keyboard.press("*")
    page.get_by_label("Select Assam").click()
    expect(page.get_by_text("2 selected")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("2 ads are approved.")).to_be_visible()
    assert [title for title, _ in ads.listed("approved")] == ["Ceylon", "Earl Grey", "Formosa"]
    expect(current).to_contain_text("Assam")

    ads.rename("Assam", "Something else")
    page.keyboard.press("a")
    expect(page.get_by_text("was changed after you read it")).to_be_visible()
    expect(current).to_contain_text("Something else")
    assert ads.listed("pending") == [("Something else", None)]
    page.keyboard.press("a")
    expect(page.get_by_text("No ad waits for you")).to_be_visible()
    assert visit.errors == []
