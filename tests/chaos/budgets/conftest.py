"""A market on a real product with four delivery processes, one for all tests of a module."""

from collections.abc import Iterator

import pytest

from tests.chaos.budgets.market import Market
from tests.support.product import NO_CRAWLS, Product, a_data_folder

# All readers are of one address here, and what they report is to be charged.
MANY_READERS = {"ADLOOM_EVENTS_PER_ADDRESS_PER_MINUTE": "1000000"}


@pytest.fixture(scope="module")
def market() -> Iterator[Market]:
    with (
        a_data_folder() as folder,
        Product(folder / "data", "--empty", "--workers", "4", *NO_CRAWLS, variables=MANY_READERS) as product,
        product.wait_until_ready().admin() as admin,
    ):
        yield Market(product, admin)
