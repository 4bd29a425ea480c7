"""Appender, spool and log together, on virtual time: answered events are in the log at the end, in order.

Processes live, are stopped or killed, lose power; the log goes away, hangs, or takes what it does not confirm.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from random import Random
from uuid import UUID

from adloom.core.errors import UnavailableError
from adloom.core.ids import OpaqueId
from adloom.events.log.append import EventAppender
from adloom.events.log.spool.drain import DiskSpool, SpoolLimits
from simulation.loop import run
from tests.support.eventually import eventually
from tests.support.fake_disk import DiskImage, FakeDisk, Fault, KilledError
from tests.support.for_each import for_each, seeds

LIVES = 6
LIMITS = SpoolLimits(bytes_max=4_000, segment_bytes_max=300, batch_max=20, poll_seconds=2.0)


class CountedIds:
    def __init__(self) -> None:
        self._last = 0

    def make(self) -> UUID:
        self._last += 1
        return UUID(int=self._last)

    def make_opaque(self) -> OpaqueId:
        return self.make()


class RoughLedger:
    """A log with outages; a dead process's append may still arrive."""

    def __init__(self, chance: Random) -> None:
        self.entries: list[bytes] = []
        self.is_up = True
        self.is_rough = True
        self._chance = chance

    async def append(self, entries: Sequence[bytes]) -> None:
        await asyncio.sleep(self._chance.expovariate(1 / 0.002))
        if not self.is_up:
            raise UnavailableError("away")
        if self.is_rough and self._chance.random() < 0.1:
            self.entries += entries[: self._chance.randint(0, len(entries))]
            await asyncio.sleep(self._chance.choice([0.0, 60.0]))
            raise UnavailableError("not answered")
        self.entries += entries
        await asyncio.sleep(self._chance.expovariate(1 / 0.002))


class World:
    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311 - not for cryptography
        self.image = DiskImage(self.chance)
        self.ledger = RoughLedger(self.chance)
        self.ids = CountedIds()
        self.sent: set[bytes] = set()
        self.answered: list[list[bytes]] = []
        self.refused = 0

    async def pause(self) -> None:
        await asyncio.sleep(self.chance.expovariate(1 / 0.005))

    async def live(self) -> None:
        """Run several processes one after another, while the log comes and goes."""
        weather = asyncio.get_running_loop().create_task(self.come_and_go())
        for _ in range(LIVES):
            with contextlib.suppress(KilledError):
                await self.one_life()
            if self.chance.random() < 0.3:
                self.image.lose_power()
        weather.cancel()
        self.ledger.is_up, self.ledger.is_rough = True, False
        async with DiskSpool(
            FakeDisk(self.image, self.pause), self.ledger, process="delivery-1", ids=self.ids, limits=LIMITS
        ):
            await eventually(lambda: not self.image.files, seconds=600, every=1)

    async def come_and_go(self) -> None:
        while True:
            await asyncio.sleep(self.chance.expovariate(1 / 3))
            self.ledger.is_up = not self.ledger.is_up

    async def one_life(self) -> None:
        disk = FakeDisk(self.image, self.pause)
        answered: list[bytes] = []
        self.answered.append(answered)
        process = f"delivery-{self.chance.randint(1, 2)}"
        spool = DiskSpool(disk, self.ledger, process=process, ids=self.ids, limits=LIMITS)
        appender = EventAppender(self.ledger, spool)

        async def serve() -> None:
            async with spool, appender:
                await self.traffic(appender, disk, answered)

        # A life that is killed leaves its tasks behind, which no longer get anything done.
        task = asyncio.get_running_loop().create_task(serve())
        await asyncio.wait([task])
        if not disk.is_dead:
            disk.die()
        if not task.cancelled() and (error := task.exception()) is not None:
            assert isinstance(error, KilledError), error

    async def traffic(self, appender: EventAppender, disk: FakeDisk, answered: list[bytes]) -> None:
        futures: list[tuple[list[bytes], asyncio.Future[None]]] = []
        for number in range(self.chance.randint(20, 200)):
            await asyncio.sleep(self.chance.expovariate(1 / 0.05))
            if self.chance.random() < 0.02:
                disk.plan(Fault.FAILS, after_steps=self.chance.randint(0, 6), share_written=0.5)
            entries = [
                b"%d/%d/%d" % (len(self.answered), number, part) for part in range(self.chance.randint(1, 3))
            ]
            self.sent.update(entries)
            try:
                futures.append((entries, appender.append_all(entries, None)))
            except UnavailableError:
                self.refused += 1
        disk.plan_nothing()
        if self.chance.random() < 0.5:
            await asyncio.wait([future for _, future in futures])
        else:
            self.take_answers(futures, answered)
            disk.die()
            raise KilledError
        self.take_answers(futures, answered)

    def take_answers(
        self, futures: list[tuple[list[bytes], asyncio.Future[None]]], answered: list[bytes]
    ) -> None:
        for entries, future in futures:
            if not future.done():
                future.cancel()
            elif future.exception() is None:
                answered += entries
            else:
                self.refused += 1


@for_each("seed", seeds(24))
def test_answered_events_are_in_the_log_in_order(seed: int) -> None:
    world = World(seed)

    run(seed, world.live())

    ledger = world.ledger.entries
    first = {entry: place for place, entry in reversed(list(enumerate(ledger)))}
    assert world.sent.issuperset(ledger)
    assert sum(map(len, world.answered)) > 100
    for answered in world.answered:
        places = [first.get(entry) for entry in answered]
        assert None not in places, "lost"
        assert places == sorted(place for place in places if place is not None)
