"""Fields of forms, as somebody types into them: money and time zones."""

import pytest
from playwright.sync_api import BrowserContext, Dialog, expect

from tests.support.console import log_in_to
from tests.support.product import Product

pytestmark = pytest.mark.browser


def test_money_has_the_decimals_of_its_currency_and_zones_are_searched_inside(
    product: Product, profile: BrowserContext
) -> None:
    page = profile.new_page()
    log_in_to(product, page)
    page.goto(f"{product.control_url}/console/advertisers/new")
    budget = page.get_by_label("Daily budget")

    budget.fill("1.2395")
    budget.press("Tab")
    expect(page.get_by_text("must have at most 2 decimals")).to_be_visible()
    expect(budget).to_have_value("1.2395")
    budget.fill("5.5")
    budget.press("Tab")
    expect(page.get_by_text("must have at most 2 decimals")).to_have_count(0)
    expect(budget).to_have_value("5.50")
    budget.clear()
    budget.press_sequentially("12,50")  # A field for numbers drops the comma, and has 1250.
    budget.press("Tab")
    expect(budget).to_have_value("12.50")
    budget.fill("1,250")
    budget.press("Tab")
    expect(page.get_by_text("must be a number such as 1250.50")).to_be_visible()
    expect(budget).to_have_value("1,250")

    for typed, found in (("Ber", "Europe/Berlin"), ("new york", "America/New York")):
        zone = page.get_by_label("Time zone")
        zone.fill(typed)
        expect(page.get_by_role("option").first).to_have_text(found)
        page.keyboard.press("Escape")
    page.close()


def test_a_cap_is_what_was_typed_or_refused(product: Product, profile: BrowserContext) -> None:
    page = profile.new_page()
    log_in_to(product, page)
    page.goto(f"{product.control_url}/console/campaigns/new")
    cap = page.get_by_label("Maximum impressions in total")

    cap.press_sequentially("10-")  # A field for numbers has nothing then: no cap.
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("must be a whole number, 0 or more")).to_be_visible()
    expect(cap).to_have_value("10-")
    cap.clear()
    cap.press_sequentially("10.000")  # And here 10.
    cap.press("Tab")
    expect(cap).to_have_value("10000")
    expect(page.get_by_text("must be a whole number, 0 or more")).to_have_count(0)
    page.close()


def test_leaving_a_form_that_is_not_saved_asks_first(product: Product, profile: BrowserContext) -> None:
    page = profile.new_page()
    log_in_to(product, page)
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.goto(f"{product.control_url}/console/advertisers/new")
    page.get_by_label("Name").press_sequentially("Adder")
    page.on("dialog", stay)
    page.get_by_role("link", name="Banners", exact=True).click()
    expect(page.get_by_label("Name")).to_have_value("Adder")
    page.wait_for_timeout(200)
    assert asked == ["beforeunload"]

    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Adder")).to_be_visible()
    page.get_by_role("link", name="Banners", exact=True).click()
    expect(page.get_by_role("heading", name="Banners", exact=True)).to_be_visible()
    assert asked == ["beforeunload"]
    page.close()


def test_what_was_typed_into_a_list_stays_without_enter(product: Product, profile: BrowserContext) -> None:
    page = profile.new_page()
    log_in_to(product, page)
    page.goto(f"{product.control_url}/console/advertisers/new")
    page.get_by_label("Name", exact=True).fill("Blocker")
    blocked = page.get_by_label("Blocked sites")
    blocked.press_sequentially("one.example")
    blocked.press("Enter")
    blocked.press_sequentially("two.example")
    blocked.press("Tab")
    expect(page.get_by_text("two.example")).to_be_visible()
    blocked.press_sequentially("three.example")
    page.get_by_role("button", name="Create").dispatch_event(
        "click"
    )  # A tap may come before the field is left.
    expect(page.get_by_role("heading", name="Blocker")).to_be_visible()

    page.get_by_role("link", name="Settings").click()
    for domain in ("one.example", "two.example", "three.example"):
        expect(page.get_by_text(domain)).to_be_visible()
    page.get_by_label("Blocked sites").press("Backspace")  # One that was taken away does not come back.
    page.get_by_label("Blocked sites").press("Tab")
    expect(page.get_by_text("three.example")).to_have_count(0)
    page.close()


def test_paper_is_white_and_has_no_buttons(product: Product, profile: BrowserContext) -> None:
    page = profile.new_page()
    page.emulate_media(color_scheme="dark", media="screen")
    log_in_to(product, page)
    page.goto(f"{product.control_url}/console/reports")
    heading, button = page.locator("h1"), page.get_by_role("button", name="Download CSV")
    expect(heading).to_have_css("color", "rgb(238, 231, 223)")
    expect(button).to_be_visible()

    page.emulate_media(color_scheme="dark", media="print")

    expect(heading).to_have_css("color", "rgb(43, 38, 34)")
    expect(button).to_be_hidden()
    expect(page.locator(".al-header")).to_be_hidden()
    expect(page.get_by_label("Period")).to_be_visible()
    expect(page.get_by_label("Only the campaign")).to_be_hidden()
    page.close()


def test_the_arrows_move_in_a_menu(product: Product, profile: BrowserContext) -> None:
    page = profile.new_page()
    log_in_to(product, page)
    page.goto(f"{product.control_url}/console/advertisers")
    page.get_by_label("Your account").press("Enter")
    entries = page.get_by_role("menuitem")

    page.get_by_role("menu").press("ArrowUp")
    expect(entries.last).to_be_focused()
    entries.last.press("ArrowDown")
    expect(entries.first).to_be_focused()
    page.close()
