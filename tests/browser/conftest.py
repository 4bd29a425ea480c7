"""Fixtures of tests with a real browser: the browser, a product without a sample, and a publisher."""

import contextlib
from collections.abc import Generator, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.support.chromium import a_chromium, a_context, forget
from tests.support.product import Product
from tests.support.publisher import Seller, Site, a_seller, a_site

CHROMIUM = pytest.StashKey[tuple[Browser, BrowserContext, contextlib.ExitStack]]()


@pytest.fixture(scope="module")
def chromium(request: pytest.FixtureRequest) -> Browser:
    """A Chromium for the files of this folder that follow each other; each test opens its own profile."""
    stash = request.config.stash
    if CHROMIUM in stash and not stash[CHROMIUM][0].is_connected():
        stop_chromium(request.config)
    if CHROMIUM not in stash:
        with contextlib.ExitStack() as stack:
            browser = stack.enter_context(a_chromium())
            profile = stack.enter_context(a_context(browser, viewport={"width": 1400, "height": 900}))
            stash[CHROMIUM] = browser, profile, stack.pop_all()
    return stash[CHROMIUM][0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Stop Chromium before a test of another folder: no other event loop can run meanwhile."""
    try:
        yield
    finally:
        if nextitem is None or nextitem.path.parent != item.path.parent:
            stop_chromium(item.config)


def stop_chromium(config: pytest.Config) -> None:
    if CHROMIUM in config.stash:
        _, _, stack = config.stash[CHROMIUM]
        del config.stash[CHROMIUM]
        stack.close()


@pytest.fixture(scope="module")
def profile(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """A profile for visits to the console, one after another: it keeps the console's files for the next file of tests."""
    profile = request.config.stash[CHROMIUM][1]
    assert profile.browser is chromium
    yield profile
    if chromium.is_connected():
        forget(profile)


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
