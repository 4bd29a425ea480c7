"""States, applied ids and the outbox in one transaction; timers and waiting messages by shard; and terms of shards.

A term fences out a worker that has lost a shard, where actors have no stored states whose versions could tell. The first
such actor that a worker loads of a shard begins a term of the shard. What was loaded in an earlier term may be stale, and
writes nothing: the worker loads it again, in a term of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import Address, FencedOutError, StateRejectedError, StateWrite, find_shard
from adloom.runtime.actors.nats.messages import SentMessage, decode_message, encode_message, make_first_id
from adloom.runtime.actors.state_store import REFUSED, PostgresStateStore, RecordWriter
from adloom.runtime.postgres import POSTGRES_AWAY, Connection, Pool, raise_if_away

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


DAYS_BEFORE: Final = 2
DAYS_AHEAD: Final = 2
OUTBOX_READ_MAX: Final = 1_000

FIND_APPLIED: Final = "SELECT id, reply FROM brain_applied WHERE id = ANY ($1::uuid[])"
APPLY: Final = """
    WITH applied AS (
        INSERT INTO brain_applied (id, shard, reply)
        SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::bytea[])
        ON CONFLICT DO NOTHING
        RETURNING 1
    )
    SELECT count(*) FROM applied
"""
SEND: Final = """
    INSERT INTO brain_outbox (id, shard, message, at)
    SELECT id, shard, message, $4 FROM unnest($1::uuid[], $2::smallint[], $3::bytea[]) AS sent (id, shard, message)
"""
WAITING: Final = """
    SELECT message FROM brain_outbox WHERE shard = ANY ($1::smallint[]) AND at < $2 ORDER BY id LIMIT $3
"""
SENT: Final = "DELETE FROM brain_outbox WHERE id = ANY ($1::uuid[])"
TIMERS_OF: Final = """
    SELECT kind, key, wake_at FROM brain_states
     WHERE shard = ANY ($1::smallint[]) AND kind = ANY ($2::text[]) AND wake_at IS NOT NULL
"""
# One worker at a time; the others find that there is nothing left to do.
LOCK_DAYS: Final = "SELECT pg_advisory_xact_lock(x'AD34'::integer)"
LIST_DAYS: Final = """
    SELECT right(relname, 8) FROM pg_class JOIN pg_inherits ON inhrelid = oid
     WHERE inhparent = 'brain_applied'::regclass
"""


class AppliedMessage(NamedTuple):
    """An exact message that a step has taken in, and what it answered."""

    id: UUID
    shard: int
    reply: bytes | None


class OutboxMessage(NamedTuple):
    """A message that an actor of a shard sends."""

    shard: int
    message: SentMessage


class ShardCommit(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch makes durable: all of it, or nothing.

    Records of actors in `transient` have no state with them whose version could be refused.
    """

    writes: Sequence[StateWrite]
    records: Sequence[msgspec.Struct]
    applied: Sequence[AppliedMessage]
    outbox: Sequence[OutboxMessage]
    transient: Sequence[Address] = ()


class ShardStore(PostgresStateStore):
    """Keeps what the actors of some kinds need on several machines."""

    def __init__(self, pool: Pool, records: RecordWriter, clock: Clock) -> None:
        super().__init__(pool, records, clock)
        self.terms = ShardTerms(pool)

    async def commit_batch(self, batch: ShardCommit) -> None:
        """Store a batch; FencedOutError also if one of its messages was applied by another worker."""
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                if batch.transient:
                    await self.terms.check(connection, batch.transient)
                await self._keep(connection, batch.writes, batch.records)
                if batch.applied:
                    await _apply(connection, batch.applied)
                if batch.outbox:
                    await _send(connection, batch.outbox, now=self._clock.now())
        except REFUSED as error:
            raise StateRejectedError(repr(error)) from error
        except POSTGRES_AWAY as error:
            raise UnavailableError(f"It is not known whether the states are kept: {error!r}") from error

    async def find_applied(self, ids: Sequence[UUID]) -> Mapping[UUID, bytes | None]:
        """Return those that were applied, with what was answered."""
        with raise_if_away("Applied messages cannot be read"):
            rows = await self._pool.fetch(FIND_APPLIED, ids)
        return {row["id"]: row["reply"] for row in rows}

    async def read_timers(
        self, shards: Sequence[int], kinds: Sequence[str]
    ) -> Sequence[tuple[Address, datetime]]:
        with raise_if_away("The timers cannot be read"):
            rows = await self._pool.fetch(TIMERS_OF, shards, kinds)
        return [(Address(row["kind"], row["key"]), row["wake_at"]) for row in rows]


class Outbox:
    """Messages that actors have sent, until NATS has them."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list_waiting(self, shards: Sequence[int], *, before: datetime) -> list[SentMessage]:
        """Return the oldest that were sent before a moment."""
        with raise_if_away("The outbox cannot be read"):
            rows = await self._pool.fetch(WAITING, shards, before, OUTBOX_READ_MAX)
        return [decode_message(row["message"]) for row in rows]

    async def delete(self, ids: Sequence[UUID]) -> None:
        with raise_if_away("The outbox cannot be written"):
            await self._pool.execute(SENT, ids)


async def maintain_days(pool: Pool, today: date) -> None:
    """Make the partitions of applied ids around today, and drop those that no message can belong to."""
    wanted = {today + timedelta(days=number) for number in range(-DAYS_BEFORE - 1, DAYS_AHEAD + 1)}
    with raise_if_away("The days of applied messages cannot be made"):
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute(LOCK_DAYS)
            names: list[str] = [row[0] for row in await connection.fetch(LIST_DAYS)]
            known = {date.fromisoformat(name) for name in names}
            for day in sorted(wanted - known):
                first, after = make_first_id(day), make_first_id(day + timedelta(days=1))
                await connection.execute(
                    f"CREATE TABLE brain_applied_{day:%Y%m%d} PARTITION OF brain_applied"
                    f" FOR VALUES FROM ('{first}') TO ('{after}')"
                )
            for day in sorted(one for one in known if one < min(wanted)):
                await connection.execute(f"DROP TABLE brain_applied_{day:%Y%m%d}")


async def _apply(connection: Connection, messages: Sequence[AppliedMessage]) -> None:
    # Always in the same order, so that two workers with the same messages do not deadlock.
    ordered = sorted(messages)
    count = await connection.fetchval(
        APPLY,
        [one.id for one in ordered],
        [one.shard for one in ordered],
        [one.reply for one in ordered],
    )
    if count != len(ordered):
        raise FencedOutError(f"{len(ordered) - count} messages were applied by another worker.")


async def _send(connection: Connection, messages: Sequence[OutboxMessage], *, now: datetime) -> None:
    await connection.execute(
        SEND,
        [one.message.id for one in messages],
        [one.shard for one in messages],
        [encode_message(one.message) for one in messages],
        now,
    )
