"""Shards: a hundred parts of all actors, whatever their kind; the same on every machine, in every run."""

# pure

import zlib
from typing import Final

from adloom.runtime.actors.actor import Address

SHARDS: Final = 100


def find_shard(address: Address) -> int:
    return zlib.crc32(address.key.encode()) % SHARDS
