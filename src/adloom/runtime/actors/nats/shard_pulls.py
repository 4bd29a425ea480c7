"""The shards that this worker has, and its pulls: one at a time for each shard."""

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec
import structlog

from adloom.core.errors import UnavailableError
from adloom.runtime.actors.actor import SHARDS
from adloom.runtime.actors.nats import pinned
from adloom.runtime.actors.nats.pinned import Delivered, PullStatus
from adloom.runtime.actors.nats.ports import Messaging, Received
from adloom.runtime.loops import read_loop_seconds

PULL_MAX: Final = 64
# Of a shard that we have: a frozen worker's last pull may take messages for so long, and holds its pin two seconds more.
OWN_PULL_SECONDS: Final = 1.0
OTHER_PULL_SECONDS: Final = 20.0
LATE_SECONDS: Final = 1.0  # After the end of a pull, which the server should have announced.
GIVEN_UP_SECONDS: Final = 3.0  # In which a shard that we gave up is not pulled, so that others get it.
TAKEN_SECONDS: Final = 1.0  # Within which others say that they have a shard that was given up.
WAITING_MAX: Final = 2_048  # Messages that wait in this process; beyond, it pulls nothing.
MAKE_AGAIN_SECONDS: Final = 1.0

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class _Shard(msgspec.Struct):
    """What is known of a shard; times are the loop's seconds."""

    pin: str | None = None
    pulled_until: float = 0.0  # 0 if no pull is open.
    left: int = 0  # Messages that the open pull may still bring.
    paused_until: float = 0.0
    pending: int = 0  # Messages that wait in JetStream, as of the last delivery.
    waiting: int = 0  # Messages that wait in this process.


class ShardPulls:
    """Pulls from all shards, and knows those that this worker is pinned to."""

    def __init__(self, connection: Messaging, *, inbox: str, replicas: int = 1) -> None:
        self._connection = connection
        self._inbox = inbox
        self._replicas = replicas
        self._shards = [_Shard() for _ in range(SHARDS)]
        self._waiting: list[Delivered] = []
        self._is_made = False
        self._make_at = 0.0
        self.has_work = asyncio.Event()
        self.is_pulling = False
        # Shards that this worker got, or lost, since `take_moves`.
        self._got: set[int] = set()
        self._lost: set[int] = set()
        # Plain counters, read by a collector.
        self.moves = 0
        self.made = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def list_held(self) -> list[int]:
        return [number for number, shard in enumerate(self._shards) if shard.pin is not None]

    def list_lags(self) -> dict[int, int]:
        """Return how many messages wait for each shard that this worker has."""
        return {
            number: shard.pending + shard.waiting
            for number, shard in enumerate(self._shards)
            if shard.pin is not None
        }

    async def open(self) -> None:
        await self._connection.subscribe(f"{self._inbox}.*", self._on_pulled)
        self.is_pulling = True

    def take(self, count_max: int) -> list[Delivered]:
        """Remove and return the messages that have waited longest."""
        taken, self._waiting = self._waiting[:count_max], self._waiting[count_max:]
        for one in taken:
            self._shards[one.shard].waiting -= 1
        return taken

    def take_moves(self) -> tuple[set[int], set[int]]:
        """Return the shards that this worker got and lost since the last call."""
        got, self._got = self._got, set()
        lost, self._lost = self._lost, set()
        return got, lost

    def note_got(self, shards: Iterable[int]) -> None:
        """Report shards once more, because taking them over has failed."""
        self._got.update(shards)
        self.has_work.set()

    async def open_pulls(self) -> None:
        """Make the stream where it is missing, and pull where no pull is open."""
        now = read_loop_seconds()
        if not self._is_made and now >= self._make_at and self._connection.is_connected:
            await self._make(now)
        if self._is_made and self.is_pulling:
            for number in range(SHARDS):
                await self._pull(number, now)

    async def acknowledge(self, delivered: Delivered, *, again_after: float | None = None) -> None:
        """Say that a message was applied, or that it should come again after some seconds."""
        answer = pinned.ACK if again_after is None else pinned.encode_nak(again_after)
        await self._connection.publish(delivered.ack_to, answer)

    async def give_up(self, shards: Iterable[int]) -> None:
        """Hand shards over, all at once: the next message of each pins another worker."""
        until = read_loop_seconds() + GIVEN_UP_SECONDS
        async with asyncio.TaskGroup() as group:
            for number in shards:
                self._shards[number].paused_until = until
                if self._shards[number].pin is not None:
                    self._lose(number)
                    group.create_task(self._unpin(number))

    async def _unpin(self, number: int) -> None:
        try:
            await pinned.unpin(self._connection, number)
        except UnavailableError as error:
            log.warning("shard_not_unpinned", shard=number, reason=error.detail)
        else:
            await self.offer_shard(number)

    async def offer_shard(self, number: int) -> None:
        """Send a shard without an owner a message without content: a shard gets its owner with a message."""
        shard = self._shards[number]
        if shard.paused_until - read_loop_seconds() < GIVEN_UP_SECONDS - TAKEN_SECONDS:
            shard.paused_until = 0.0  # Those that it was given up for have not taken it.
        subject = pinned.name_subject(number)
        second = int(read_loop_seconds() / OWN_PULL_SECONDS)
        await self._connection.publish(
            subject, b"", headers={pinned.ID_HEADER: f"{self._inbox}-{number}-{second}"}
        )

    async def _make(self, now: float) -> None:
        self._make_at = now + MAKE_AGAIN_SECONDS
        try:
            await pinned.ensure_stream(self._connection, replicas=self._replicas)
        except UnavailableError as error:
            log.warning("stream_not_made", reason=error.detail)
        else:
            self._is_made = True
            self.made += 1

    async def _pull(self, number: int, now: float) -> None:
        shard = self._shards[number]
        if shard.pulled_until and now > shard.pulled_until + LATE_SECONDS:
            shard.pulled_until = 0.0  # The server was away, or has forgotten it.
        if shard.pulled_until or now < shard.paused_until or len(self._waiting) >= WAITING_MAX:
            return
        # The first message ends a pull of a shard that is not ours: an owner's pulls are short.
        seconds, count = (OTHER_PULL_SECONDS, 1) if shard.pin is None else (OWN_PULL_SECONDS, PULL_MAX)
        shard.pulled_until, shard.left = now + seconds, count
        is_sent = await pinned.pull(
            self._connection, number, inbox=self._inbox, pin=shard.pin, count_max=count, seconds=seconds
        )
        if not is_sent:
            shard.pulled_until = 0.0

    async def _on_pulled(self, received: Received) -> None:
        found = pinned.read_pulled(received)
        shard = self._shards[found.shard]
        if isinstance(found, Delivered):
            self._take_in(shard, found)
            if shard.left > 0:
                return
        elif found.status is not PullStatus.ENDED:
            self._lose(found.shard)
            # One that is gone is made at the next poll.
            self._is_made = self._is_made and found.status is not PullStatus.GONE
        shard.pulled_until = 0.0
        if self.is_pulling and self._is_made:
            await self._pull(found.shard, read_loop_seconds())

    def _take_in(self, shard: _Shard, found: Delivered) -> None:
        if found.pin != shard.pin:
            if shard.pin is None:
                self._got.add(found.shard)
                self._lost.discard(found.shard)
                self.moves += 1
            shard.pin = found.pin
        shard.pending = found.pending
        shard.left -= 1
        shard.waiting += 1
        self._waiting.append(found)
        self.has_work.set()

    def _lose(self, number: int) -> None:
        shard = self._shards[number]
        if shard.pin is not None:
            shard.pin = None
            self._lost.add(number)
            self._got.discard(number)
            self.has_work.set()
