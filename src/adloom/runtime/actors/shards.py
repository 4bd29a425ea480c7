"""Which shard an entity is on: the same on every machine, in every run."""

import zlib
from typing import Final

from adloom.runtime.actors.effects import Address

SHARDS: Final = 100


def shard_of(address: Address) -> int:
    """Tell the shard of an entity among those of its kind."""
    return zlib.crc32(address.key.encode()) % SHARDS
