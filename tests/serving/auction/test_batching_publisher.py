"""Entries are published in batches, and all of them at shutdown."""

import asyncio

import pytest

from adloom.serving.auction.recorder import BatchingPublisher

pytestmark = pytest.mark.anyio


async def test_entries_are_published_together_and_in_order() -> None:
    told: list[bytes] = []
    teller = BatchingPublisher(told.extend, seconds=0.01)

    teller.publish(b"one")
    teller.publish(b"two")
    before = list(told)
    await asyncio.sleep(0.05)

    assert (before, told) == ([], [b"one", b"two"])


async def test_at_the_end_nothing_is_left() -> None:
    told: list[bytes] = []
    teller = BatchingPublisher(told.extend, seconds=60)

    teller.publish(b"one")
    teller.flush()
    teller.flush()

    assert told == [b"one"]
