"""Runs actors in this process: each has one mailbox and runs one step at a time.

There is no tick: a host wakes for a message, for an alarm, for an actor that has become idle, and once a minute
to look for alarms that it could not know of.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
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
    StateStore,
)
from adloom.runtime.actors.mailboxes import Envelope, Mailboxes
from adloom.runtime.actors.runner import RETRY_AFTER, BatchRunner
from adloom.runtime.loops import OUTAGE_SECONDS, RepeatedLine, pass_on, pause, read_loop_seconds

BATCH_MAX: Final = 2_000  # Of messages, and as many alarms.
IDLE_MAX: Final = timedelta(minutes=5)
# Clocks are changed, and the previous owner may have stored an alarm after we had looked.
POLL_SECONDS: Final = 60.0
STOP_SECONDS_MAX: Final = 1.0  # For messages that wait when the host is stopped; the rest is refused.

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class NotHostedError(UnavailableError):
    """This host does not run now, or not actors of this kind."""


class ActorHost:
    """Owns actors of some kinds, all of them in this process."""

    def __init__(  # noqa: PLR0913 - what a host is built from
        self,
        kinds: Sequence[AnyKind],
        store: StateStore,
        *,
        introduction: FirstMessages,
        audience: Broadcaster,
        clock: Clock,
        chance: Chance,
        mailboxes: Mailboxes | None = None,
        batch_max: int = BATCH_MAX,
        idle_max: timedelta = IDLE_MAX,
    ) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self._store = store
        self._clock = clock
        self._mailboxes = Mailboxes() if mailboxes is None else mailboxes
        self._batch_max = batch_max
        self._idle_max = idle_max
        self._poll_at = 0.0
        self._is_open = False
        self._has_work = asyncio.Event()
        self.counts = ActorCounts()
        self._log_waiting = RepeatedLine(log, "entity_host_waits", seconds=OUTAGE_SECONDS)
        self._runner = BatchRunner(
            self._kinds,
            store,
            introduction=introduction,
            audience=audience,
            clock=clock,
            chance=chance,
            send=lambda tell: self.tell(tell.to, tell.message),
            counts=self.counts,
        )

    @property
    def is_open(self) -> bool:
        """Whether messages are accepted: from the start of `run` until it is stopped."""
        return self._is_open

    @property
    def active(self) -> int:
        return len(self._runner)

    @property
    def waiting(self) -> int:
        return len(self._mailboxes)

    @property
    def alarms(self) -> int:
        return len(self._runner.alarms)

    def tell(self, address: Address, message: msgspec.Struct) -> bool:
        """Send a message without waiting; return whether a mailbox took it."""
        try:
            self._enqueue(Envelope(address, message))
        except UnavailableError:
            return False
        return True

    async def ask(self, address: Address, message: msgspec.Struct, *, seconds_max: float) -> Any:  # noqa: ANN401 - each kind's own
        """Send a message and wait for the reply; raises TimeoutError, or UnavailableError if there will be none."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._enqueue(Envelope(address, message, answered=answered))
        async with asyncio.timeout(seconds_max):
            return await answered

    def send_durably(self, address: Address, message: msgspec.Struct) -> asyncio.Future[None]:
        """Send a message, or raise UnavailableError.

        The future is done when the result is durable, and fails with UnavailableError when that is unknown.
        """
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._enqueue(Envelope(address, message, durable=durable))
        return durable

    async def wait_until_sent(self) -> None:
        """Return at once: a mailbox is of this process, and an actor that becomes active again is configured anew."""

    async def run(self, stop: asyncio.Event) -> None:
        """Process messages until `stop` is set; what was accepted by then is persisted, the rest is refused."""
        assert not self._is_open, "a host runs once at a time"
        self._is_open = True
        try:
            async with asyncio.TaskGroup() as group:
                waker = group.create_task(pass_on(stop, self._has_work))
                while not stop.is_set():
                    await self._run_as_owner(stop)
                waker.cancel()
        finally:
            self._leave()

    async def _run_as_owner(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, or until another host turns out to own the actors."""
        try:
            await self._set_alarms(stop)
            while not stop.is_set():
                await self._wait()
                await self._run_due()
                await self._passivate()
                await self._reload_due_alarms()
            await self._finish()
        except FencedOutError as error:
            # Any of our states may be stale now.
            self.counts.fenced += 1
            log.warning("entity_host_fenced_out", entities=self.active, reason=str(error))
            self._runner.forget_all(error)
            await asyncio.sleep(RETRY_AFTER.total_seconds())

    async def _set_alarms(self, stop: asyncio.Event) -> None:
        """Load all stored alarms; overdue ones fire now."""
        while not stop.is_set():
            try:
                timers = await self._store.list_timers()
            except UnavailableError as error:
                self._log_waiting(reason=error.detail)
                await asyncio.sleep(RETRY_AFTER.total_seconds())
            else:
                self._runner.set_alarms(timers)
                self._poll_at = read_loop_seconds() + POLL_SECONDS
                return

    async def _reload_due_alarms(self) -> None:
        """Load overdue alarms that this host does not know of."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._poll_at:
            return
        self._poll_at = loop.time() + POLL_SECONDS
        try:
            self._runner.set_alarms(await self._store.list_timers(until=self._clock.now()))
        except UnavailableError as error:
            log.warning("entity_alarms_not_read", reason=error.detail)

    async def _wait(self) -> None:
        """Wait for a message, an alarm, or the next actor to become idle."""
        if self._mailboxes:
            await asyncio.sleep(0)  # Let other tasks of this process run.
            return
        self._has_work.clear()
        now = self._clock.now()
        due = [at for at in (self._runner.alarms.find_next_at(), self._find_idle_at()) if at is not None]
        until_poll = self._poll_at - read_loop_seconds()
        await pause(min([until_poll, *((at - now).total_seconds() for at in due)]), self._has_work)

    def _find_idle_at(self) -> datetime | None:
        touched_at = self._runner.find_oldest_touch()
        return None if touched_at is None else touched_at + self._idle_max

    async def _run_due(self) -> None:
        due = self._runner.alarms.take_due(self._clock.now(), count_max=self._batch_max)
        alarms = [Envelope(address, self._kinds[address.kind].on_waking, is_alarm=True) for address in due]
        await self._runner.run([*alarms, *self._mailboxes.take(self._batch_max)])

    async def _passivate(self) -> None:
        """Persist and evict idle actors."""
        oldest = self._clock.now() - self._idle_max
        idle = self._runner.list_idle_since(oldest, count_max=self._batch_max)
        await self._runner.persist(idle)
        for actor in idle:
            self._runner.evict(actor)

    async def _finish(self) -> None:
        """Process the messages that already wait, and persist all actors."""
        self._is_open = False
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + STOP_SECONDS_MAX
        while self._mailboxes and loop.time() < ends_at:
            await self._runner.run(self._mailboxes.take(self._batch_max))
        await self._runner.persist_all()

    def _leave(self) -> None:
        self._is_open = False
        error = NotHostedError("The host of the actor has stopped.")
        for envelope in self._mailboxes.take(len(self._mailboxes)):
            self.counts.refused += 1
            envelope.fail(error)
        self._runner.forget_all(error)

    def _enqueue(self, envelope: Envelope) -> None:
        try:
            if not self._is_open or envelope.address.kind not in self._kinds:
                raise NotHostedError(f"No actors of the kind {envelope.address.kind} run here now.")
            self._mailboxes.put(envelope)
        except UnavailableError:
            self.counts.refused += 1
            raise
        self._has_work.set()
