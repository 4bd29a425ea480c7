"""Processes batches of messages to the actors of the shards that this worker has.

As in process, with three differences. Exact messages are applied once: their ids are written with the states. Messages
to other actors are written with the states too, and sent after the commit; those to actors whose states are not stored
may get lost, and are only sent. And another worker may have written an actor
meanwhile: then its state is loaded again and the step repeated, three times; then its shard is given up.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.ids import IdSource
from adloom.core.random import Chance
from adloom.runtime.actors.actor import (
    ActorCounts,
    Address,
    AnyKind,
    Broadcaster,
    FencedOutError,
    FirstMessages,
    NewerActorStateError,
    Tell,
    UnreadableActorStateError,
    find_shard,
)
from adloom.runtime.actors.batch import ActiveActor, StepBatch
from adloom.runtime.actors.host import IDLE_MAX
from adloom.runtime.actors.mailboxes import Envelope
from adloom.runtime.actors.nats.messages import SentMessage
from adloom.runtime.actors.nats.store import (
    AppliedMessage,
    OutboxMessage,
    ShardCommit,
    ShardStore,
    StaleTermError,
)
from adloom.runtime.actors.runner import BatchRunner

REFUSALS_MAX: Final = 3
CONFIGURED_AT_ONCE: Final = 500
ALARMS_AT_ONCE: Final = 2_000

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class ActorFamily(msgspec.Struct, frozen=True, kw_only=True):
    """Kinds that share a store and where their broadcasts go."""

    kinds: Sequence[AnyKind]
    store: ShardStore
    introduction: FirstMessages
    audience: Broadcaster
    # How often actors in memory read again what they are configured from, should a message about it be lost.
    refresh_seconds: float | None = None
    refresh: FirstMessages | None = None  # What they read then, where that is not all of the introduction.
    # The actors that must run wherever a shard is, and have no stored alarm that would wake them.
    list_woken: Callable[[Sequence[int]], Awaitable[Sequence[Address]]] | None = None
    idle_max: timedelta = IDLE_MAX
    alarms_at_once: int = ALARMS_AT_ONCE


class ShardRunner(BatchRunner):
    """The actors of one family that are in this worker's memory."""

    def __init__(  # noqa: PLR0913 - what it is built from
        self,
        family: ActorFamily,
        *,
        clock: Clock,
        chance: Chance,
        ids: IdSource,
        counts: ActorCounts,
        send: Callable[[Sequence[SentMessage]], None],
        find_kind: Callable[[str], AnyKind | None],
        fits: Callable[[bytes], bool] = lambda _: True,
        give_up: Callable[[int], None],
    ) -> None:
        kinds: Mapping[str, AnyKind] = {kind.name: kind for kind in family.kinds}
        super().__init__(
            kinds,
            family.store,
            introduction=family.introduction,
            audience=family.audience,
            clock=clock,
            chance=chance,
            send=lambda _: None,
            counts=counts,
        )
        self.family = family
        self._shard_store = family.store
        self._ids = ids
        self._send_messages = send
        self._find_kind = find_kind
        self._fits = fits
        self._give_up = give_up
        self._outgoing: list[SentMessage] = []
        self._is_checking = False
        self._unconfigured: deque[Address] = deque()
        self._refresh_at = 0.0

    async def run(self, envelopes: Sequence[Envelope], *, is_repeated: bool = False) -> None:
        """Process messages; each that has a future has its result then. `is_repeated` if some may be applied already."""
        first, again = _split_repeated(envelopes)
        await self._run_until_kept(first, is_repeated=is_repeated)
        if again:
            await self._run_until_kept(again, is_repeated=True)

    def evict_shards(self, shards: Iterable[int]) -> None:
        """Forget the actors and alarms of shards that this worker has lost, or has just got."""
        lost = set(shards)
        if lost:
            self._evict_shards(lost)
            self.alarms.drop(lambda address: find_shard(address) in lost)

    def set_alarms(self, timers: Iterable[tuple[Address, datetime]]) -> None:
        """Set alarms as stored; what is in memory is newer."""
        for address, at in timers:
            if address not in self._actors and address not in self.alarms:
                self.alarms.set(address, at)

    async def configure_next(self, at: float) -> None:
        """Send some actors in memory their first messages once more.

        One that is new: the catalog may have changed before its state could be found. All others from time to time,
        should a message have been lost; `at` is the loop's time. That is no activity: they become idle as others.
        """
        seconds = self.family.refresh_seconds
        if seconds is not None and at >= self._refresh_at and not self._unconfigured:
            self._refresh_at = at + seconds
            self._unconfigured.extend(self._actors)
        count = min(CONFIGURED_AT_ONCE, len(self._unconfigured))
        addresses = {self._unconfigured.popleft() for _ in range(count)}
        touched_at = {one: self._actors[one].touched_at for one in addresses if one in self._actors}
        # The runner keeps them by their activity.
        active = sorted(touched_at, key=lambda address: (touched_at[address], address))
        if active:
            reader = self.family.refresh or self.family.introduction
            found = await reader.load_first_messages(active)
            await self.run(
                [Envelope(address, message) for address in active for message in found.get(address, ())]
            )
            for address in active:
                if (actor := self._actors.get(address)) is not None:
                    actor.touched_at = touched_at[address]

    async def persist_shards(self, shards: Iterable[int]) -> None:
        """Make the actors of some shards durable, before another worker gets them."""
        given = set(shards)
        await self.persist([actor for address, actor in self._actors.items() if find_shard(address) in given])

    # ------------------------------------------------------------ until the states are kept

    async def _run_until_kept(self, envelopes: Sequence[Envelope], *, is_repeated: bool) -> None:
        self._is_checking = is_repeated
        parts = [list(envelopes)]
        refusals = 0
        while parts:
            part = parts.pop(0)
            try:
                await self._run(part)
            except FencedOutError as error:
                refusals += 1
                self._note_refusal(error)
                part = [one for one in part if not _is_settled(one)]
                self._evict({one.address for one in part})
                if refusals < REFUSALS_MAX:
                    parts = [*_split_refused(part, error), *parts]
                else:
                    self._lose(part, error)
            except asyncio.CancelledError as error:
                self._fail([one for some in (part, *parts) for one in some], error)
                raise

    def _note_refusal(self, error: FencedOutError) -> None:
        self._counts.fenced += max(1, len(error.addresses))
        if isinstance(error, StaleTermError):
            self._evict_shards(set(error.shards))
        log.warning("entity_writes_refused", entities=len(error.addresses), reason=str(error))
        # The other worker may have applied some of the messages.
        self._is_checking = True

    def _lose(self, envelopes: Sequence[Envelope], error: FencedOutError) -> None:
        for shard in sorted({find_shard(one.address) for one in envelopes}):
            log.warning("shard_given_up", shard=shard, reason=str(error))
            self._give_up(shard)
        self._fail(envelopes, error)

    def _evict(self, addresses: Iterable[Address]) -> None:
        for address in addresses:
            self._actors.pop(address, None)

    def _evict_shards(self, shards: Set[int]) -> None:
        self._evict([address for address in self._actors if find_shard(address) in shards])
        self._shard_store.terms.forget(shards)

    # ------------------------------------------------------------ what differs within a batch

    async def _make_durable(self, batch: StepBatch, envelopes: Sequence[Envelope]) -> None:
        self._outgoing = []
        self._evict([one.address for one in envelopes if one.is_fresh])
        await super()._make_durable(batch, await self._drop_applied(envelopes))

    async def _drop_applied(self, envelopes: Sequence[Envelope]) -> Sequence[Envelope]:
        """Leave out what was applied before, and answer it as then."""
        ids = [one.id for one in envelopes if one.id is not None] if self._is_checking else []
        if not ids:
            return envelopes
        applied = await self._shard_store.find_applied(ids)
        for envelope in envelopes:
            if envelope.id is not None and envelope.id in applied:
                self._answer_again(envelope, applied[envelope.id])
        return [one for one in envelopes if one.id not in applied]

    def _answer_again(self, envelope: Envelope, reply: bytes | None) -> None:
        if envelope.durable is not None and not envelope.durable.done():
            envelope.durable.set_result(None)
        if envelope.answered is not None and not envelope.answered.done():
            if reply is None:
                envelope.fail(UnavailableError("The actor has no answer to this."))
            else:
                envelope.answered.set_result(self._kinds[envelope.address.kind].decode_reply(reply))

    async def _activate(self, batch: StepBatch, addresses: set[Address]) -> list[Envelope]:
        absent = addresses.difference(self._actors)
        await self._shard_store.terms.begin(
            find_shard(address) for address in absent if self._kinds[address.kind].is_transient
        )
        return await super()._activate(batch, addresses)

    def _note_unreadable(self, address: Address, error: UnreadableActorStateError) -> None:
        """Leave a shard to others if a newer version has stored one of its states: while workers are updated."""
        super()._note_unreadable(address, error)
        if isinstance(error, NewerActorStateError):
            self._give_up(find_shard(address))

    def _deliver_locally(self, batch: StepBatch, now: datetime) -> None:
        """Deliver nothing: the other actor may be another worker's, so all messages go by the outbox."""

    async def _commit(self, batch: StepBatch, envelopes: Sequence[Envelope]) -> None:
        self._outgoing = [one for tell in batch.tells if (one := self._build_outgoing(tell)) is not None]
        if batch.persisting:
            new = [actor.address for actor in batch.persisting.values() if _is_new(actor)]
            await self._shard_store.commit_batch(
                ShardCommit(
                    writes=batch.build_writes(),
                    records=batch.records,
                    applied=self._list_applied(batch, envelopes),
                    outbox=[OutboxMessage(one.shard, one) for one in self._outgoing if one.is_exact],
                    transient=[address for address, one in batch.persisting.items() if one.kind.is_transient],
                )
            )
            self._unconfigured.extend(new)

    def _list_applied(self, batch: StepBatch, envelopes: Sequence[Envelope]) -> list[AppliedMessage]:
        """List the messages whose effect is in the states; those without an effect may come again."""
        replies = {id(answered): reply for answered, reply in batch.answers}
        applied: list[AppliedMessage] = []
        for one in envelopes:
            if one.id is None or _is_settled(one) or one.address not in batch.persisting:
                continue
            reply = replies.get(id(one.answered))
            encoded = None if reply is None else self._kinds[one.address.kind].encode_message(reply)
            applied.append(AppliedMessage(one.id, find_shard(one.address), encoded))
        return applied

    def _build_outgoing(self, tell: Tell) -> SentMessage | None:
        kind = self._find_kind(tell.to.kind)
        if kind is None:
            self._counts.refused += 1  # No worker runs it.
            return None
        body = kind.encode_message(tell.message)
        if not self._fits(body):
            self._counts.refused += 1
            log.error("message_too_large", kind=tell.to.kind, key=tell.to.key, bytes=len(body))
            return None
        is_exact = not kind.is_transient
        return SentMessage(self._ids.make(), tell.to.kind, tell.to.key, body, is_exact=is_exact)

    def _send_tells(self, batch: StepBatch) -> None:
        del batch
        if self._outgoing:
            self._send_messages(self._outgoing)


def _split_repeated(envelopes: Sequence[Envelope]) -> tuple[list[Envelope], list[Envelope]]:
    """Part messages from those that are in the batch a second time."""
    seen: set[UUID] = set()
    first: list[Envelope] = []
    again: list[Envelope] = []
    for one in envelopes:
        if one.id is not None and one.id in seen:
            again.append(one)
            continue
        if one.id is not None:
            seen.add(one.id)
        first.append(one)
    return first, again


def _split_refused(envelopes: Sequence[Envelope], error: FencedOutError) -> list[list[Envelope]]:
    """Part the actors that were refused from the others, which are not to be held up again."""
    refused = set(error.addresses)
    parts = [
        [one for one in envelopes if one.address not in refused],
        [one for one in envelopes if one.address in refused],
    ]
    return [part for part in parts if part]


def _is_settled(envelope: Envelope) -> bool:
    future = envelope.durable if envelope.answered is None else envelope.answered
    return future is not None and future.done()


def _is_new(actor: ActiveActor) -> bool:
    return actor.version == 0 and not actor.kind.is_transient
