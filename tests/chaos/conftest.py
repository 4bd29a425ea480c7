"""A real product for each test: what is done to it here is nothing to share."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.product import Product, an_open_folder


@pytest.fixture
def product() -> Iterator[Product]:
    with an_open_folder() as folder, Product(folder / "data", "--empty", "--workers", "2") as product:
        yield product.wait_until_ready()


@pytest.fixture
def admin(product: Product) -> Iterator[httpx.Client]:
    with product.admin() as client:
        yield client
