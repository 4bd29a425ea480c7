"""What has to be in the transaction whenever an entity is kept, for whatever reason."""

import asyncio
from datetime import datetime

import msgspec

from adloom.core.random import Chance
from adloom.runtime.actors.actor import ActorKind, Address, Persist, Publish, RecordRow, StepResult, Wake
from adloom.runtime.actors.host import ActorHost
from simulation.faults import VirtualClock
from simulation.loop import seeded
from tests.support.actors import START, Catalog, Listeners, MemoryStates, Row, on_virtual_time


class Purse(msgspec.Struct, frozen=True):
    coins: int = 0
    unwritten: tuple[int, ...] = ()


class Put(msgspec.Struct, frozen=True):
    coins: int
    is_kept: bool = False


class Woken(msgspec.Struct, frozen=True):
    pass


def step(purse: Purse, message: Put | Woken, now: datetime, chance: Chance) -> StepResult[Purse]:
    del now, chance
    if isinstance(message, Woken):
        return StepResult(purse)
    after = Purse(purse.coins + message.coins, (*purse.unwritten, message.coins))
    return StepResult(after, (Persist(),) if message.is_kept else ())


def before_keeping(purse: Purse, now: datetime) -> StepResult[Purse]:
    del now
    rows = [RecordRow(Row("purse", coins)) for coins in purse.unwritten]
    return StepResult(Purse(purse.coins), (*rows, Publish("coins", Put(purse.coins)), Wake(None)))


PURSES = ActorKind(
    "purse", Purse, step, lambda _, __: Purse(), on_waking=Woken(), before_keeping=before_keeping
)
MINE = Address("purse", "mine")


class Till:
    """A host of purses."""

    def __init__(self) -> None:
        self.states = MemoryStates()
        self.listeners = Listeners()
        self.host = ActorHost(
            [PURSES],
            self.states,
            introduction=Catalog(),
            audience=self.listeners,
            clock=VirtualClock(START),
            chance=seeded(1, "purses"),
        )

    async def opened(self) -> None:
        while not self.host.is_open:  # noqa: ASYNC110 - it opens at its first step, whenever that is
            await asyncio.sleep(0)

    @property
    def kept(self) -> Purse:
        stored = self.states.states[MINE]
        return PURSES.decode(stored.state, format_number=stored.format)

    @property
    def rows(self) -> list[msgspec.Struct]:
        return self.states.records


@on_virtual_time
async def test_messages_before_and_after_a_persisting_one_are_stored_with_it() -> None:
    till, stop = Till(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(till.host.run(stop))
        await till.opened()
        durable = [till.host.send_durably(MINE, Put(coins, is_kept=coins == 2)) for coins in (1, 2, 3)]
        await asyncio.wait(durable)
        await asyncio.sleep(1)

        assert till.kept == Purse(6)
        assert till.rows == [Row("purse", 1), Row("purse", 2), Row("purse", 3)]
        assert till.listeners.heard == [("coins", Put(6))]
        stop.set()


@on_virtual_time
async def test_an_actor_persisted_at_the_stop_has_stored_everything() -> None:
    till, stop = Till(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(till.host.run(stop))
        await till.opened()
        durable = till.host.send_durably(MINE, Put(7))
        await asyncio.sleep(1)
        assert not durable.done()
        stop.set()

    assert (till.kept, till.rows) == (Purse(7), [Row("purse", 7)])
    assert durable.done()
