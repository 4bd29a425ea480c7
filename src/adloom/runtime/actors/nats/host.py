"""Runs the actors of the shards that JetStream gives to this worker.

Messages are acknowledged when their results are durable. Every half second the worker says which shards it has; one
that has more than its share gives some up. A shard without an owner gets a message without content, and so an owner.
"""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

import msgspec
import structlog

from adloom.core.clock import Clock
from adloom.core.errors import UnavailableError
from adloom.core.ids import IdSource
from adloom.core.random import Chance
from adloom.runtime.actors.actor import ActorCounts
from adloom.runtime.actors.mailboxes import Envelope
from adloom.runtime.actors.nats.balance import (
    BEAT_SECONDS,
    Peers,
    WorkerBeat,
    choose_given_up,
    find_unowned,
)
from adloom.runtime.actors.nats.groups import DeliveredGroup, list_results, open_group
from adloom.runtime.actors.nats.messages import encode_results
from adloom.runtime.actors.nats.pinned import Delivered
from adloom.runtime.actors.nats.ports import Messaging, Received
from adloom.runtime.actors.nats.runner import ActorFamily, ShardRunner
from adloom.runtime.actors.nats.sender import NatsSender, OutboxSweep
from adloom.runtime.actors.nats.shard_pulls import ShardPulls
from adloom.runtime.actors.nats.store import maintain_days
from adloom.runtime.loops import pass_on, pause, read_loop_seconds
from adloom.runtime.postgres import Pool

BEATS: Final = "adloom.workers"
BATCH_MAX: Final = 256  # Groups, of all shards together.
PASSIVATED_AT_ONCE: Final = 2_000
RETRY_SECONDS: Final = 0.5
DAYS_SECONDS: Final = 3_600.0
WAIT_SECONDS_MAX: Final = 0.5  # Then actors are configured again whose turn it is.
STOP_SECONDS_MAX: Final = 1.0
LAST_MESSAGES_SECONDS: Final = 0.05  # For messages that were on their way when a shard was given up.

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_beat: Final = msgspec.msgpack.Decoder(WorkerBeat).decode

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class NatsActorHost:
    """Owns the actors of some shards, among all workers of an installation."""

    def __init__(  # noqa: PLR0913 - what a host is built from
        self,
        families: Sequence[ActorFamily],
        connection: Messaging,
        sender: NatsSender,
        pool: Pool,
        *,
        name: str,
        version: str,
        clock: Clock,
        chance: Chance,
        ids: IdSource,
        replicas: int = 1,
    ) -> None:
        self._connection = connection
        self._pool = pool
        self._clock = clock
        self.name, self._version = name, version
        self.counts = ActorCounts()
        self._peers = Peers()
        self.pulls = ShardPulls(connection, inbox=f"_INBOX.adloom.{ids.make().hex}", replicas=replicas)
        self._sweep = OutboxSweep(pool, sender, clock)
        self._unwanted: set[int] = set()
        self._is_open = False
        self._runners = [
            ShardRunner(
                family,
                clock=clock,
                chance=chance,
                ids=ids,
                counts=self.counts,
                send=sender.forward,
                find_kind=sender.find_kind,
                fits=sender.fits,
                give_up=self._unwanted.add,
            )
            for family in families
        ]
        self._runner_of = {kind.name: one for one in self._runners for kind in one.family.kinds}
        self._kind_of = {kind.name: kind for one in self._runners for kind in one.family.kinds}

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def active(self) -> int:
        return sum(len(one) for one in self._runners)

    def count_active(self, kinds: Collection[str]) -> int:
        """Return how many actors of the family of some kinds are in memory."""
        return sum(len(one) for one in self._runners if any(kind.name in kinds for kind in one.family.kinds))

    @property
    def waiting(self) -> int:
        return self.pulls.waiting

    @property
    def alarms(self) -> int:
        return sum(len(one.alarms) for one in self._runners)

    async def run(self, stop: asyncio.Event) -> None:
        """Run the actors of this worker's shards until `stop` is set; the connection is open."""
        assert not self._is_open, "a host runs once at a time"
        self._is_open = True
        over = asyncio.Event()
        try:
            await self._prepare(stop)
            await self._connection.subscribe(BEATS, self._on_beat)
            await self.pulls.open()
            async with asyncio.TaskGroup() as group:
                group.create_task(pass_on(stop, self.pulls.has_work))
                for keep in (self._keep_balance, self._sweep.run, self._keep_days):
                    group.create_task(keep(over))
                while not stop.is_set():
                    await self._try_to_work()
                await self._leave()
                over.set()
        finally:
            self._is_open = False
            for runner in self._runners:
                runner.forget_all(UnavailableError("The host of the actor has stopped."))

    async def _prepare(self, stop: asyncio.Event) -> None:
        """Make the days of applied ids: without them nothing can be applied."""
        while not stop.is_set():
            try:
                await maintain_days(self._pool, self._clock.now().date())
            except UnavailableError as error:
                log.warning("entity_host_waits", reason=error.detail)
                await pause(RETRY_SECONDS, stop)
            else:
                return

    # ------------------------------------------------------------ messages and alarms

    async def _try_to_work(self) -> None:
        try:
            await self._wait()
            await self._follow_moves()
            await self._work(self.pulls.take(BATCH_MAX))
            await self._hand_over()
            for runner in self._runners:
                await runner.configure_next(read_loop_seconds())
            await self._passivate()
        except UnavailableError as error:
            log.warning("entity_host_waits", reason=error.detail)
            await asyncio.sleep(RETRY_SECONDS)

    async def _wait(self) -> None:
        if self.pulls.waiting:
            await asyncio.sleep(0)  # Let other tasks of this process run.
            return
        self.pulls.has_work.clear()
        now = self._clock.now()
        due = [at for one in self._runners if (at := one.alarms.find_next_at()) is not None]
        idle = [
            at + one.family.idle_max for one in self._runners if (at := one.find_oldest_touch()) is not None
        ]
        seconds = [(at - now).total_seconds() for at in (*due, *idle)]
        await pause(max(0.0, min([WAIT_SECONDS_MAX, *seconds])), self.pulls.has_work)

    async def _follow_moves(self) -> None:
        """Forget the actors of shards that moved, and take over the alarms of new ones.

        Until none has moved while alarms were read: the next messages must not go to actors that are forgotten later.
        """
        while any(moves := self.pulls.take_moves()):
            got, lost = moves
            for runner in self._runners:
                runner.evict_shards(got | lost)
            if got:
                try:
                    await self._load_alarms(sorted(got))
                except UnavailableError:
                    self.pulls.note_got(got)
                    raise

    async def _load_alarms(self, shards: Sequence[int]) -> None:
        for runner in self._runners:
            kinds = [kind.name for kind in runner.family.kinds]
            runner.set_alarms(await runner.family.store.read_timers(shards, kinds))
            if runner.family.list_woken is not None:
                now = self._clock.now()
                runner.set_alarms([(one, now) for one in await runner.family.list_woken(shards)])

    async def _work(self, delivered: Sequence[Delivered]) -> None:
        """Run one batch, and acknowledge what is durable then."""
        now = self._clock.now()
        has_others = bool(self._peers.list_alive(read_loop_seconds()))
        work = [open_group(one, self._kind_of, now, has_others=has_others) for one in delivered]
        self._unwanted.update(one.delivered.shard for one in work if one.is_left)
        self.counts.failed += sum(len(one.unreadable) for one in work)
        is_repeated = any(one.delivered.times > 1 or one.group.attempt > 1 for one in work)
        for runner in self._runners:
            due = runner.alarms.take_due(now, count_max=runner.family.alarms_at_once)
            alarms = [
                Envelope(address, self._kind_of[address.kind].on_waking, is_alarm=True) for address in due
            ]
            envelopes = [
                envelope
                for one in work
                for envelope in one.envelopes
                if self._runner_of[envelope.address.kind] is runner
            ]
            if alarms or envelopes:
                await runner.run([*alarms, *envelopes], is_repeated=is_repeated)
        for one in work:
            await self._close_group(one)

    async def _close_group(self, work: DeliveredGroup) -> None:
        """Send the results of a group, and acknowledge it unless some of it must come again."""
        results = list_results(work, self._kind_of)
        if work.group.results_to and results:
            await self._connection.publish(work.group.results_to, encode_results(results))
        is_again = work.is_left or any(not one.is_kept and not one.is_final for one in results)
        await self.pulls.acknowledge(work.delivered, again_after=RETRY_SECONDS if is_again else None)

    async def _hand_over(self) -> None:
        """Give up shards that others should have, after their actors are durable."""
        given_up = set(self._unwanted)
        if given_up:
            for runner in self._runners:
                await runner.persist_shards(given_up)
            self._unwanted.clear()
            await self.pulls.give_up(sorted(given_up))

    async def _passivate(self) -> None:
        for runner in self._runners:
            oldest = self._clock.now() - runner.family.idle_max
            idle = runner.list_idle_since(oldest, count_max=PASSIVATED_AT_ONCE)
            await runner.persist(idle)
            for actor in idle:
                runner.evict(actor)

    async def _leave(self) -> None:
        """Finish what was delivered, make all actors durable, and hand over the shards."""
        self.pulls.is_pulling = False
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + STOP_SECONDS_MAX
        while self.pulls.waiting and loop.time() < ends_at:
            await self._try_to_finish()
        try:
            for runner in self._runners:
                await runner.persist_all()
        except UnavailableError as error:
            log.warning("actors_not_kept", reason=error.detail)
        await self._beat(is_leaving=True)
        await self.pulls.give_up(self.pulls.list_held())
        await asyncio.sleep(LAST_MESSAGES_SECONDS)
        for one in self.pulls.take(self.pulls.waiting):
            await self.pulls.acknowledge(one, again_after=0.0)

    async def _try_to_finish(self) -> None:
        try:
            await self._work(self.pulls.take(BATCH_MAX))
        except UnavailableError as error:
            log.warning("messages_not_finished", reason=error.detail)

    # ------------------------------------------------------------ beside the messages

    async def _on_beat(self, received: Received) -> None:
        beat = _decode_beat(received.data)
        if beat.name != self.name:
            self._peers.record_beat(beat, at=read_loop_seconds())

    async def _beat(self, *, is_leaving: bool = False) -> None:
        beat = WorkerBeat(self.name, tuple(self.pulls.list_held()), self._version, is_leaving)
        await self._connection.publish(BEATS, _encode(beat))

    async def _keep_balance(self, over: asyncio.Event) -> None:
        while not over.is_set():
            try:
                await self._balance()
            except UnavailableError as error:
                log.warning("shards_not_balanced", reason=error.detail)
            except Exception:
                # The outermost loop: without balance a worker still works.
                log.exception("balance_failed")
            await pause(BEAT_SECONDS, over)

    async def _balance(self) -> None:
        await self.pulls.open_pulls()
        if self.pulls.is_pulling:
            await self._beat()
        held = self.pulls.list_held()
        self._sweep.shards = held
        peers = self._peers.list_alive(read_loop_seconds())
        if self.pulls.is_pulling and self._connection.is_connected:
            for shard in sorted(find_unowned(held, peers)):
                await self.pulls.offer_shard(shard)
        # Handed over by the loop that runs the actors.
        self._unwanted.update(choose_given_up(held, peers))

    async def _keep_days(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await pause(DAYS_SECONDS, over)
            if not over.is_set():
                try:
                    await maintain_days(self._pool, self._clock.now().date())
                except UnavailableError as error:
                    log.warning("applied_days_not_made", reason=error.detail)
