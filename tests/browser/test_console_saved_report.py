"""A report is saved in the console, and opened again by its link."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.support.console import log_in_to
from tests.support.product import Product

pytestmark = pytest.mark.browser


def test_a_report_is_saved_and_opened_again(product: Product, profile: BrowserContext) -> None:
    page = profile.new_page()
    log_in_to(product, page)
    page.goto(f"{product.control_url}/console/reports?by=campaign&compare=1")
    page.get_by_role("button", name="Save report").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Client A")
    dialog.get_by_role("button", name="Save").click()

    page.wait_for_url("**/console/reports?report=*")
    link = page.url
    page.goto(f"{product.control_url}/console/reports")
    page.get_by_role("link", name="Client A").click()

    page.wait_for_url(link)
    expect(page.get_by_role("heading", name="Client A")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Compare with the period before")).to_be_checked()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/console/reports")
    expect(page.get_by_role("link", name="Client A")).to_have_count(0)
    page.close()


def test_a_report_is_downloaded_and_saved_by_what_its_open_list_says(
    product: Product, profile: BrowserContext
) -> None:
    page = profile.new_page()
    log_in_to(product, page)
    page.goto(f"{product.control_url}/console/reports?by=day")
    _choose(page, "Device")

    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    page.wait_for_url("**by=day%2Cdevice*")
    _choose(page, "Month")
    page.get_by_role("button", name="Save report").click()

    assert download.value.suggested_filename.startswith("adloom-day-device-")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Months")
    dialog.get_by_role("button", name="Save").click()
    page.wait_for_url("**/console/reports?report=*")
    expect(page.locator('[data-field="by"]')).to_contain_text("Day, Device, Month")
    page.close()


def _choose(page: Page, dimension: str) -> None:
    page.locator('[data-field="by"]').click()
    page.get_by_role("option", name=dimension).click()
