"""Files in the forms of the console, in a real browser: chosen, dropped, stored without secrets, and shown on a page."""

import base64
import io

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.catalog.asset_files import a_zip
from tests.support.chromium import a_visit, a_visit_again
from tests.support.console import log_in_to
from tests.support.product import Product
from tests.support.publisher import Seller, Site, place, tag

pytestmark = [pytest.mark.browser, pytest.mark.process]

SECRET = "47.3769N 8.5417E"
CREATIVE = {
    "index.html": b'<meta name="ad.size" content="width=300,height=250"><p>Still</p><script src="act.js"></script>',
    "act.js": b"document.querySelector('p').textContent = `Acts: ${decodeURIComponent(location.hash)}`;",
}
# As a person drops it: the place to drop appears when the file is over the field.
DROP = """([data, name]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name, { type: "application/zip" }));
  const drop = (selector, type) =>
    document.querySelector(selector).dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
  drop(".al-upload", "dragover");
  requestAnimationFrame(() => setTimeout(() => drop(".q-uploader__dnd", "drop"), 100));
}"""


def a_photograph() -> bytes:
    """A picture of a phone, wide enough for a smaller version."""
    exif = Image.Exif()
    exif[0x010E] = SECRET
    written = io.BytesIO()
    Image.effect_noise((1_000, 250), 60).convert("RGB").save(written, "JPEG", exif=exif.tobytes())
    return written.getvalue()


def test_a_picture_that_is_chosen_in_the_guided_campaign_is_on_the_page_without_its_place(
    profile: BrowserContext, product: Product, seller: Seller
) -> None:
    photograph = a_photograph()
    with a_visit_again(profile) as visit:
        page = visit.page
        log_in_to(product, page)
        page.goto(f"{product.control_url}/console/first-campaign")
        page.get_by_label("On a new placement").click()
        page.get_by_label("What do you call the place?").fill("Uploaded corner")
        page.get_by_role("button", name="Next").click()
        page.get_by_label("Headline", exact=True).fill("Taken by myself")
        page.locator(".al-upload input[type=file]").set_input_files(
            {"name": "me.jpg", "mimeType": "image/jpeg", "buffer": photograph}
        )
        expect(page.get_by_text("“me.jpg” is uploaded.")).to_be_visible()
        page.get_by_label("Leads to").fill("https://shop.example/")
        page.get_by_role("button", name="Next").click()
        page.get_by_label("Name of the campaign").fill("Uploaded")
        page.get_by_role("button", name="Next").click()
        page.get_by_role("button", name="Put it on the page").click()
        expect(page.get_by_text('data-adloom="uploaded-corner"')).to_be_visible()

    [banner] = seller.admin.get("/admin/banners", params={"search": "Taken by myself"}).json()["items"]
    stored = httpx.get(banner["primaryImageUrl"]).content
    assert SECRET.encode() in photograph
    assert SECRET.encode() not in stored
    assert Image.open(io.BytesIO(stored)).size == (banner["width"], banner["height"]) == (1_000, 250)
    assert Image.open(io.BytesIO(httpx.get(banner["mobileImageUrl"]).content)).size == (640, 160)


def test_a_creative_that_is_dropped_acts_in_a_frame_without_rights_on_the_page(
    chromium: Browser, profile: BrowserContext, product: Product, seller: Seller, site: Site
) -> None:
    seller.ads("dropped-creative", "full_static", count=0)
    with a_visit_again(profile) as visit:
        page = visit.page
        log_in_to(product, page)
        page.goto(f"{product.control_url}/console/banners/new")
        page.get_by_label("Title", exact=True).fill("Dropped")
        page.get_by_label("Leads to").fill(f"{site.url}/shop")
        page.get_by_label("Address of the picture").fill(site.picture())
        page.locator(".al-upload input[type=file]").set_input_files(
            {"name": "me.heic", "mimeType": "image/heic", "buffer": b"small"}
        )
        expect(
            page.get_by_text("“me.heic” is of no kind that fits here. JPEG, PNG, WebP, GIF, SVG, MP4")
        ).to_be_visible()
        page.evaluate(DROP, [base64.b64encode(a_zip(CREATIVE)).decode(), "creative.zip"])
        expect(page.get_by_text("“creative.zip” is uploaded.")).to_be_visible()
        expect(page.get_by_label("Width")).to_have_value("300")
        page.get_by_role("button", name="Create").click()
        page.wait_for_url("**/console/banners/*tab=where")
        banner_id = page.url.rpartition("/")[2].partition("?")[0]
        campaign = _warn_of_countries(page, product, seller)

    [placement] = seller.admin.get("/admin/placements", params={"search": "dropped-creative"}).json()["items"]
    links = f"campaigns/{campaign}/placements"
    seller.made(links, placementId=placement["id"])
    seller.made(f"{links}/{placement['id']}/banners", bannerId=banner_id)
    assert seller.admin.patch(f"/admin/campaigns/{campaign}/activate").status_code == 200
    seller.wait_until_served("dropped-creative", 1)

    with a_visit(chromium) as visit:
        space = 'style="width: 300px; height: 250px"'
        visit.page.goto(site.page("/creative", place("dropped-creative", space), head=tag(product)))
        frame = visit.page.locator("iframe.media")
        expect(frame).to_have_attribute(
            "sandbox", "allow-scripts allow-popups allow-popups-to-escape-sandbox"
        )
        text = visit.page.frame_locator("iframe.media").locator("p")
        expect(text).to_contain_text(f"Acts: #clickTag={product.delivery_url}/c/")
        assert visit.errors == []


def _warn_of_countries(page: Page, product: Product, seller: Seller) -> str:
    """See that a rule about countries is warned of where nobody knows them; return the campaign."""
    campaign: str = seller.made("campaigns", name="Dropped")["id"]
    page.goto(f"{product.control_url}/console/campaigns/{campaign}?tab=targeting")
    page.get_by_role("button", name="Add a condition").click()
    expect(page.get_by_text("No reader's country is known here")).to_be_visible()
    return campaign
