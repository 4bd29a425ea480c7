"""A campaign created in the console: its ad is seen and clicked once on a page, and gone when paused."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.chromium import Visit, a_visit, a_visit_again
from tests.support.console import log_in_to
from tests.support.days import these_days
from tests.support.product import Product

pytestmark = pytest.mark.browser

DEADLINE_SECONDS = 60.0
SIMULATED_MILLIS_MAX = 20_000
# None of the sample's simulated visitors uses it, so only this browser's events are counted.
RARE_LANGUAGE = "mt"


class Admin:
    """Reads the API as an admin."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def get(self, path: str, **query: Any) -> Any:
        answer = self._client.get(path, params=query)
        answer.raise_for_status()
        return answer.json()

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._client.request(method, path, json=body)
        answer.raise_for_status()
        return answer.json()

    def counted(self, campaign_id: str) -> tuple[int, int]:
        """Return the impressions and clicks of a campaign."""
        query = {**these_days(), "campaignId": campaign_id, "groupBy": "day"}
        totals = self.get("/admin/stats/banners", **query)["totals"]
        return totals["impressions"], totals["clicks"]


@pytest.fixture(scope="module")
def product(sample_product: Product) -> Product:
    return sample_product


@pytest.fixture(scope="module")
def admin(product: Product) -> Iterator[Admin]:
    token = product.token()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=product.control_url, headers=headers, timeout=30) as client:
        yield Admin(client)


@pytest.fixture
def console(profile: BrowserContext, product: Product) -> Iterator[Visit]:
    """The console of an admin who is logged in."""
    with a_visit_again(profile) as visit:
        log_in_to(product, visit.page)
        yield visit


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def choose(page: Page, label: str, text: str) -> None:
    """Choose an option of a field by typing a part of it."""
    page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("option", name=text).first.click()


def make_banner(page: Page, product: Product, headline: str, picture: str) -> None:
    page.goto(f"{product.control_url}/console/banners/new")
    page.get_by_label("Title", exact=True).fill(headline)
    page.get_by_label("Headline", exact=True).fill(headline)
    page.get_by_label("Leads to", exact=True).fill(f"{product.delivery_url}/sample/shop")
    page.get_by_label("Address of the picture", exact=True).fill(picture)
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/console/banners/*?tab=where")


def make_campaign(page: Page, product: Product, name: str) -> str:
    """Create a draft, and return its id."""
    page.goto(f"{product.control_url}/console/campaigns/new")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/console/campaigns/*?tab=banners")
    return page.url.split("/campaigns/")[1].split("?")[0]


def assign_banner(page: Page, placement: str, banner: str) -> None:
    page.get_by_role("button", name="Add a placement").click()
    choose(page, "Placement", placement)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Add a banner").click()
    choose(page, "Banner", banner)
    page.get_by_label("Weight").fill("1000")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("order 0 · weight 1000")).to_be_visible()


def target_language(page: Page, language: str) -> None:
    page.get_by_role("link", name="Targeting").click()
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("What is it about?").click()
    page.get_by_role("option", name="Language").click()
    choose(page, "Languages", language)
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(f"Shown to readers of {language}.").first).to_be_visible()


def move(page: Page, name: str) -> None:
    """Make a move, and confirm its consequence."""
    page.get_by_role("button", name=name, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("two seconds")).to_be_visible()
    expect(dialog.get_by_role("status")).to_have_count(0)
    dialog.get_by_role("button", name=name, exact=True).click()


def offered(product: Product, slug: str, campaign_id: str) -> bool:
    answer = httpx.get(
        f"{product.delivery_url}/banners/serve/{slug}", headers={"Accept-Language": RARE_LANGUAGE}
    ).json()
    return campaign_id in {banner["campaignId"] for banner in answer["banners"]}


def test_a_campaign_is_created_seen_clicked_and_paused(
    console: Visit, chromium: Browser, product: Product, admin: Admin
) -> None:
    page, headline = console.page, "Built from nothing"
    picture = admin.get("/admin/banners", pageSize=1)["items"][0]["primaryImageUrl"]
    make_banner(page, product, headline, picture)
    campaign_id = make_campaign(page, product, "From nothing")
    page.get_by_role("button", name="Activate", exact=True).click()
    warning = page.get_by_role("dialog").get_by_role("status")
    expect(warning).to_contain_text("It has no placement and no banner yet, so there is nothing to show.")
    warning.get_by_role("link", name="Choose placement and banner").click()
    page.wait_for_url("**/console/campaigns/*?tab=banners")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assign_banner(page, "Front page, across the top", headline)
    target_language(page, "Maltese")
    move(page, "Activate")
    expect(page.locator(".al-badge", has_text="Active")).to_be_visible()
    wait_for(lambda: offered(product, "hedgerow-top", campaign_id), "the campaign is not offered")

    with a_visit(chromium, locale="mt-MT", viewport={"width": 1200, "height": 900}) as visitor:
        visitor.page.goto(f"{product.delivery_url}/sample")
        ad = visitor.page.get_by_role("link", name=headline).first
        expect(ad).to_be_visible()
        wait_for(lambda: admin.counted(campaign_id)[0] > 0, "the impression is not counted")
        ad.click()
        visitor.page.wait_for_url("**/sample/shop")
        wait_for(lambda: admin.counted(campaign_id)[1] > 0, "the click is not counted")
        assert admin.counted(campaign_id) == (1, 1)

        move(page, "Pause")
        expect(page.locator(".al-badge", has_text="Paused")).to_be_visible()
        wait_for(lambda: not offered(product, "hedgerow-top", campaign_id), "the campaign is still offered")
        visitor.page.goto(f"{product.delivery_url}/sample")
        expect(visitor.page.locator('[data-adloom="hedgerow-top"] a').first).to_be_attached()
        expect(visitor.page.get_by_role("link", name=headline)).to_have_count(0)

    assert admin.counted(campaign_id) == (1, 1)
    assert console.errors == []


def test_an_end_in_the_past_ends_a_campaign_only_after_a_question(
    console: Visit, product: Product, admin: Admin
) -> None:
    page = console.page
    campaign = admin.send("POST", "/admin/campaigns", {"name": "Over by a slip"})
    admin.send("PATCH", f"/admin/campaigns/{campaign['id']}/activate")
    page.goto(f"{product.control_url}/console/campaigns/{campaign['id']}?tab=schedule")
    page.get_by_label("Ends", exact=True).fill("2020-01-01T00:00")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert admin.get(f"/admin/campaigns/{campaign['id']}")["endsAt"] is None

    page.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="End it").click()
    expect(page.get_by_text("Saved.").first).to_be_visible()

    assert admin.get(f"/admin/campaigns/{campaign['id']}")["endsAt"].startswith("2020-01-01")


def test_an_end_in_the_past_ends_several_campaigns_only_after_a_question(
    console: Visit, product: Product, admin: Admin
) -> None:
    page = console.page
    made = [admin.send("POST", "/admin/campaigns", {"name": f"Both by a slip {one}"}) for one in (1, 2)]
    for campaign in made:
        admin.send("PATCH", f"/admin/campaigns/{campaign['id']}/activate")

    def ends() -> list[Any]:
        return [admin.get(f"/admin/campaigns/{one['id']}")["endsAt"] for one in made]

    def change_end() -> None:
        page.get_by_role("button", name="Change dates").click()
        page.get_by_role("dialog").get_by_label("Ends", exact=True).fill("2020-01-01T00:00")
        page.get_by_role("dialog").get_by_role("button", name="Change").click()

    page.goto(f"{product.control_url}/console/campaigns?search=Both+by+a+slip")
    for campaign in made:
        page.locator(f'[data-pick="{campaign["id"]}"]').check()
    change_end()
    expect(page.get_by_role("dialog")).to_have_count(1)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert ends() == [None, None]

    change_end()
    page.get_by_role("button", name="End", exact=True).click()
    expect(page.get_by_text("2 campaigns changed.").first).to_be_visible()

    assert [end[:10] for end in ends()] == ["2020-01-01"] * 2
    assert console.errors == []


def test_a_change_is_tried_before_it_costs_money(console: Visit, product: Product, admin: Admin) -> None:
    page = console.page
    campaigns = admin.get("/admin/campaigns", status="active", pageSize=50)["items"]
    tried = next(one for one in campaigns if one["bidAmount"] and one["bidType"] == "cpm")
    rules = admin.get("/admin/targeting-rules", campaignId=tried["id"])["items"]
    page.goto(f"{product.control_url}/console/campaigns/{tried['id']}?tab=what-if")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_text("Change something first.")).to_be_visible()

    # Every field by itself, then one answer for all of them.
    bid, daily = page.get_by_label("Bid", exact=True), page.get_by_label("Daily budget", exact=True)
    # The slider's own part takes the keys.
    page.get_by_role("slider", name="Bid, change in per cent").locator("[tabindex]").first.press("ArrowRight")
    expect(bid).to_have_value(re.compile(rf"^{round(1.05 * tried['bidAmount'], 4):g}0*$"))
    daily.fill("12.5")
    page.get_by_label("Total budget", exact=True).fill("9000")
    page.get_by_label("Pacing", exact=True).click()
    page.get_by_role("option").last.click()
    page.get_by_label("Starts", exact=True).fill("2020-01-01T00:00")
    page.get_by_label("Ends", exact=True).fill("2099-01-01T00:00")
    choose(page, "Pages about", "Sports")
    page.keyboard.press("Escape")
    choose(page, "Not on pages about", "Soccer")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("What is it about?").click()
    page.get_by_role("option", name="Language").click()
    choose(page, "Languages", "Maltese")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("readers of Maltese").first).to_be_visible()
    page.get_by_role("button", name="Simulate").click()

    # A sample that has just started has little traffic, and says so.
    said = page.get_by_text(re.compile("With this change|Not enough traffic yet|is not shown at all"))
    expect(said).to_be_visible(timeout=SIMULATED_MILLIS_MAX)
    expect(said).to_contain_text("pages that fit its categories")
    assert admin.get(f"/admin/campaigns/{tried['id']}") == tried
    assert admin.get("/admin/targeting-rules", campaignId=tried["id"])["items"] == rules
    assert console.errors == []


def test_the_guide_ends_with_an_ad_on_a_page(
    console: Visit, chromium: Browser, product: Product, admin: Admin
) -> None:
    page, headline = console.page, "Guided to a page"
    page.goto(f"{product.control_url}/console/first-campaign")
    page.get_by_label("On a new placement").click()
    page.get_by_label("What do you call the place?").fill("My very own corner")
    expect(page.get_by_text("my-very-own-corner")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_label("Headline", exact=True)).to_be_focused()
    page.get_by_role("button", name="Back").click()
    # What was chosen is still chosen.
    expect(page.get_by_label("What do you call the place?")).to_have_value("My very own corner")
    page.get_by_label("What do you call the place?").press("Enter")
    page.get_by_label("Headline", exact=True).fill(headline)
    page.get_by_role("button", name="Next").click()
    page.get_by_label("Name of the campaign").fill("Guided")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("at no cost")).to_be_visible()
    page.get_by_role("button", name="Put it on the page").click()
    expect(page.get_by_text('<div data-adloom="my-very-own-corner"></div>')).to_be_visible()
    expect(page.get_by_text("Not seen yet")).to_be_visible()

    with a_visit(chromium, viewport={"width": 1200, "height": 900}) as visitor:
        visitor.page.goto(f"{product.delivery_url}/serve/my-very-own-corner.html")
        ad = visitor.page.get_by_role("link", name=headline)
        expect(ad).to_be_visible()
        expect(page.get_by_text("Impressions: 1")).to_be_visible(timeout=DEADLINE_SECONDS * 1000)
        ad.click()
        expect(page.get_by_text("Clicks: 1")).to_be_visible(timeout=DEADLINE_SECONDS * 1000)

    [campaign] = admin.get("/admin/campaigns", search="Guided")["items"]
    assert admin.counted(campaign["id"]) == (1, 1)
    assert console.errors == []


def test_a_deleted_campaign_is_restored_by_undo(console: Visit, product: Product, admin: Admin) -> None:
    page = console.page
    campaign_id = make_campaign(page, product, "Deleted too early")
    page.get_by_role("button", name="More").click()
    page.get_by_text("Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("This campaign is deleted")).to_be_visible()
    assert admin.get(f"/admin/campaigns/{campaign_id}")["deletedAt"] is not None

    page.get_by_role("button", name="Undo").click()

    expect(page.get_by_text("“Deleted too early” is back.")).to_be_visible()
    expect(page.get_by_text("This campaign is deleted")).to_have_count(0)
    assert admin.get(f"/admin/campaigns/{campaign_id}")["deletedAt"] is None


def test_campaigns_are_chosen_and_paused_together_and_one_is_copied(
    console: Visit, product: Product, admin: Admin
) -> None:
    page, label = console.page, "all together"
    for name, is_active in (("Together one", True), ("Together two", True), ("Together draft", False)):
        made = admin.send("POST", "/admin/campaigns", {"name": name, "labels": [label]})
        if is_active:
            admin.send("PATCH", f"/admin/campaigns/{made['id']}/activate")
    page.goto(f"{product.control_url}/console/campaigns?label={quote(label)}")

    page.get_by_label("Choose all on this page").check()
    expect(page.get_by_text("3 chosen")).to_be_visible()
    page.get_by_role("button", name="Pause", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Pause 3 campaigns?")).to_be_visible()
    dialog.get_by_role("button", name="Pause", exact=True).click()

    # A draft cannot be paused, and says so; the others are.
    expect(page.get_by_text("2 campaigns paused, 1 not")).to_be_visible()
    expect(page.get_by_text("A campaign that is draft cannot become paused.")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page.locator("tr .al-badge:visible", has_text="Paused")).to_have_count(2)

    # Before they are resumed, those that have nothing to show are named; the draft is not resumed at all.
    page.get_by_label("Choose all on this page").check()
    page.get_by_role("button", name="Resume", exact=True).click()
    warning = dialog.locator(".al-notice")
    expect(warning).to_contain_text("have no banner yet, so there is nothing to show.")
    expect(warning).to_contain_text("“Together one”")
    expect(warning).not_to_contain_text("Together draft")
    dialog.get_by_role("button", name="Cancel").click()

    page.get_by_role("link", name="Together one").click()
    page.get_by_role("button", name="More").click()
    page.get_by_text("Duplicate", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Duplicate").click()
    expect(page.get_by_role("heading", name="Together one (copy)")).to_be_visible()
    [copy] = admin.get("/admin/campaigns", search="Together one (copy)")["items"]
    assert (copy["status"], copy["labels"]) == ("draft", [label])

    page.goto(f"{product.control_url}/console/campaigns/{copy['id']}?tab=schedule")
    page.get_by_label("Starts", exact=True).fill("2099-01-02T10:00")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert admin.get(f"/admin/campaigns/{copy['id']}")["startsAt"] == "2099-01-02T10:00:00Z"
    assert console.errors == []


def test_a_form_shows_errors_while_typing_and_a_newer_change(console: Visit, product: Product) -> None:
    page = console.page
    campaign_id = make_campaign(page, product, "Two at once")
    address = f"{product.control_url}/console/campaigns/{campaign_id}?tab=settings"
    other = page.context.new_page()
    for one in (page, other):
        one.goto(address)
        one.get_by_label("Name", exact=True).wait_for()
    page.get_by_label("Bid", exact=True).fill("-1")
    expect(page.get_by_text("must be a number, 0 or more, with at most 4 decimal places")).to_be_visible()
    page.get_by_label("Bid", exact=True).fill("2.5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()

    other.get_by_label("Name", exact=True).fill("Mine")
    other.get_by_role("button", name="Save").click()

    expect(other.get_by_text("This was changed after you read it")).to_be_visible()


def test_a_preview_shows_what_is_typed_and_names_a_missing_image(console: Visit, product: Product) -> None:
    page = console.page
    page.goto(f"{product.control_url}/console/banners/new")
    page.get_by_label("Headline", exact=True).fill("As it will be")
    page.get_by_label("Address of the picture", exact=True).fill(f"{product.delivery_url}/nothing.png")
    frame = page.frame_locator('iframe[title="Preview on a computer"]')

    expect(frame.get_by_text("As it will be")).to_be_visible()
    expect(frame.get_by_text("This picture could not be loaded:")).to_be_visible()


def test_a_preview_that_gets_its_width_late_takes_the_ratio_of_a_computer(
    console: Visit, product: Product
) -> None:
    page = console.page
    page.set_viewport_size({"width": 300, "height": 640})
    scene = quote('{"layout": "full_static", "banners": [{"headline": "Wide"}]}')
    page.goto(f"{product.control_url}/console/preview#{scene}")
    place = page.locator("[data-adloom]")
    expect(place).to_have_css("--adloom-ratio", "16/9")

    page.set_viewport_size({"width": 1100, "height": 640})

    expect(place).to_have_css("--adloom-ratio", "4")


def find_charged_campaign(admin: Admin) -> dict[str, Any]:
    """Return a campaign that was charged, and how much in hundredths."""
    for campaign in admin.get("/admin/campaigns", status="active")["items"]:
        spent = admin.get(f"/admin/campaigns/{campaign['id']}/budget")["spentTotalPaisa"]
        if spent > 1:
            return {**campaign, "spentPaisa": spent}
    return {}


def test_money_is_given_back_with_a_reason_and_not_more_than_was_charged(
    console: Visit, product: Product, admin: Admin
) -> None:
    wait_for(lambda: bool(find_charged_campaign(admin)), "a campaign that was charged")
    page, campaign = console.page, find_charged_campaign(admin)
    page.goto(f"{product.control_url}/console/budgets/campaigns/{campaign['id']}")
    page.get_by_role("button", name="Refund").click()
    dialog = page.get_by_role("dialog")

    dialog.get_by_role("button", name="Give back").click()
    expect(dialog.get_by_text("is required")).to_have_count(2)
    dialog.get_by_label("Reason").fill("Shown beside the wrong article")
    dialog.get_by_label("Amount").fill("9999999.00")
    dialog.get_by_role("button", name="Give back").click()
    expect(dialog.get_by_text("can be given back")).to_be_visible()

    dialog.get_by_label("Amount").fill("0.01")
    dialog.get_by_role("button", name="Give back").click()
    expect(page.get_by_text("0.01 given back.")).to_be_visible()
    expect(dialog).to_have_count(0)

    (refund,) = admin.get(f"/admin/campaigns/{campaign['id']}/refunds")["items"]
    assert (refund["amountPaisa"], refund["reason"]) == (1, "Shown beside the wrong article")
    assert console.errors == []
