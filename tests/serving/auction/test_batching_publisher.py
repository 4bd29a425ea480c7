"""Entries are published in batches, and all of them at shutdown."""

import asyncio

import pytest

from adloom.serving.auction.recorder import BatchingPublisher

pytestmark = pytest.mark.anyio


async def test_entries_are_published_together_and_in_order() -> None:
    published: list[bytes] = []
    publisher = BatchingPublisher(published.extend, seconds=0.01)

    publisher.publish(b"one")
    publisher.publish(b"two")
    before = list(published)
    await asyncio.sleep(0.05)

    assert (before, published) == ([], [b"one", b"two"])


async def test_a_flush_publishes_each_entry_once() -> None:
    published: list[bytes] = []
    publisher = BatchingPublisher(published.extend, seconds=60)

    publisher.publish(b"one")
    publisher.flush()
    publisher.flush()

    assert published == [b"one"]
