"""The tag below a prefix: every request of the page has a neutral name, and what is seen and clicked counts."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from adloom.core.public_paths import find_blocked_word
from tests.support.chromium import a_visit
from tests.support.product import Product, wait_until
from tests.support.publisher import Seller, Site, place

pytestmark = [pytest.mark.browser, pytest.mark.process]

COUNTED_SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def product(killed_product: Product) -> Product:
    """The product that has a prefix."""
    return killed_product


@pytest.mark.parametrize(
    ("slug", "how", "script"),
    [
        ("below", "async", "/a/loom.js"),
        ("module", 'type="module"', "/a/loom.js"),
        ("above", "async", "/tag.js"),
    ],
)
def test_a_page_asks_only_for_neutral_names_and_its_ads_count(  # noqa: PLR0913, PLR0917 - a case, and its parts
    slug: str, how: str, script: str, chromium: Browser, product: Product, seller: Seller, site: Site
) -> None:
    site.page("/shop", "<h1>The shop</h1>")
    [banner_id] = seller.ads(slug, "full_static")
    head = f'<script {how} src="{product.delivery_url}{script}"></script>'

    with a_visit(chromium) as visit:
        page = visit.page
        with page.expect_response("**/a/notes"):
            page.goto(site.page(f"/{slug}", place(slug, 'style="height: 200px"'), head=head))
        page.get_by_role("link", name="Autumn").click()
        page.wait_for_url(f"{site.url}/shop")

        asked = [urlsplit(one.url).path for one in visit.requests_to(product.delivery_url)]
        assert visit.errors == []
    assert {"/a/page", "/a/notes"} <= set(asked)
    below = [path for path in asked if path != script]
    assert all(path.startswith("/a/") for path in below), below
    # A signed token may contain any word.
    assert [path for path in below if not path.startswith("/a/c/") and find_blocked_word(path)] == []
    wait_until(lambda: seller.counted(banner_id) == (1, 1), seconds=COUNTED_SECONDS_MAX, what="counted")
