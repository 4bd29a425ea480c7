"""Stores actor states in PostgreSQL; the version fences out a host that has read an older one."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import asyncpg
import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import (
    Address,
    FencedOutError,
    StateRejectedError,
    StateWrite,
    StoredState,
    find_shard,
)
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool, raise_if_away

LOAD: Final = """
    SELECT kind, key, version, format, state, wake_at
      FROM brain_states
      JOIN unnest($1::text[], $2::text[]) AS asked (kind, key) USING (kind, key)
"""
TIMERS: Final = """
    SELECT kind, key, wake_at FROM brain_states WHERE wake_at <= coalesce($1::timestamptz, 'infinity')
"""
# A new state is version 1; any other follows the version that it was made from, or is not written.
KEEP: Final = """
    WITH kept AS (
        INSERT INTO brain_states AS it (kind, key, shard, version, format, state, wake_at, changed_at)
        SELECT kind, key, shard, was_version + 1, format, state, wake_at, $8
          FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[], $5::smallint[], $6::bytea[],
                      $7::timestamptz[])
               AS made (kind, key, shard, was_version, format, state, wake_at)
        ON CONFLICT (kind, key) DO UPDATE
           SET version = EXCLUDED.version, format = EXCLUDED.format, state = EXCLUDED.state,
               wake_at = EXCLUDED.wake_at, changed_at = EXCLUDED.changed_at
         WHERE it.version = EXCLUDED.version - 1
        RETURNING 1
    )
    SELECT count(*) FROM kept
"""
# After KEEP and in its transaction: what this transaction has not written was refused.
REFUSED_STATES: Final = """
    SELECT kind, key
      FROM unnest($1::text[], $2::text[]) AS made (kind, key)
      LEFT JOIN brain_states AS it USING (kind, key)
     WHERE it.xmin IS DISTINCT FROM pg_current_xact_id()::xid
"""

# What will not be otherwise the next time.
REFUSED: Final = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, ValueError, OverflowError)


class RecordWriter(Protocol):
    """Writes the rows that actors record."""

    async def write(self, connection: Connection, records: Sequence[msgspec.Struct]) -> None:
        """Write all rows in the connection's transaction."""


class PostgresStateStore:
    """Keeps states, and their records with them."""

    def __init__(self, pool: Pool, records: RecordWriter, clock: Clock) -> None:
        self._pool = pool
        self._records = records
        self._clock = clock

    async def load(self, addresses: Sequence[Address]) -> Mapping[Address, StoredState]:
        kinds, keys = [address.kind for address in addresses], [address.key for address in addresses]
        with raise_if_away("The states cannot be read"):
            rows = await self._pool.fetch(LOAD, kinds, keys)
        return {Address(kind, key): StoredState(*stored) for kind, key, *stored in rows}

    async def list_timers(self, *, until: datetime | None = None) -> Sequence[tuple[Address, datetime]]:
        with raise_if_away("The timers cannot be read"):
            rows = await self._pool.fetch(TIMERS, until)
        return [(Address(row["kind"], row["key"]), row["wake_at"]) for row in rows]

    async def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                await self._keep(connection, writes, records)
        except REFUSED as error:
            raise StateRejectedError(repr(error)) from error
        except POSTGRES_AWAY as error:
            raise UnavailableError(f"It is not known whether the states are kept: {error!r}") from error

    async def _keep(
        self, connection: Connection, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]
    ) -> None:
        """Write states and records in the connection's transaction."""
        kept = await connection.fetchval(KEEP, *_list_columns(writes), self._clock.now()) if writes else 0
        if kept != len(writes):
            refused = await connection.fetch(REFUSED_STATES, *_list_columns(writes)[:2])
            raise FencedOutError(
                f"{len(writes) - kept} states belong to another host by now.",
                [Address(row["kind"], row["key"]) for row in refused],
            )
        if records:
            await self._records.write(connection, records)


def _list_columns(writes: Sequence[StateWrite]) -> tuple[list[object], ...]:
    # Always in the same order, so that two hosts that write the same states do not deadlock.
    ordered = sorted(writes, key=lambda write: write.address)
    return (
        [write.address.kind for write in ordered],
        [write.address.key for write in ordered],
        [find_shard(write.address) for write in ordered],
        [write.was_version for write in ordered],
        [write.format for write in ordered],
        [write.state for write in ordered],
        [write.wake_at for write in ordered],
    )
