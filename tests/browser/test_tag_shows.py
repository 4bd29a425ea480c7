"""The tag on a publisher's page: every layout, without layout shifts, errors or escaping its elements."""

import json
import time
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.catalog.asset_files import a_zip
from tests.support.chromium import Visit, a_visit
from tests.support.product import Product
from tests.support.publisher import Seller, Site, place, tag

pytestmark = [pytest.mark.browser, pytest.mark.process]

INLINE = {
    "full_slider": 3,
    "full_static": 1,
    "half_pair": 2,
    "quarter_grid": 4,
    "sidebar_stack": 2,
    "sidebar_single": 1,
    "inline_card": 1,
}
OVERLAYS = {"sticky_bar": 1, "popup": 1, "interstitial": 1}
TEXT = "<p>" + "Words that a page has, and that are not to move. " * 20 + "</p>"
SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => list.getEntries().forEach((entry) => window.shifts.push(entry.value)))
  .observe({ type: "layout-shift", buffered: true });
"""


@pytest.fixture(scope="module", autouse=True)
def _ads(seller: Seller) -> None:
    for layout, count in {**INLINE, **OVERLAYS}.items():
        seller.ads(layout.replace("_", "-"), layout, count)
    seller.ads("nothing", "full_static", 0)


def banners(page: Page, slug: str) -> Any:
    return page.locator(f'[data-adloom="{slug}"] .banner')


def is_still(page: Page) -> bool:
    # Two frames later every shift has been reported.
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.evaluate("window.shifts") == []


def late(visit: Visit, what: str) -> None:
    def wait(route: Route) -> None:
        time.sleep(0.4)
        route.continue_()

    visit.page.route(what, wait)


@pytest.mark.parametrize("width", [1200, 390])
def test_every_layout_is_shown_without_layout_shift_even_with_a_late_script(
    chromium: Browser, product: Product, site: Site, width: int
) -> None:
    slugs = [layout.replace("_", "-") for layout in INLINE]
    body = "".join(place(slug, 'style="min-height: 200px"') + TEXT for slug in slugs)
    overlays = "".join(place(layout.replace("_", "-")) for layout in OVERLAYS)
    address = site.page("/all", overlays + body, head=tag(product))

    with a_visit(chromium, viewport={"width": width, "height": 800}) as visit:
        page = visit.page
        page.add_init_script(SHIFTS)
        late(visit, "**/tag.js")
        late(visit, "**/v1/serve/page")
        page.goto(address)

        for slug, count in zip(slugs, INLINE.values(), strict=True):
            expect(banners(page, slug)).to_have_count(count)
            expect(banners(page, slug).first.locator("img")).to_have_js_property("complete", value=True)
        expect(banners(page, "sticky-bar")).to_be_visible()
        expect(page.locator("dialog")).to_have_count(2)
        expect(page.locator("dialog[open]")).to_have_count(1)
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(1)
        expect(page.locator("dialog[open] .banner")).to_be_visible()
        page.locator("dialog[open] button").click()
        expect(page.locator("dialog")).to_have_count(0)
        banners(page, "inline-card").scroll_into_view_if_needed()
        assert is_still(page)
        assert len(visit.requests_to("/v1/serve/page")) == 1
        assert visit.errors == []


def test_a_placement_without_attributes_gets_its_space_before_the_first_paint(
    chromium: Browser, product: Product, site: Site
) -> None:
    slugs = ["full-static", "half-pair", "popup", "sticky-bar"]
    address = site.page("/bare", "".join(place(slug) + TEXT for slug in slugs), head=tag(product, how=""))

    with a_visit(chromium) as visit:
        visit.page.add_init_script(SHIFTS)
        late(visit, "**/v1/serve/page")
        visit.page.goto(address)

        expect(banners(visit.page, "full-static")).to_be_visible()
        assert banners(visit.page, "full-static").bounding_box()["height"] > 200
        assert is_still(visit.page)


def test_content_painted_before_the_script_moves_smoothly(
    chromium: Browser, product: Product, site: Site
) -> None:
    inner = f"<section>{TEXT}{place('half-pair')}<div>{TEXT}</div></section>"
    address = site.page("/late", f"<h1>A title</h1>{place('full-static')}{inner}{TEXT}", head=tag(product))

    with a_visit(chromium, viewport={"width": 1000, "height": 1200}) as visit:
        page = visit.page
        page.add_init_script(SHIFTS)
        late(visit, "**/tag.js")
        page.goto(address)

        expect(banners(page, "half-pair")).to_have_count(2)
        page.wait_for_function("document.getAnimations().length === 0")
        assert page.locator("section").evaluate("(section) => section.offsetTop") > 250
        assert is_still(page)
        assert visit.errors == []


def test_what_nobody_sees_move_is_not_animated(chromium: Browser, product: Product, site: Site) -> None:
    counting = """window.animated = 0; const { animate } = Element.prototype;
        Element.prototype.animate = function (...how) { window.animated++; return animate.apply(this, how); };"""
    below = "".join(f"<p>{number}</p>" for number in range(500))
    address = site.page("/long", "<h1>A title</h1>" + place("full-static") + below, head=tag(product))

    with a_visit(chromium, viewport={"width": 800, "height": 600}) as visit:
        page = visit.page
        page.add_init_script(SHIFTS + counting)
        late(visit, "**/tag.js")
        page.goto(address)

        expect(banners(page, "full-static")).to_be_visible()
        assert 0 < page.evaluate("window.animated") < 50
        assert is_still(page)


def test_a_placement_that_was_empty_has_space_for_the_ad_of_a_refresh(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    seller.ads("refilled", "full_static")
    empty: list[Any] = []

    def answer(route: Route) -> None:
        if empty:
            route.continue_()
            return
        body = route.fetch().json()
        body["slots"]["refilled"]["banners"] = []
        empty.append(body)
        route.fulfill(json=body)

    with a_visit(chromium) as visit:
        page = visit.page
        page.add_init_script(SHIFTS)
        page.route("**/v1/serve/page", answer)
        page.goto(site.page("/refilled", TEXT * 9 + place("refilled") + TEXT * 9, head=tag(product, how="")))
        one = page.locator("[data-adloom]")
        expect(one).to_have_css("height", "0px")

        page.evaluate("(place) => place.scrollIntoView({ block: 'center' })", one.element_handle())
        with page.expect_response("**/banners/events/batch"):
            page.evaluate("adloom.refresh()")
        assert one.evaluate("(place) => place.clientHeight") > 200
        assert is_still(page)


def test_an_empty_placement_keeps_its_space_if_visible_and_collapses_if_not(
    chromium: Browser, product: Product, site: Site
) -> None:
    body = place("nothing", "id=near") + TEXT * 9 + place("nothing", "id=far") + TEXT
    address = site.page("/nothing", body, head=tag(product, how=""))

    with a_visit(chromium) as visit:
        visit.page.add_init_script(SHIFTS)
        with visit.page.expect_response("**/v1/serve/page"):
            visit.page.goto(address)

        expect(visit.page.locator("#far")).to_have_css("height", "0px")
        assert visit.page.locator("#near").evaluate("(place) => place.clientHeight") > 100
        assert is_still(visit.page)


def test_a_placement_can_set_its_height_ratio_and_layout(
    chromium: Browser, product: Product, site: Site
) -> None:
    body = place("full-static", 'data-height="90" id="a"') + place("half-pair", 'data-ratio="2:1" id="b"')
    address = site.page("/said", f'<div style="width: 800px">{body}</div>', head=tag(product))

    with a_visit(chromium) as visit:
        visit.page.goto(address)

        expect(banners(visit.page, "half-pair")).to_have_count(2)
        expect(visit.page.locator("#a")).to_have_css("height", "90px")
        expect(visit.page.locator("#b")).to_have_css("height", "400px")


def test_banner_texts_stay_text_and_only_web_addresses_are_used(
    chromium: Browser, product: Product, site: Site
) -> None:
    bad = "javascript:window.broken=1"
    banner = {
        "id": "b",
        "campaignId": "c",
        "headline": "<img src=x onerror='window.broken = 1'>",
        "primaryImageUrl": bad,
        "mobileImageUrl": bad,
        "videoUrl": bad,
        "mediaVariants": {"html": bad, "desktop": bad, "tablet": "data:image/png;base64,"},
        "ctaUrl": bad,
        "clickUrl": bad,
        "bgColor": "url(javascript:window.broken=1)",
        "trackingToken": "t",
    }
    placement = {"id": "p", "layoutType": "full_static", "fallbackPlaceholderUrl": bad}
    answer = {"banners": [banner], "placement": placement, "requestId": "r"}
    address = site.page("/bad", place("bad"), head=tag(product))

    with a_visit(chromium) as visit:
        page = visit.page
        page.route(
            "**/v1/serve/page", lambda route: route.fulfill(body=json.dumps({"slots": {"bad": answer}}))
        )
        page.goto(address)

        expect(banners(page, "bad")).to_contain_text("<img src=x")
        for element in ("a", "img", "video", "iframe"):
            expect(page.locator(f"[data-adloom] {element}")).to_have_count(0)
        assert page.evaluate("window.broken") is None


def test_video_html_and_text_creatives_are_shown(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    script = "<script>try { parent.document; } catch { document.title = 'alone'; }</script>"
    creative = site.page("/creative.html", f"<p>Hello</p>{script}")
    film = f"{site.url}/film.webm"
    seller.ads("film", "sidebar_single", videoUrl=film)
    wordless: Any = dict.fromkeys(("headline", "subheadline", "description", "ctaLabel", "ctaUrl"))
    seller.ads("mute", "sidebar_single", videoUrl=film, **wordless)
    seller.ads("html", "sidebar_single", mediaVariants={"html": creative})
    tablet = {"tablet": site.picture(2)}
    seller.ads("sizes", "full_static", mediaVariants=tablet, mobileImageUrl=site.picture(3))
    text = place("full-static", 'data-format="text"')
    address = site.page(
        "/kinds", place("film") + place("mute") + place("html") + place("sizes") + text, head=tag(product)
    )

    with a_visit(chromium, viewport={"width": 390, "height": 800}) as visit:
        page = visit.page
        films: list[Route] = []  # That do not come.
        page.route("**/film.webm", lambda route: films.append(route))  # noqa: PLW0108 - a builtin cannot be marked
        page.goto(address)

        video = page.locator('[data-adloom="film"] video')
        expect(video).to_have_js_property("muted", value=True)
        expect(video).to_have_attribute("controls", "")
        expect(page.locator('[data-adloom="mute"]')).to_have_text("Ad")
        expect(page.locator('[data-adloom="film"] a')).to_contain_text("Have a look")
        frame = page.locator("iframe")
        expect(frame).to_have_attribute(
            "sandbox", "allow-scripts allow-popups allow-popups-to-escape-sandbox"
        )
        expect(frame.content_frame.locator("p")).to_have_text("Hello")
        inside = next(one for one in page.frames if "creative" in one.url)
        assert inside.title() == "alone"
        assert "#clickTag=http" in inside.url
        sizes = page.locator('[data-adloom="sizes"] img')
        expect(sizes).to_have_js_property("currentSrc", site.picture(3))
        page.set_viewport_size({"width": 800, "height": 800})
        expect(sizes).to_have_js_property("currentSrc", site.picture(2))
        page.set_viewport_size({"width": 1200, "height": 800})
        expect(sizes).to_have_js_property("currentSrc", site.picture(0))
        expect(banners(page, "full-static").locator("img")).to_have_count(0)
        expect(banners(page, "full-static")).to_contain_text("Autumn 1 is here")
        for film in films:
            film.abort()


def test_an_uploaded_creative_loads_its_own_files_and_nothing_else_of_delivery(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    script = """
        const ask = (address, options) => fetch(address, options).then((answer) => `${answer.status}`, () => "blocked");
        const load = (address) => new Promise((done) => {
          Object.assign(new Image(), { onload: () => done("shown"), onerror: () => done("blocked"), src: address });
        });
        Promise.all([
          ask("data.json"), load("a.svg"), ask("/banners/serve/full-static"), load(OTHERS),
          ask("/banners/events/batch", { method: "POST", body: "{}" }),
        ]).then((found) => { document.querySelector("p").textContent = found.join(" "); });
    """
    drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="9"/>'
    others = seller.admin.post("/admin/assets", content=drawing.format(8)).json()["url"]
    creative = {
        "index.html": b'<link rel="stylesheet" href="css/a.css"><p>Hello</p><script src="a.js"></script>',
        "css/a.css": b"p { color: rgb(1, 2, 3) }",
        "a.js": script.replace("OTHERS", json.dumps(others)).encode(),
        "data.json": b"{}",
        "a.svg": drawing.format(9).encode(),
    }
    asset = seller.admin.post("/admin/assets", content=a_zip(creative)).json()
    seller.ads("uploaded", "sidebar_single", mediaVariants={"html": asset["url"]})

    with a_visit(chromium) as visit:
        visit.page.goto(site.page("/uploaded", place("uploaded"), head=tag(product)))

        text = visit.page.locator("iframe").content_frame.locator("p")
        expect(text).to_have_text("200 shown blocked blocked blocked")
        expect(text).to_have_css("color", "rgb(1, 2, 3)")


def test_a_missing_image_leaves_the_text(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    seller.ads("broken", "full_static", primaryImageUrl=f"{site.url}/nowhere.png")

    with a_visit(chromium) as visit:
        visit.page.goto(site.page("/broken", place("broken"), head=tag(product)))

        expect(banners(visit.page, "broken").locator("img")).to_have_count(0)
        expect(banners(visit.page, "broken")).to_contain_text("Autumn 1 is here")


def test_a_frame_or_video_that_cannot_be_shown_is_replaced_by_the_picture(
    chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    ours = product.delivery_url
    policy = f"default-src 'none'; style-src-attr 'unsafe-inline'; script-src {ours}; connect-src {ours}; img-src {site.url}"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' + tag(product)
    seller.ads("forbidden-html", "full_static", mediaVariants={"html": f"{site.url}/creative.html"})
    seller.ads("forbidden-film", "full_static", videoUrl=f"{site.url}/film.webm")

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page("/forbidden", place("forbidden-html") + place("forbidden-film"), head=head))

        expect(page.locator(".banner a img")).to_have_count(2)
        expect(page.locator("iframe, video, .banner.video")).to_have_count(0)
        expect(banners(page, "forbidden-html")).to_contain_text("Autumn 1 is here")


def test_a_placement_has_a_width_in_every_layout_of_the_page_and_none_where_the_page_hides_it(
    chromium: Browser, product: Product, site: Site
) -> None:
    one, ratio = place("full-static"), place("full-static", 'style="aspect-ratio: 4"')
    column = "display: flex; flex-direction: column; align-items: center"
    body = f"""<div style="display: flex">{one}</div><div style="display: flex; justify-content: center">{ratio}</div>
        <div style="{column}">{one}</div><div style="{column}">{ratio}</div><div style="display: grid">{ratio}</div>
        <div style="display: flex"><p style="width: 300px; flex: none">Beside</p>{one}</div>
        <div style="display: flex">{place("popup", "id=none")}</div>{place("full-static", "id=hidden hidden")}"""

    with a_visit(chromium, viewport={"width": 800, "height": 900}) as visit:
        page = visit.page
        page.goto(site.page("/wide", body, head=tag(product)))

        expect(page.locator(".banner")).to_have_count(8)
        sizes = page.evaluate("[...document.querySelectorAll('[data-adloom]')].map((one) => one.offsetWidth)")
        assert sizes == [784, 784, 784, 784, 784, 484, 0, 0]


def test_a_missing_image_is_replaced_by_the_banners_own_placeholder(
    chromium: Browser, product: Product, site: Site, seller: Seller
) -> None:
    nowhere, spare = f"{site.url}/nowhere.png", site.picture(3)
    seller.ads("spare", "full_static", primaryImageUrl=nowhere, fallbackPlaceholderUrl=spare)
    seller.ads("no-spare", "full_static", primaryImageUrl=nowhere, fallbackPlaceholderUrl=nowhere)

    with a_visit(chromium) as visit:
        visit.page.goto(site.page("/spare", place("spare") + place("no-spare"), head=tag(product)))

        expect(banners(visit.page, "spare").locator("img")).to_have_attribute("src", spare)
        expect(banners(visit.page, "no-spare").locator("img")).to_have_count(0)


def test_a_page_that_forbids_inline_styles_shows_ads(chromium: Browser, product: Product, site: Site) -> None:
    ours = product.delivery_url
    policy = f"default-src 'none'; script-src {ours}; connect-src {ours}; img-src {site.url}"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' + tag(product)

    with a_visit(chromium) as visit:
        visit.page.goto(site.page("/strict", place("full-static"), head=head))

        expect(banners(visit.page, "full-static")).to_be_visible()
        expect(banners(visit.page, "full-static")).to_have_css("position", "relative")
        assert visit.errors == []


def test_the_frame_page_shows_only_its_placement(chromium: Browser, product: Product, site: Site) -> None:
    frame = f'<iframe src="{product.delivery_url}/serve/popup.html" width="600" height="300"></iframe>'

    with a_visit(chromium) as visit:
        visit.page.goto(site.page("/framed", frame))

        inside = visit.page.frame_locator("iframe")
        expect(inside.locator(".banner")).to_be_visible()
        expect(inside.locator("dialog")).to_have_count(0)
        expect(inside.locator(".banner a")).to_have_attribute("target", "_top")
        assert visit.errors == []
