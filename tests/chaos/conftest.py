"""A real product whose processes are killed."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.product import Product


@pytest.fixture(scope="module")
def product(killed_product: Product) -> Product:
    return killed_product


@pytest.fixture
def admin(product: Product) -> Iterator[httpx.Client]:
    with product.admin() as client:
        yield client
