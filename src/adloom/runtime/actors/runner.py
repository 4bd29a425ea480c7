"""Processes batches of messages: steps, one transaction, and only then the effects that others may see.

The steps of a batch run in order, and so do the messages that its actors send each other, up to a bound; then
all states that must be durable are stored, in one transaction with their records; then answers, messages and
broadcasts go out. If the transaction is not known to have worked, every actor of the batch is dropped and loaded
again, and the senders get an error: they repeat what matters, and numbers or keys make that harmless. A message
whose result can never be stored is found by halving the batch, and fails alone.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any, Final

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.random import Chance
from adloom.runtime.actors.actor import (
    ActorCounts,
    Address,
    AnyKind,
    Broadcaster,
    FencedOutError,
    FirstMessages,
    NewerActorStateError,
    StateStore,
    Tell,
    UnreadableActorStateError,
)
from adloom.runtime.actors.batch import ActiveActor, StepBatch
from adloom.runtime.actors.mailboxes import Alarms, Envelope
from adloom.runtime.loops import OUTAGE_SECONDS, RepeatedLine

STEPS_AT_ONCE: Final = 200
STEP_SECONDS_MAX: Final = 0.05  # Of steps without letting other tasks of the process run.
KEPT_AT_ONCE: Final = 2_000
TELLS_MAX: Final = 2_000  # Within a batch; further messages wait for a later one.
RETRY_AFTER: Final = timedelta(seconds=0.2)
BROKEN_AFTER: Final = timedelta(seconds=30)  # Until an actor is woken again whose step or state has failed.
PUBLISH_SECONDS_MAX: Final = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class BatchRunner:
    """The actors that are in memory, and what is done with messages to them."""

    def __init__(  # noqa: PLR0913 - what it is built from
        self,
        kinds: Mapping[str, AnyKind],
        store: StateStore,
        *,
        introduction: FirstMessages,
        audience: Broadcaster,
        clock: Clock,
        chance: Chance,
        send: Callable[[Tell], object],
        counts: ActorCounts,
    ) -> None:
        self._kinds = kinds
        self._store = store
        self._introduction = introduction
        self._audience = audience
        self._clock = clock
        self._chance = chance
        self._send = send
        self._counts = counts
        self._actors: OrderedDict[Address, ActiveActor] = OrderedDict()  # Least recently used first.
        self.alarms = Alarms()
        # While the database is away all messages fail, several times a second.
        self._log_forgotten = RepeatedLine(log, "entities_forgotten", seconds=OUTAGE_SECONDS)

    def __len__(self) -> int:
        return len(self._actors)

    async def run(self, envelopes: Sequence[Envelope]) -> None:
        """Process messages; FencedOutError if another host owns an actor by now, and so perhaps all of them."""
        try:
            await self._run(envelopes)
        except (FencedOutError, asyncio.CancelledError) as error:
            self._fail(envelopes, error)
            raise

    async def persist(self, actors: Iterable[ActiveActor]) -> None:
        """Send actors their wake message once more, and persist the result."""
        checks = [
            Envelope(actor.address, actor.kind.on_waking, is_kept_after=True)
            for actor in actors
            if not actor.is_durable
        ]
        for first in range(0, len(checks), KEPT_AT_ONCE):
            await self.run(checks[first : first + KEPT_AT_ONCE])

    async def persist_all(self) -> None:
        await self.persist(list(self._actors.values()))

    def set_alarms(self, timers: Iterable[tuple[Address, datetime]]) -> None:
        """Set alarms as stored; FencedOutError if an actor in memory has stored another one."""
        for address, at in timers:
            actor = self._actors.get(address)
            if actor is not None and actor.durable_wake_at != at:
                raise FencedOutError(f"Another host has set an alarm for {address.kind} {address.key}.")
            # What is in memory is newer than what is stored.
            if actor is None and address not in self.alarms and address.kind in self._kinds:
                self.alarms.set(address, at)

    def find_oldest_touch(self) -> datetime | None:
        """Return the last activity of the least recently used actor."""
        first = next(iter(self._actors.values()), None)
        return None if first is None else first.touched_at

    def list_idle_since(self, oldest: datetime, *, count_max: int) -> list[ActiveActor]:
        idle = takewhile(lambda actor: actor.touched_at <= oldest, self._actors.values())
        return list(islice(idle, count_max))

    def evict(self, actor: ActiveActor) -> None:
        """Drop an actor from memory if all of it is durable."""
        if actor.is_durable and self._actors.get(actor.address) is actor:
            del self._actors[actor.address]

    def forget_all(self, error: Exception) -> None:
        """Drop all actors: another host may own them next."""
        for actor in self._actors.values():
            _fail_all(actor.waiting, _make_not_kept_error(error))
        self._actors.clear()
        self.alarms.clear()

    async def _run(self, envelopes: Sequence[Envelope]) -> None:
        if not envelopes:
            return
        batch = StepBatch(self._chance)
        try:
            await self._make_durable(batch, envelopes)
        except FencedOutError:
            raise
        except UnavailableError as error:
            self._log_forgotten(entities=len(batch.touched), reason=error.detail)
            self._forget(batch, error, again_after=RETRY_AFTER)
            self._fail(envelopes, error)
            await asyncio.sleep(RETRY_AFTER.total_seconds())
        except Exception as error:
            # Nothing was stored, because of one of them.
            if len(envelopes) > 1:
                self._forget(batch, error, again_after=RETRY_AFTER)
                half = len(envelopes) // 2
                await self._run(envelopes[:half])
                await self._run(envelopes[half:])
                return
            address = envelopes[0].address
            log.exception("entity_not_kept", kind=address.kind, key=address.key)
            self._forget(batch, error, again_after=BROKEN_AFTER)
            self._fail(envelopes, error, again_after=BROKEN_AFTER)
        else:
            await self._settle(batch)

    async def _make_durable(self, batch: StepBatch, envelopes: Sequence[Envelope]) -> None:
        introductions = await self._activate(batch, {envelope.address for envelope in envelopes})
        now = self._clock.now()
        turn = _Turn()
        for introduction in introductions:
            batch.run_step(self._actors[introduction.address], introduction, now)
            await turn.pass_on()
        for envelope in envelopes:
            self._step(batch, envelope, now)
            await turn.pass_on()
        self._deliver_locally(batch, now)
        batch.complete(now)
        await self._commit(batch, envelopes)

    async def _commit(self, batch: StepBatch, envelopes: Sequence[Envelope]) -> None:
        del envelopes
        if batch.persisting:
            await self._store.commit(batch.build_writes(), batch.records)

    async def _activate(self, batch: StepBatch, addresses: set[Address]) -> list[Envelope]:
        """Load absent actors, and return the messages that come before all others."""
        absent = sorted(addresses.difference(self._actors))
        if not absent:
            return []
        stored = await self._store.load(absent)
        introduced = await self._introduction.load_first_messages(absent)
        now = self._clock.now()
        for address in absent:
            try:
                actor = ActiveActor(address, self._kinds[address.kind], stored.get(address), now=now)
            except UnreadableActorStateError as error:
                batch.unreadable[address] = error
                self._note_unreadable(address, error)
                continue
            self._actors[address] = batch.touched[address] = actor
        return [
            Envelope(address, message)
            for address in absent
            if address in self._actors
            for message in introduced.get(address, ())
        ]

    def _note_unreadable(self, address: Address, error: UnreadableActorStateError) -> None:
        log.error("entity_unreadable", kind=address.kind, key=address.key, reason=str(error))

    def _step(self, batch: StepBatch, envelope: Envelope, now: datetime) -> None:
        actor = self._actors.get(envelope.address)
        if actor is None:
            unknown = UnreadableActorStateError("The state of the actor cannot be read.")
            error = batch.unreadable.get(envelope.address, unknown)
            self._fail([envelope], error, again_after=BROKEN_AFTER)
            return
        try:
            batch.run_step(actor, envelope, now)
        except Exception as error:
            # One message must not stop all others; the state is as it was.
            log.exception("entity_step_failed", kind=envelope.address.kind, key=envelope.address.key)
            self._fail([envelope], error)
            if envelope.is_kept_after:
                batch.persist(actor)
            if envelope.is_alarm:
                actor.wake_at = now + BROKEN_AFTER
                batch.touched[actor.address] = actor
        else:
            self._counts.steps += 1

    def _deliver_locally(self, batch: StepBatch, now: datetime) -> None:
        """Deliver messages between actors in memory within this batch, up to a bound."""
        for_others: list[Tell] = []
        for _ in range(TELLS_MAX):
            if not batch.tells:
                break
            tell = batch.tells.popleft()
            if tell.to in self._actors:
                self._step(batch, Envelope(tell.to, tell.message), now)
            else:
                for_others.append(tell)
        batch.tells.extendleft(reversed(for_others))

    async def _settle(self, batch: StepBatch) -> None:
        """Send answers, messages and broadcasts, now that the states are durable."""
        self._counts.batches += 1
        for durable in batch.mark_durable():
            if not durable.done():
                durable.set_result(None)
        for address, actor in batch.touched.items():
            self.alarms.set(address, actor.wake_at)
            self._actors.move_to_end(address)
        for answered, reply in batch.answers:
            if reply is None:
                _fail_all([answered], UnavailableError("The actor has no answer to this."))
            elif not answered.done():
                answered.set_result(reply)
        self._send_tells(batch)
        if batch.published:
            await self._publish(batch.published)

    def _send_tells(self, batch: StepBatch) -> None:
        for tell in batch.tells:
            self._send(tell)

    async def _publish(self, messages: Sequence[tuple[str, msgspec.Struct]]) -> None:
        try:
            async with asyncio.timeout(PUBLISH_SECONDS_MAX):
                await self._audience.publish(messages)
        except Exception as error:  # noqa: BLE001 - whatever it is: the states are kept, and news may get lost
            self._counts.unpublished += len(messages)
            log.warning("entities_not_heard", messages=len(messages), reason=repr(error))

    def _forget(self, batch: StepBatch, error: Exception, *, again_after: timedelta) -> None:
        """Drop actors that may not be durable; they are loaded again with their next message, or soon."""
        again_at = self._clock.now() + again_after
        for address, actor in batch.touched.items():
            self._actors.pop(address, None)
            self.alarms.set(address, again_at)
            # These come from earlier steps, which did not fail: sent again, they may succeed.
            _fail_all(actor.waiting, UnavailableError(f"The actor is not known to have kept it: {error!r}"))

    def _fail(
        self, envelopes: Sequence[Envelope], error: BaseException, *, again_after: timedelta = RETRY_AFTER
    ) -> None:
        """Fail messages; an alarm fires again later."""
        self._counts.failed += len(envelopes)
        again_at = self._clock.now() + again_after
        for envelope in envelopes:
            envelope.fail(_make_not_kept_error(error))
            if envelope.is_alarm:
                self.alarms.set(envelope.address, again_at)


class _Turn:
    """Lets other tasks of this process run between steps, from time to time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        self._steps = 0

    async def pass_on(self) -> None:
        self._steps += 1
        if self._steps >= STEPS_AT_ONCE or self._loop.time() - self._began_at >= STEP_SECONDS_MAX:
            await asyncio.sleep(0)
            self._began_at, self._steps = self._loop.time(), 0


class NeverKeptError(UnavailableError):
    """The step fails, or its result cannot be stored: the same message again would come to the same."""


def _make_not_kept_error(error: BaseException) -> UnavailableError:
    passes = (UnavailableError, FencedOutError, NewerActorStateError, asyncio.CancelledError)
    kind = UnavailableError if isinstance(error, passes) else NeverKeptError
    return kind(f"The actor is not known to have kept it: {error!r}")


def _fail_all(futures: Iterable[asyncio.Future[Any]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
