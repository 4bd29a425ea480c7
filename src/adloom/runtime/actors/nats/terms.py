"""Fences out a worker that has lost a shard, where actors have no stored states whose versions could tell.

The first such actor that a worker loads of a shard begins a term of the shard. What was loaded in an earlier term may be
stale, and writes nothing: the worker loads it again, in a term of its own.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from adloom.runtime.actors.actor import Address, FencedOutError, find_shard
from adloom.runtime.postgres import Connection, Pool, raise_if_away

BEGIN: Final = """
    INSERT INTO brain_shard_terms AS it (shard, term)
    SELECT shard, 1 FROM unnest($1::smallint[]) AS begun (shard)
    ON CONFLICT (shard) DO UPDATE SET term = it.term + 1
    RETURNING shard, term
"""
# Shared: a term begins after the writes of the one before have ended, and reads what they have written.
CURRENT: Final = """
    SELECT shard, term FROM brain_shard_terms WHERE shard = ANY ($1::smallint[]) ORDER BY shard FOR SHARE
"""


class StaleTermError(FencedOutError):
    """Another worker has begun a term of these shards since."""

    def __init__(self, shards: Sequence[int], addresses: Sequence[Address]) -> None:
        super().__init__(f"Another worker has taken over shards {list(shards)}.", addresses)
        self.shards = shards


class ShardTerms:
    """The terms that this worker has begun, by shard."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._terms: dict[int, int] = {}

    async def begin(self, shards: Iterable[int]) -> None:
        """Begin terms of the shards that have none here; nothing of them is in memory."""
        # Always in the same order, so that two workers do not deadlock.
        missing = sorted(set(shards).difference(self._terms))
        if missing:
            with raise_if_away("No term of a shard can begin"):
                self._terms.update({row[0]: row[1] for row in await self._pool.fetch(BEGIN, missing)})

    def forget(self, shards: Iterable[int]) -> None:
        """Forget terms, with the actors that were loaded in them."""
        for shard in shards:
            self._terms.pop(shard, None)

    async def check(self, connection: Connection, addresses: Sequence[Address]) -> None:
        """Raise StaleTermError if actors may be stale by now; in the transaction of what they write."""
        shards = sorted({find_shard(address) for address in addresses})
        current = {row[0]: row[1] for row in await connection.fetch(CURRENT, shards)}
        stale = [one for one in shards if current.get(one) != self._terms.get(one, 0)]
        if stale:
            raise StaleTermError(stale, [one for one in addresses if find_shard(one) in stale])
