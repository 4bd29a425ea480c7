"""Shards: a key's shard is stored and shared between machines, so it may never change."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adloom.runtime.actors.actor import SHARDS, Address, find_shard


@pytest.mark.parametrize(
    ("key", "shard"),
    [
        ("", 0),
        ("a", 7),
        ("01890000-0000-7000-8000-000000000001", 26),
        ("01890000-0000-7000-8000-000000000002", 64),
        ("news|example.org", 48),
        ("größe", 53),
    ],
)
def test_a_key_is_always_on_the_same_shard(key: str, shard: int) -> None:
    assert find_shard(Address("campaign", key)) == shard


@given(st.text(max_size=200))
def test_every_key_of_any_kind_is_on_one_of_a_hundred_shards(key: str) -> None:
    shard = find_shard(Address("campaign", key))

    assert shard == zlib.crc32(key.encode()) % SHARDS == find_shard(Address("advertiser", key))
    assert 0 <= shard < SHARDS == 100


def test_keys_are_spread_evenly() -> None:
    shards = [
        find_shard(Address("campaign", f"01890000-0000-7000-8000-{number:012x}")) for number in range(10_000)
    ]

    assert all(50 <= shards.count(shard) <= 150 for shard in range(SHARDS))
