"""A real product whose processes are killed."""

import contextlib
from collections.abc import Iterator

import httpx
import pytest
import redis

from adloom.events.topics.publish import TOPICS
from tests.support.product import Product


@pytest.fixture(scope="module")
def product(killed_product: Product) -> Product:
    with redis.Redis.from_url(killed_product.redis_url) as valkey:  # pyright: ignore[reportUnknownMemberType] - the driver's
        for topic in TOPICS:
            with contextlib.suppress(redis.ResponseError):  # Of another module's tests.
                valkey.xgroup_create(topic, "reader", mkstream=True)
    return killed_product


@pytest.fixture
def admin(product: Product) -> Iterator[httpx.Client]:
    with product.admin() as client:
        yield client
