"""Everything that must be in the transaction whenever an actor is stored."""

import asyncio
from datetime import datetime

import msgspec

from adloom.core.random import Chance
from adloom.runtime.actors.actor import ActorKind, Address, Persist, Publish, RecordRow, StepResult, Wake
from adloom.runtime.actors.host import ActorHost
from simulation.faults import VirtualClock
from simulation.loop import make_random
from tests.support.actors import START, Catalog, Listeners, MemoryStates, Row, on_virtual_time


class Balance(msgspec.Struct, frozen=True):
    coins: int = 0
    unwritten: tuple[int, ...] = ()


class Put(msgspec.Struct, frozen=True):
    coins: int
    is_kept: bool = False


class Woken(msgspec.Struct, frozen=True):
    pass


def step(balance: Balance, message: Put | Woken, now: datetime, chance: Chance) -> StepResult[Balance]:
    del now, chance
    if isinstance(message, Woken):
        return StepResult(balance)
    after = Balance(balance.coins + message.coins, (*balance.unwritten, message.coins))
    return StepResult(after, (Persist(),) if message.is_kept else ())


def before_keeping(balance: Balance, now: datetime) -> StepResult[Balance]:
    del now
    rows = [RecordRow(Row("balance", coins)) for coins in balance.unwritten]
    return StepResult(Balance(balance.coins), (*rows, Publish("coins", Put(balance.coins)), Wake(None)))


BALANCES = ActorKind(
    "balance", Balance, step, lambda _, __: Balance(), on_waking=Woken(), before_keeping=before_keeping
)
MINE = Address("balance", "mine")


class BalanceSystem:
    """A host of balances."""

    def __init__(self) -> None:
        self.states = MemoryStates()
        self.listeners = Listeners()
        self.host = ActorHost(
            [BALANCES],
            self.states,
            introduction=Catalog(),
            audience=self.listeners,
            clock=VirtualClock(START),
            chance=make_random(1, "purses"),
        )

    async def opened(self) -> None:
        while not self.host.is_open:  # noqa: ASYNC110 - it opens at its first step, whenever that is
            await asyncio.sleep(0)

    @property
    def kept(self) -> Balance:
        stored = self.states.states[MINE]
        return BALANCES.decode(stored.state, format_number=stored.format)

    @property
    def rows(self) -> list[msgspec.Struct]:
        return self.states.records


@on_virtual_time
async def test_messages_before_and_after_a_persisting_one_are_stored_with_it() -> None:
    system, stop = BalanceSystem(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(system.host.run(stop))
        await system.opened()
        durable = [system.host.send_durably(MINE, Put(coins, is_kept=coins == 2)) for coins in (1, 2, 3)]
        await asyncio.wait(durable)
        await asyncio.sleep(1)

        assert system.kept == Balance(6)
        assert system.rows == [Row("balance", 1), Row("balance", 2), Row("balance", 3)]
        assert system.listeners.received == [("coins", Put(6))]
        stop.set()


@on_virtual_time
async def test_an_actor_persisted_at_the_stop_has_stored_everything() -> None:
    system, stop = BalanceSystem(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(system.host.run(stop))
        await system.opened()
        durable = system.host.send_durably(MINE, Put(7))
        await asyncio.sleep(1)
        assert not durable.done()
        stop.set()

    assert (system.kept, system.rows) == (Balance(7), [Row("balance", 7)])
    assert durable.done()
