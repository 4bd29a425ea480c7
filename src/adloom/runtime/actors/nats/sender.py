"""Sends messages to actors, wherever they run: a host for senders, without actors of its own.

Messages of one moment to one shard travel as one NATS message. Until JetStream has acknowledged one it is published
again under the same id. A sender that waits for the result sends the message again when no answer comes: the worker
recognises its id. A message without a waiting sender is published until JetStream has it. What actors have sent is in the
outbox of their shard; a sweep sends again what JetStream has not acknowledged, and forgets what it has.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.ids import IdSource
from adloom.runtime.actors.actor import Address, AnyKind
from adloom.runtime.actors.mailboxes import MailboxFullError
from adloom.runtime.actors.nats.messages import (
    MessageResult,
    SentMessage,
    decode_results,
    encode_group,
    split_groups,
)
from adloom.runtime.actors.nats.pinned import ID_HEADER, JetStreamError, check_answer, name_subject
from adloom.runtime.actors.nats.ports import Messaging, Received
from adloom.runtime.actors.nats.store import Outbox
from adloom.runtime.loops import pass_on, pause, read_loop_seconds
from adloom.runtime.postgres import Pool

WAITING_MAX: Final = 20_000  # Messages that JetStream has not acknowledged; beyond, they are refused.
PUBLISH_AGAIN_SECONDS: Final = 1.0
ASK_AGAIN_SECONDS: Final = 1.0
DURABLE_SECONDS_MAX: Final = 30.0  # Then it is not known whether the message was applied.
POLL_SECONDS: Final = 0.25
ENVELOPE_BYTES_MAX: Final = 4_096


class _Published(msgspec.Struct):
    """A group on its way to JetStream."""

    shard: int
    data: bytes
    dedup_id: str
    again_at: float
    messages: Sequence[SentMessage]


class _Awaited(msgspec.Struct):
    """A message whose sender waits for its result."""

    message: SentMessage
    done: "asyncio.Future[MessageResult]"
    again_at: float
    ends_at: float
    attempt: int = 1


class NatsSender:
    """Sends to actors of some kinds; messages to others are refused."""

    def __init__(self, connection: Messaging, kinds: Mapping[str, AnyKind], ids: IdSource) -> None:
        self._connection = connection
        self._kinds = kinds
        self._ids = ids
        # Random, so that no other process receives or answers in its place by accident.
        self._inbox = f"_INBOX.adloom.{ids.make().hex}"
        self._unsent: dict[tuple[int, int], list[SentMessage]] = {}  # By shard and attempt.
        self._published: dict[int, _Published] = {}
        self._awaited: dict[UUID, _Awaited] = {}
        self._waiting = 0
        self._number = 0
        self._has_work = asyncio.Event()
        self._is_sent = asyncio.Event()
        self._is_sent.set()
        self._is_open = False
        # Called with the ids that JetStream has.
        self.on_sent: Callable[[Sequence[UUID]], None] = lambda _: None
        # Plain counters, read by a collector.
        self.sent = 0
        self.repeated = 0
        self.refused = 0

    @property
    def waiting(self) -> int:
        return self._waiting

    def list_waiting(self) -> set[UUID]:
        """Return the ids of the messages that JetStream has not acknowledged."""
        groups = (*self._unsent.values(), *(one.messages for one in self._published.values()))
        return {message.id for group in groups for message in group}

    def fits(self, body: bytes) -> bool:
        """Whether NATS takes a message of this size, with its envelope."""
        return len(body) + ENVELOPE_BYTES_MAX <= self._connection.payload_max

    def find_kind(self, name: str) -> AnyKind | None:
        return self._kinds.get(name)

    def tell(self, address: Address, message: msgspec.Struct, *, is_fresh: bool = False) -> bool:
        """Send a message without waiting; return whether it is on its way.

        With `is_fresh` the actor reads again what it is configured from.
        """
        try:
            self._put([self._build(address, message, is_fresh=is_fresh)])
        except UnavailableError:
            return False
        return True

    def send_durably(self, address: Address, message: msgspec.Struct) -> "asyncio.Future[None]":
        """Send a message, or raise UnavailableError.

        The future is done when the result is durable, and fails with UnavailableError when that is unknown.
        """
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        result = self._await(self._build(address, message, is_exact=True), seconds_max=DURABLE_SECONDS_MAX)

        def on_result(done: "asyncio.Future[MessageResult]") -> None:
            if kept.done():
                return
            if done.cancelled():
                kept.cancel()
            elif (error := done.exception()) is not None:
                kept.set_exception(error)
            else:
                kept.set_result(None)

        result.add_done_callback(on_result)
        return kept

    async def ask(
        self, address: Address, message: msgspec.Struct, *, seconds_max: float, is_fresh: bool = False
    ) -> Any:  # noqa: ANN401 - each kind's own
        """Send a message and wait for the reply; raises TimeoutError, or UnavailableError if there will be none.

        With `is_fresh` the actor reads again what it is configured from.
        """
        sent = self._build(address, message, is_exact=True, is_ask=True, is_fresh=is_fresh)
        result = self._await(sent, seconds_max=seconds_max + POLL_SECONDS)
        try:
            async with asyncio.timeout(seconds_max):
                reply = (await result).reply
        finally:
            self._awaited.pop(sent.id, None)
        if reply is None:
            raise UnavailableError("The actor has no answer to this.")
        return self._kinds[address.kind].decode_reply(reply)

    def forward(self, messages: Sequence[SentMessage]) -> None:
        """Send messages that are in an outbox, which has those that do not fit here."""
        try:
            self._put(messages)
        except MailboxFullError:
            self.refused += len(messages)

    async def wait_until_sent(self) -> None:
        """Wait until JetStream has all messages; UnavailableError if that takes too long."""
        try:
            async with asyncio.timeout(DURABLE_SECONDS_MAX):
                await self._is_sent.wait()
        except TimeoutError as error:
            raise UnavailableError("NATS does not take messages.") from error

    async def run(self, stop: asyncio.Event) -> None:
        """Send until `stop` is set; the connection is open."""
        await self._connection.subscribe(f"{self._inbox}.sent.*", self._on_sent)
        await self._connection.subscribe(f"{self._inbox}.results", self._on_results)
        self._is_open = True
        try:
            async with asyncio.TaskGroup() as group:
                stopping = group.create_task(pass_on(stop, self._has_work))
                while not stop.is_set():
                    await pause(POLL_SECONDS if self._published or self._awaited else 60.0, self._has_work)
                    await self.flush()
                stopping.cancel()
        finally:
            self._leave()

    async def flush(self) -> None:
        """Publish what waits, and once more what has waited too long for an answer."""
        self._has_work.clear()
        self._repeat_late()
        unsent, self._unsent = self._unsent, {}
        for (shard, attempt), messages in unsent.items():
            for group in split_groups(messages):
                await self._publish(shard, group, attempt)
        now = read_loop_seconds()
        for number, published in list(self._published.items()):
            if published.again_at <= now and self._connection.is_connected:
                self.repeated += len(published.messages)
                await self._publish_group(number, published)

    def _build(
        self,
        address: Address,
        message: msgspec.Struct,
        *,
        is_exact: bool = False,
        is_ask: bool = False,
        is_fresh: bool = False,
    ) -> SentMessage:
        kind = self._kinds.get(address.kind)
        if kind is None:
            self.refused += 1
            raise UnavailableError(f"No actors of the kind {address.kind} get messages from here.")
        body = kind.encode_message(message)
        if not self.fits(body):
            self.refused += 1
            raise UnavailableError(f"A message of {len(body)} bytes is more than NATS takes (max_payload).")
        return SentMessage(self._ids.make(), *address, body, is_exact, is_ask, is_fresh)

    def _put(self, messages: Sequence[SentMessage], *, attempt: int = 1) -> None:
        if self._waiting + len(messages) > WAITING_MAX and attempt == 1:
            self.refused += len(messages)
            raise MailboxFullError("Too many messages wait for NATS.")
        self._waiting += len(messages)
        for message in messages:
            self._unsent.setdefault((message.shard, attempt), []).append(message)
        self._is_sent.clear()
        self._has_work.set()

    def _await(self, message: SentMessage, *, seconds_max: float) -> "asyncio.Future[MessageResult]":
        if not self._is_open:
            raise UnavailableError("The connection to the actors is not open.")
        loop = asyncio.get_running_loop()
        self._put([message])
        done: asyncio.Future[MessageResult] = loop.create_future()
        # A sender may have gone.
        done.add_done_callback(lambda one: one.cancelled() or one.exception())
        self._awaited[message.id] = _Awaited(
            message, done, again_at=loop.time() + ASK_AGAIN_SECONDS, ends_at=loop.time() + seconds_max
        )
        return done

    async def _publish(self, shard: int, messages: Sequence[SentMessage], attempt: int) -> None:
        is_awaited = any(message.id in self._awaited for message in messages)
        results_to = f"{self._inbox}.results" if is_awaited else ""
        self._number += 1
        published = _Published(
            shard,
            encode_group(messages, results_to=results_to, attempt=attempt),
            f"{self._inbox}-{self._number}",
            0.0,
            messages,
        )
        self._published[self._number] = published
        await self._publish_group(self._number, published)

    async def _publish_group(self, number: int, published: _Published) -> None:
        published.again_at = read_loop_seconds() + PUBLISH_AGAIN_SECONDS
        await self._connection.publish(
            name_subject(published.shard),
            published.data,
            reply=f"{self._inbox}.sent.{number}",
            headers={ID_HEADER: published.dedup_id},
        )

    def _repeat_late(self) -> None:
        """Send again what has no result yet, and give up what has waited too long."""
        now = read_loop_seconds()
        for message_id, awaited in list(self._awaited.items()):
            if awaited.done.done():
                del self._awaited[message_id]
            elif awaited.ends_at <= now:
                del self._awaited[message_id]
                awaited.done.set_exception(
                    UnavailableError("No worker has said that it is kept; it may still be applied.")
                )
            elif awaited.again_at <= now:
                awaited.attempt += 1
                awaited.again_at = now + ASK_AGAIN_SECONDS * awaited.attempt
                self.repeated += 1
                self._put([awaited.message], attempt=awaited.attempt)

    async def _on_sent(self, received: Received) -> None:
        """Take JetStream's acknowledgement; one that refuses is asked again after a while."""
        try:
            check_answer(received.data)
        except JetStreamError:
            return
        published = self._published.pop(int(received.subject.rpartition(".")[2]), None)
        if published is None:
            return
        self.sent += len(published.messages)
        self._waiting -= len(published.messages)
        if not self._published and not self._unsent:
            self._is_sent.set()
        self.on_sent([message.id for message in published.messages])

    async def _on_results(self, received: Received) -> None:
        for result in decode_results(received.data):
            awaited = self._awaited.get(result.id)
            if awaited is None or awaited.done.done():
                continue
            if result.is_kept:
                awaited.done.set_result(result)
            elif result.is_final:
                awaited.done.set_exception(UnavailableError(result.reason))
            else:
                continue
            del self._awaited[result.id]

    def _leave(self) -> None:
        self._is_open = False
        error = UnavailableError("This process stops; the message may still be applied.")
        for awaited in self._awaited.values():
            if not awaited.done.done():
                awaited.done.set_exception(error)
        self._awaited.clear()


SWEEP_SECONDS: Final = 0.5
# A worker forgets what it has sent within half a second: what is older was left by another that is gone.
OLD: Final = timedelta(seconds=2)

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class OutboxSweep:
    """Looks after the outbox of the shards that this worker has."""

    def __init__(self, pool: Pool, sender: NatsSender, clock: Clock) -> None:
        self._outbox = Outbox(pool)
        self._sender = sender
        self._clock = clock
        self._sent: list[UUID] = []
        self.shards: Sequence[int] = ()
        sender.on_sent = self._sent.extend

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await pause(SWEEP_SECONDS, stop)
            try:
                await self.sweep()
            except UnavailableError as error:
                log.warning("outbox_not_swept", reason=error.detail)
            except Exception:
                # The outermost loop: what waits is sent later.
                log.exception("outbox_sweep_failed")

    async def sweep(self) -> None:
        """Forget what NATS has, and send what has waited for long."""
        sent, self._sent[:] = list(self._sent), []
        if sent:
            await self._outbox.delete(sent)
        if self.shards:
            waiting = await self._outbox.list_waiting(self.shards, before=self._clock.now() - OLD)
            known = self._sender.list_waiting().union(self._sent) if waiting else set[UUID]()
            if left := [one for one in waiting if one.id not in known]:
                self._sender.forward(left)
