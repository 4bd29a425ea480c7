"""A website, and crawls of it."""

from collections.abc import AsyncIterator

import pytest

from adloom.runtime.postgres import Pool
from adloom.runtime.valkey import Valkey
from tests.support.crawls import CrawlWorld, open_world
from tests.support.website import Website, running_website


@pytest.fixture
async def website() -> AsyncIterator[Website]:
    async with running_website() as website:
        yield website


@pytest.fixture
async def world(pool: Pool, valkey: Valkey, website: Website) -> AsyncIterator[CrawlWorld]:
    async with open_world(pool, valkey, a=website) as world:
        yield world
