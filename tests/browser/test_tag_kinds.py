"""A page with slots of every kind: one request fills them all, nothing moves, and what is seen and clicked is billed."""

import json
from functools import reduce
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.chromium import STRANGER, a_visit, stand_still
from tests.support.days import these_days
from tests.support.product import Product, wait_until
from tests.support.publisher import Seller, Site, place, tag

pytestmark = [pytest.mark.browser, pytest.mark.process]

COUNTED_SECONDS_MAX = 60.0
SOLD_SECONDS_MAX = 60.0
PAGE = "/requests-of-every-kind"
DOMAIN = "magazine.example"
CANONICAL = f'<link rel="canonical" href="https://{DOMAIN}{PAGE}">'
TENNIS = "539"
SPACE = 'style="aspect-ratio: 4; max-width: 600px"'
FLOOR = 500  # For a thousand impressions: half a unit for one.
SHIFTS = """new PerformanceObserver((list) => {
  for (const shift of list.getEntries()) window.shifts = (window.shifts || 0) + shift.value;
}).observe({ type: "layout-shift", buffered: true });"""
SLUGS = ("kind-direct", "kind-auction", "kind-page")


class Kinds:
    """Placements of every kind with an ad each, on a page that is known."""

    def __init__(self, product: Product, seller: Seller, site: Site) -> None:
        self._product, self._seller, self._site = product, seller, site
        [self.direct] = seller.ads("kind-direct", "full_static")
        self.auctioned = self._sell("kind-auction", "auction")
        site_id = self._know_page()
        self.campaign, self.banner = self._sell_by_page("kind-page", site_id)
        wait_until(self._is_sold, seconds=SOLD_SECONDS_MAX, what="every slot has an ad")

    def _is_sold(self) -> bool:
        body = {"url": f"https://{DOMAIN}{PAGE}", "slots": list(SLUGS)}
        answer = httpx.post(f"{self._product.delivery_url}/v1/serve/page", json=body).json()
        return all(one.get("banners") for one in answer["slots"].values())

    def _know_page(self) -> str:
        site = self._seller.made("sites", domain=DOMAIN, approvalMode="automatic")
        path = f"/admin/sites/{site['id']}"
        page = {"url": f"https://{DOMAIN}{PAGE}", "categories": [{"id": TENNIS, "confidence": 0.9}]}
        for sent in ("verify", {"force": True}), ("pages", page):
            assert self._seller.admin.post(f"{path}/{sent[0]}", json=sent[1]).status_code == 200
        return site["id"]

    def _campaign(self, name: str, **fields: Any) -> str:
        return self._seller.made("campaigns", name=name, bidType="cpm", bidAmount=2 * FLOOR, **fields)["id"]

    def _sell(self, slug: str, delivery: str) -> str:
        seller, campaign = self._seller, self._campaign(slug)
        placement = self._place(slug, delivery)
        links = f"campaigns/{campaign}/placements"
        seller.made(links, placementId=placement)
        banner = seller.made("banners", **seller.banner(slug, 1))["id"]
        seller.made(f"{links}/{placement}/banners", bannerId=banner)
        self._activate(campaign)
        return banner

    def _sell_by_page(self, slug: str, site_id: str) -> tuple[str, str]:
        seller = self._seller
        campaign = self._campaign(slug, categories=[TENNIS])
        self._place(slug, "contextual", siteId=site_id, floorCpm=FLOOR)
        banner = seller.made("banners", **seller.banner(slug, 2))["id"]
        seller.made(f"campaigns/{campaign}/creatives", bannerId=banner)
        self._activate(campaign)
        return campaign, banner

    def _place(self, slug: str, delivery: str, **fields: Any) -> str:
        shape = {"slug": slug, "label": slug, "layoutType": "full_static", "maxBanners": 1}
        return self._seller.made("placements", **shape, delivery=delivery, **fields)["id"]

    def _activate(self, campaign: str) -> None:
        assert self._seller.admin.patch(f"/admin/campaigns/{campaign}/activate").status_code == 200


@pytest.fixture(scope="module")
def kinds(product: Product, seller: Seller, site: Site) -> Kinds:
    return Kinds(product, seller, site)


def all_filled(page: Page, count: int = len(SLUGS)) -> None:
    expect(page.locator(".banner img")).to_have_count(count)
    for number in range(count):
        image = page.locator(".banner img").nth(number)
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", value=True)


def test_one_request_fills_slots_of_every_kind_and_nothing_moves(
    chromium: Browser, product: Product, site: Site, kinds: Kinds
) -> None:
    policy = (
        f"default-src 'none'; style-src-attr 'unsafe-inline'; script-src {product.delivery_url}; "
        f"connect-src {product.delivery_url}; img-src {site.url}"
    )
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' + CANONICAL + tag(product)
    body = "".join(f"<p>Above {slug}.</p>{place(slug, SPACE)}<p>Below.</p>" for slug in SLUGS)

    with a_visit(chromium) as visit:
        stand_still(visit.page)  # Nothing is seen for a second: the next test counts.
        visit.page.add_init_script(SHIFTS)
        visit.page.goto(site.page(PAGE, body, head=head))
        all_filled(visit.page)

        [asked] = visit.sent_json("/v1/serve/page")
        assert asked["slots"] == list(SLUGS)
        assert asked["canonicalUrl"] == f"https://{DOMAIN}{PAGE}"
        assert visit.requests_to("/banners/serve") == visit.requests_to("/v1/classify-page") == []
        answers = visit.page.evaluate(
            "adloom.inspect().map(({ slug, answer }) => [slug, answer.banners[0].id])"
        )
        assert dict(answers) == dict(zip(SLUGS, (kinds.direct, kinds.auctioned, kinds.banner), strict=True))
        assert visit.page.evaluate("window.shifts || 0") == 0
        assert visit.errors == []


def test_what_is_seen_and_clicked_in_a_contextual_slot_is_counted_and_billed(
    chromium: Browser, product: Product, seller: Seller, site: Site, kinds: Kinds
) -> None:
    site.page("/shop", "<h1>The shop</h1>")
    before = seller.totals(kinds.banner)

    with a_visit(chromium) as visit:
        page = visit.page
        with page.expect_response("**/banners/events/batch"):
            page.goto(site.page(PAGE, place("kind-page", SPACE), head=CANONICAL + tag(product)))
        page.get_by_role("link", name="Autumn").click()
        page.wait_for_url(f"{site.url}/shop")

    def counted() -> list[int]:
        now = seller.totals(kinds.banner)
        return [now[name] - before[name] for name in ("impressions", "clicks", "spendPaisa")]

    wait_until(
        lambda: counted() == [1, 1, FLOOR // 10],
        seconds=COUNTED_SECONDS_MAX,
        what="one of each, and its price",
    )


# A frame of somebody else's page: it asks for an offer, or has one that its server asked for, and says of both that they
# were seen on the magazine's page.
CLAIMING = """<!doctype html><title>Claims to be the magazine</title><script type="module">
  const [base, url, given] = ["BASE", "PAGE", JSON.parse(`GIVEN`)];
  const send = async (path, body) => (await fetch(base + path, { method: "POST", body: JSON.stringify(body) })).json();
  const asked = await send("/v1/serve/page", { url, slots: ["kind-page"] });
  const events = [given, asked.slots["kind-page"]].map(({ placement, banners: [banner] }) => ({
    type: "impression", correlationId: banner.trackingToken.slice(-40), bannerId: banner.id, placementId: placement.id,
    trackingToken: banner.trackingToken, pageUrl: url,
  }));
  await new Promise((done) => setTimeout(done, 200));
  parent.postMessage(await send("/banners/events/batch", { events }), "*");
</script>"""


def test_what_a_frame_reports_as_another_page_is_marked_and_not_billed(
    chromium: Browser, product: Product, seller: Seller, site: Site, kinds: Kinds
) -> None:
    claimed = f"https://{DOMAIN}{PAGE}"
    before = seller.totals(kinds.banner)
    asked = {"url": claimed, "slots": ["kind-page"]}
    given = httpx.post(f"{product.delivery_url}/v1/serve/page", json=asked).json()["slots"]["kind-page"]
    words = {"BASE": product.delivery_url, "PAGE": claimed, "GIVEN": json.dumps(given)}
    frame = reduce(lambda text, word: text.replace(*word), words.items(), CLAIMING)
    port = site.url.rpartition(":")[2]
    around = f"""<script>onmessage = ({{ data }}) => {{ window.answer = data; }};</script>
        <iframe src="http://frame.{STRANGER}:{port}/claiming"></iframe>"""
    site.page("/around", around)
    site.pages["/claiming"] = ("text/html; charset=utf-8", frame)

    with a_visit(chromium) as visit:
        visit.page.goto(f"http://www.{STRANGER}:{port}/around")
        visit.page.wait_for_function("window.answer")
        assert visit.page.evaluate("answer.accepted") == 2
        assert visit.errors == []

    def counted() -> list[int]:
        now = seller.totals(kinds.banner)
        return [now[name] - before[name] for name in ("impressions", "invalidImpressions", "spendPaisa")]

    wait_until(lambda: counted()[0] == 2, seconds=COUNTED_SECONDS_MAX, what="both are counted")
    assert counted() == [2, 2, 0]
    listed = seller.admin.get(
        "/admin/events/rejected", params={**these_days(), "bannerId": kinds.banner}
    ).json()
    assert sorted(item["reasons"][0] for item in listed["items"]) == ["doubtful_offer", "other_site"]


def test_a_slot_that_stays_empty_says_so_once_in_the_console_of_the_browser(
    chromium: Browser, product: Product, site: Site, kinds: Kinds
) -> None:
    del kinds
    lines: list[str] = []
    body = place("kind-drect", SPACE) + place("kind-page", SPACE) + place("Kind_Page", SPACE)

    with a_visit(chromium) as visit:
        visit.page.on("console", lambda message: lines.append(message.text))
        visit.page.goto(site.page("/not-known", body, head=tag(product)))
        visit.page.wait_for_function("(window.adloom || {}).inspect && adloom.inspect()[1].answer")
        visit.page.evaluate("adloom.refresh()")

        assert lines == [
            "Adloom: Kind_Page: no slug has such characters",
            "Adloom: kind-drect: No active placement has this slug.",
            "Adloom: kind-page: The host of `url` is not one of the site's.",
        ]
        assert visit.errors == []


def test_a_panel_says_what_each_slot_got_and_why(
    chromium: Browser, product: Product, site: Site, seller: Seller, kinds: Kinds
) -> None:
    del kinds
    seller.ads("kind-empty", "full_static", count=0)
    policy = f"default-src 'none'; style-src-attr 'unsafe-inline'; script-src {product.delivery_url}; connect-src {product.delivery_url}; img-src {site.url}"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' + CANONICAL + tag(product)
    body = "".join(place(slug, SPACE) for slug in ("kind-page", "kind-empty", "kind-drect"))

    with a_visit(chromium) as visit:
        page = visit.page
        page.goto(site.page(PAGE, body, head=head) + "?adloom-debug")
        panel = page.get_by_role("region", name="Adloom")
        expect(panel).to_contain_text(f"Known as https://{DOMAIN}{PAGE}: known.")
        by_page, empty, mistyped = (panel.get_by_role("listitem").nth(number) for number in range(3))
        expect(by_page).to_contain_text('chosen by the page\'s category "Tennis"')
        expect(empty).to_contain_text("no_demand: No ad is booked")
        expect(mistyped).to_contain_text("No active placement has this slug.")
        assert "rice" not in panel.inner_text()

        by_page.get_by_role("button").click()
        panel.get_by_role("button", name="Close").click()
        expect(panel).to_have_count(0)
        assert visit.errors == []


def test_the_tag_works_as_a_module(chromium: Browser, product: Product, site: Site, kinds: Kinds) -> None:
    del kinds
    head = tag(product, how='type="module"', label="Anzeige")

    with a_visit(chromium) as visit:
        visit.page.goto(site.page("/module", place("kind-direct", SPACE), head=head))
        all_filled(visit.page, 1)

        expect(visit.page.locator(".label")).to_have_text("Anzeige")
        assert visit.errors == []
