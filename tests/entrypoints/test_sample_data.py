"""The first start without --empty has something to look at; a later one does not bring it back."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator

import pytest

from adloom.entrypoints.sample_data import is_catalog_untouched
from adloom.sample.load import HERO_SLUG
from tests.support.product import Product, an_open_folder, status_of, wait_until

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def product() -> Iterator[Product]:
    with an_open_folder() as folder, Product(folder / "data") as product:
        yield product.wait_until_ready()


def test_the_sample_is_served(product: Product) -> None:
    address = f"{product.delivery_url}/banners/serve/{HERO_SLUG}"
    wait_until(lambda: status_of(address) == 200, seconds=2, what="the index has the sample")

    with urllib.request.urlopen(address) as answer:  # noqa: S310 - our own
        banners = json.load(answer)["banners"]

    assert len(banners) == 1


def test_the_sample_page_is_where_it_is_said_to_be(product: Product) -> None:
    assert f"sample    {product.delivery_url}/sample" in product.said
    assert status_of(f"{product.delivery_url}/sample") == 200


def test_a_catalog_with_something_in_it_gets_no_sample(product: Product) -> None:
    assert not asyncio.run(is_catalog_untouched(product.database_url))
