"""A real first start: pages, figures that change by themselves, and a removal that changes nothing else."""

import asyncio
import json
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from adloom.app.up.sample import is_catalog_untouched, is_loaded
from adloom.runtime.installation import DataDirectory
from adloom.sample.content.articles import ARTICLES
from adloom.sample.content.catalog import BANNER_BY_KEY, CAMPAIGNS, SLOTS
from tests.support.chromium import a_chromium, a_visit
from tests.support.product import Finished, Product, adloom, status_of, wait_until

pytestmark = pytest.mark.process

LISTS = (
    "advertisers",
    "publishers",
    "sites",
    "brands",
    "placements",
    "banners",
    "campaigns",
    "links",
    "assignments",
)


ARTICLE_URLS = {f"hedgerow.example{article.path}" for article in ARTICLES}
VISITED_PATHS = (
    "/sample",
    "/sample/articles/the-long-way-round",
    "/sample/shop",
    "/sample/shop/table-and-tea",
    "/sample/shop/products/teapot",
)
WIDTHS = (1400, 390)
COUNT_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.shifted += value;
}).observe({ type: "layout-shift", buffered: true });
"""
ALL_FILLED = """() => [...document.querySelectorAll("[data-adloom]")].every(
  ({ shadowRoot }) => shadowRoot && [...shadowRoot.querySelectorAll("img")].some(({ complete, naturalWidth }) => complete && naturalWidth))"""


class Admin:
    """An admin with a token."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._token = product.token()

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - our own
            f"{self._product.control_url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - our own
            content = answer.read()
        return json.loads(content) if content else None

    def totals(self) -> dict[str, int]:
        now = datetime.now(UTC)
        days = f"from={now - timedelta(days=1):%Y-%m-%d}&to={now:%Y-%m-%d}"
        return self.ask("GET", f"/admin/stats/banners?{days}&groupBy=day")["totals"]

    def list_deliveries_asked_for(self) -> set[str]:
        """Return the kinds of delivery whose placements have requests."""
        offered = self.ask("GET", "/admin/offered-placements?pageSize=100")["items"]
        return {one["delivery"] for one in offered if one["requestsPerDay"]}

    def export(self) -> dict[str, list[str]]:
        document = self.ask("GET", "/admin/export")
        return {kind: [json.dumps(item) for item in document[kind]] for kind in LISTS}


@pytest.fixture(scope="module")
def product(sample_product: Product) -> Product:
    return sample_product


@pytest.fixture(scope="module")
def admin(product: Product) -> Admin:
    return Admin(product)


def sample(product: Product, word: str) -> Finished:
    return adloom("sample", word, "--data-dir", str(product.data_dir))


def traffic_processes(product: Product) -> list[int]:
    return product.children("sample_traffic")


def test_the_start_prints_the_addresses_of_the_sample_pages(product: Product) -> None:
    for label, path in (("sample", "/sample"), ("shop", "/sample/shop")):
        assert f"{label:<10}{product.delivery_url}{path}" in product.output
        assert status_of(f"{product.delivery_url}{path}") == 200


def test_the_sample_has_all_its_placements_and_campaigns(product: Product, admin: Admin) -> None:
    states = {campaign.key: campaign.status for campaign in CAMPAIGNS if not campaign.is_deleted}

    placements = admin.ask("GET", "/admin/placements?pageSize=100")["items"]
    campaigns = admin.ask("GET", "/admin/campaigns?pageSize=100")["items"]
    restorable = admin.ask("GET", "/admin/campaigns?includeDeleted=true&search=Harvest")["items"]

    assert {placement["slug"] for placement in placements} >= {slot.slug for slot in SLOTS}
    assert sorted(campaign["status"] for campaign in campaigns) == sorted(states.values())
    assert all(campaign["deletedAt"] for campaign in restorable)
    assert restorable
    assert not asyncio.run(is_catalog_untouched(product.database_url))
    assert sample(product, "status").out.startswith("The sample is there, since ")


def test_every_direct_placement_has_banners(product: Product) -> None:
    for slot in SLOTS:
        if slot.is_active and not slot.is_free and slot.auction_type is None and not slot.is_contextual:
            address = f"{product.delivery_url}/banners/serve/{slot.slug}"
            wait_until(lambda it=address: status_of(it) == 200, seconds=30, what=slot.slug)
            with urllib.request.urlopen(address) as answer:  # noqa: S310 - our own
                assert json.load(answer)["banners"], slot.slug


@pytest.mark.browser
def test_a_browser_fills_every_slot_without_layout_shifts(product: Product) -> None:
    with a_chromium() as browser:
        for width in WIDTHS:
            check_slots(browser, product, width)


def check_slots(browser: Browser, product: Product, width: int) -> None:
    with a_visit(browser, viewport={"width": width, "height": 900}) as visit:
        visit.page.add_init_script(COUNT_SHIFTS)
        for path in VISITED_PATHS:
            visit.page.goto(f"{product.delivery_url}{path}")
            visit.page.wait_for_function(ALL_FILLED)
            assert visit.page.evaluate("window.shifted") == 0, path
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert visit.errors == []
        hosts = {urlsplit(request.url).netloc for request in visit.requests}
        assert hosts == {urlsplit(product.delivery_url).netloc}


@pytest.mark.timeout(420)  # It may wait as long as all of its waits together.
def test_figures_change_by_themselves(product: Product, admin: Admin) -> None:
    wait_until(lambda: admin.totals()["clicks"] > 100, seconds=90, what="the day before")
    wait_until(lambda: admin.totals()["spendPaisa"] > 0, seconds=60, what="money is spent")
    wait_until(
        lambda: admin.list_deliveries_asked_for() == {"direct", "auction"}, seconds=60, what="requests"
    )
    before = admin.totals()["impressions"]
    wait_until(lambda: admin.totals()["impressions"] > before, seconds=60, what="more impressions")

    wait_until(
        lambda: admin.ask("GET", "/api/v1/admin/auctions?pageSize=1")["totalCount"] > 0,
        seconds=60,
        what="auctions",
    )
    rejected = admin.ask("GET", "/admin/events/rejected?pageSize=1")
    # The day before was reported without tokens; nothing else is wrong with any event.
    reasons = {one["reason"] for one in rejected["reasons"] if one["impressions"] or one["clicks"]}
    assert reasons <= {"unbound"}, rejected["reasons"]
    wait_until(lambda: len(traffic_processes(product)) == 1, seconds=30, what="simulated visitors")


def test_reports_of_ad_accounts_elsewhere_have_rows(admin: Admin) -> None:
    accounts = admin.ask("GET", "/admin/advertisers?search=Meadow")["items"]
    now = datetime.now(UTC)
    days = f"dateFrom={now - timedelta(days=7):%Y-%m-%d}&dateTo={now:%Y-%m-%d}"
    path = f"/api/ads-manager/reports/campaigns?sellerId={accounts[0]['id']}&{days}"

    wait_until(lambda: admin.ask("GET", path)["summary"]["impressions"] > 0, seconds=30, what="figures")


@pytest.mark.timeout(240)
def test_the_magazine_is_a_verified_site_whose_articles_are_known_and_crawled(admin: Admin) -> None:
    [site] = admin.ask("GET", "/admin/sites?search=hedgerow.example")["items"]
    path = f"/admin/sites/{site['id']}"

    wait_until(
        lambda: admin.ask("GET", path)["verifiedHost"] == "hedgerow.example", seconds=30, what="verified"
    )
    pages = {page["url"]: page for page in admin.ask("GET", f"{path}/pages?pageSize=100")["items"]}
    assert set(pages) >= ARTICLE_URLS
    assert all(pages[url]["isFresh"] for url in ARTICLE_URLS)

    def last_crawl() -> dict[str, Any]:
        return admin.ask("GET", f"{path}/crawls")["items"][0]

    wait_until(
        lambda: last_crawl()["pagesFetched"] > len(ARTICLES),
        seconds=60,
        what="the front page and all articles",
    )
    assert last_crawl()["pagesFailed"] == 0

    def sources() -> dict[str, str]:
        listed = admin.ask("GET", f"{path}/pages?pageSize=100")["items"]
        return {page["url"]: page["source"] for page in listed if page["classifiedAt"]}

    wait_until(lambda: "crawl" in sources().values(), seconds=120, what="the front page is classified")
    assert {sources()[url] for url in ARTICLE_URLS} == {"given"}, "a crawl does not replace what was given"


def test_readers_see_and_click_contextual_ads_by_topic_and_one_banner_waits(admin: Admin) -> None:
    [site] = admin.ask("GET", "/admin/sites?search=hedgerow.example")["items"]
    path = f"/admin/sites/{site['id']}"

    def waiting() -> list[str]:
        listed = admin.ask("GET", f"{path}/approvals?state=pending")["items"]
        return [one["title"] for one in listed if one["pages"]]

    wait_until(lambda: waiting() == [BANNER_BY_KEY["story-lamp"].headline], seconds=60, what="one waits")
    demanded = admin.ask("GET", f"{path}/market")["categories"]
    assert {one["id"] for one in demanded if one["campaigns"]} >= {"42", "542"}

    slots: list[dict[str, Any]] = admin.ask("GET", "/admin/placements?search=hedgerow-story")["items"]
    now = datetime.now(UTC)
    days = f"from={now - timedelta(days=1):%Y-%m-%d}&to={now:%Y-%m-%d}"

    def totals(slot: dict[str, Any]) -> dict[str, int]:
        return admin.ask("GET", f"/admin/stats/banners?{days}&placementId={slot['id']}")["totals"]

    for slot in slots:
        wait_until(
            lambda it=slot: totals(it)["impressions"] > totals(it)["unboundImpressions"] == 0,
            seconds=90,
            what=f"{slot['slug']} is seen",
        )
    wait_until(lambda: sum(totals(one)["spendPaisa"] for one in slots) > 0, seconds=60, what="it is paid for")


def create_own_campaign(admin: Admin) -> tuple[str, ...]:
    """Create a campaign that shows a banner on a new placement and on one of the sample; return the new ids."""
    used = admin.ask("GET", "/admin/placements?search=hedgerow-top")["items"][0]["id"]
    placement = {"slug": "mine", "label": "Mine", "layoutType": "full_static"}
    own = admin.ask("POST", "/admin/placements", placement)["id"]
    banner = {"title": "Mine", "primaryImageUrl": "https://cdn.example.com/a.png"}
    shown = admin.ask("POST", "/admin/banners", banner)["id"]
    campaign = admin.ask("POST", "/admin/campaigns", {"name": "Mine"})["id"]
    links = f"/admin/campaigns/{campaign}/placements"
    for placement_id in (own, used):
        admin.ask("POST", links, {"placementId": placement_id})
        admin.ask("POST", f"{links}/{placement_id}/banners", {"bannerId": shown})
    admin.ask("PATCH", f"/admin/campaigns/{campaign}/activate")
    return own, shown, campaign


# One test, and not several: the tests that share the product find the sample loaded before and after it.
@pytest.mark.timeout(240)
def test_a_removal_changes_nothing_else_and_the_sample_can_be_loaded_again(
    product: Product, admin: Admin
) -> None:
    own, shown, campaign = create_own_campaign(admin)
    before = admin.export()
    others = {
        kind: [item for item in items if any(it in item for it in (own, shown, campaign))]
        for kind, items in before.items()
    }

    removed = sample(product, "remove")
    left = admin.export()
    again = sample(product, "remove")

    assert (removed.code, again.code) == (0, 0), removed.err + again.err
    assert 'kept: the placement "hedgerow-top", because your campaign "Mine" uses it' in removed.out
    own_items = {kind: [item for item in items if item in others[kind]] for kind, items in left.items()}
    kept = {kind: [item for item in items if item not in others[kind]] for kind, items in left.items()}
    assert own_items == others
    assert {kind: len(items) for kind, items in kept.items() if items} == {
        "placements": 1,
        "sites": 1,
        "publishers": 1,
    }
    assert all(item in before[kind] for kind, items in kept.items() for item in items)
    assert admin.export() == left
    wait_until(lambda: not traffic_processes(product), seconds=30, what="no simulated visitors")

    admin.ask("DELETE", f"/admin/campaigns/{campaign}")
    admin.ask("DELETE", f"/admin/banners/{shown}")
    admin.ask("DELETE", f"/admin/placements/{own}")
    last = sample(product, "remove")

    assert "kept" not in last.out
    assert sample(product, "status").out.startswith("There is no sample.")
    assert not (product.data_dir / "sample.json").exists()
    assert not any(admin.export().values())
    wait_until(lambda: status_of(f"{product.delivery_url}/sample") == 404, seconds=30, what="no pages")

    loaded = sample(product, "load")

    assert loaded.code == 0, loaded.err
    assert sample(product, "load").out.startswith("The sample is there already.")
    assert is_loaded(DataDirectory(product.data_dir))
    wait_until(lambda: len(traffic_processes(product)) == 1, seconds=30, what="simulated visitors")
    wait_until(lambda: status_of(f"{product.delivery_url}/sample") == 200, seconds=30, what="pages")
