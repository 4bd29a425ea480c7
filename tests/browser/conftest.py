"""Fixtures of tests with a real browser: the browser, a product without a sample, and a publisher."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.support.chromium import a_chromium, a_context
from tests.support.product import Product
from tests.support.publisher import Seller, Site, a_seller, a_site


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A Chromium for the tests of one file; each test opens its own profile."""
    with a_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def profile(chromium: Browser) -> Iterator[BrowserContext]:
    """A profile for visits to the console by the tests of one file, one after another."""
    with a_context(chromium, viewport={"width": 1400, "height": 900}) as context:
        yield context


@pytest.fixture(scope="module")
def product(shared_product: Product) -> Product:
    """An empty product; a file that needs another defines its own."""
    return shared_product


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with a_site() as site:
        yield site


@pytest.fixture(scope="module")
def seller(product: Product, site: Site) -> Iterator[Seller]:
    with a_seller(product, site) as seller:
        yield seller
