"""Actors for tests of their runtime: a tally that does what its messages ask, and states in memory."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, ParamSpec

import msgspec

from adloom.core.errors import UnavailableError
from adloom.core.random import Chance
from adloom.runtime.actors.actor import (
    ActorKind,
    Address,
    AnyKind,
    Effect,
    FencedOutError,
    Persist,
    Publish,
    RecordRow,
    Reply,
    StateRejectedError,
    StateWrite,
    StepResult,
    StoredState,
    Tell,
    Wake,
)
from adloom.runtime.actors.host import ActorHost
from simulation import loop as virtual
from simulation.faults import VirtualClock
from simulation.loop import make_random

P = ParamSpec("P")

START = datetime(2026, 11, 15, 12, tzinfo=UTC)


def on_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test without ever sleeping."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        virtual.run(1, test(*args, **kwargs))

    return run


class Row(msgspec.Struct, frozen=True):
    key: str
    number: int


class Add(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Everything that a step can do, by request."""

    amount: int = 1
    is_kept: bool = True
    publishes: str | None = None
    wakes_at: datetime | None = None
    messages: tuple[tuple[Address, "Add"], ...] = ()
    records: tuple[int, ...] = ()
    replies: bool = True
    fails: bool = False


class Nap(msgspec.Struct, frozen=True, tag=True):
    """Set an alarm, and do nothing else."""

    until: datetime


class Woken(msgspec.Struct, frozen=True, tag=True):
    pass


class Tally(msgspec.Struct, frozen=True):
    key: str
    count: int = 0
    woken_at: tuple[datetime, ...] = ()
    received: tuple[int, ...] = ()


class Count(msgspec.Struct, frozen=True):
    count: int


def tally_step(state: Tally, message: Add | Nap | Woken, now: datetime, chance: Chance) -> StepResult[Tally]:
    del chance
    if isinstance(message, Nap):
        return StepResult(state, (Wake(message.until),))
    if isinstance(message, Woken):
        woken = msgspec.structs.replace(state, woken_at=(*state.woken_at, now))
        return StepResult(woken, (Persist(),))
    if message.fails:
        raise RuntimeError("as asked")
    after = msgspec.structs.replace(
        state, count=state.count + message.amount, received=(*state.received, message.amount)
    )
    effects: list[Effect] = [RecordRow(Row(state.key, number)) for number in message.records]
    effects += [Tell(to, sent) for to, sent in message.messages]
    if message.is_kept:
        effects.append(Persist())
    if message.publishes is not None:
        effects.append(Publish(message.publishes, Count(after.count)))
    if message.wakes_at is not None:
        effects.append(Wake(message.wakes_at))
    if message.replies:
        effects.append(Reply(Count(after.count)))
    return StepResult(after, tuple(effects))


def make_tally_kind(messages: Any = Add | Nap | Woken, **options: Any) -> ActorKind[Tally, Add | Nap | Woken]:
    return ActorKind(
        "tally",
        Tally,
        tally_step,
        lambda key, _: Tally(key),
        on_waking=Woken(),
        messages=messages,
        replies=Count,
        **options,
    )


TALLY = make_tally_kind()


def a_tally(key: str = "a") -> Address:
    return Address("tally", key)


class MemoryStates:
    """States in memory, which are away or refuse something when a test asks for it."""

    def __init__(self) -> None:
        self.states: dict[Address, StoredState] = {}
        self.records: list[msgspec.Struct] = []
        self.commits: list[list[Address]] = []
        self.loads: list[list[Address]] = []
        self.refused: set[msgspec.Struct] = set()  # Records that no table accepts.
        self.is_away = False
        self.is_commit_answer_lost = False  # The commit is done, and its answer is lost.

    async def load(self, addresses: Sequence[Address]) -> Mapping[Address, StoredState]:
        await self._answer()
        self.loads.append(list(addresses))
        return {address: self.states[address] for address in addresses if address in self.states}

    async def list_timers(self, *, until: datetime | None = None) -> Sequence[tuple[Address, datetime]]:
        await self._answer()
        timers = [(address, one.wake_at) for address, one in self.states.items() if one.wake_at is not None]
        return [(address, at) for address, at in timers if until is None or at <= until]

    async def commit(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        await self._answer()
        self.apply(writes, records)
        if self.is_commit_answer_lost:
            raise UnavailableError("The connection broke.")

    def apply(self, writes: Sequence[StateWrite], records: Sequence[msgspec.Struct]) -> None:
        if self.refused.intersection(records):
            raise StateRejectedError("No table accepts this.")
        self.fence(writes)
        for write in writes:
            self.states[write.address] = StoredState(
                write.was_version + 1, write.format, write.state, write.wake_at
            )
        self.records += records
        self.commits.append([write.address for write in writes])

    def fence(self, writes: Sequence[StateWrite]) -> None:
        if any(self.version(write.address) != write.was_version for write in writes):
            raise FencedOutError("Another owner has written.")

    def version(self, address: Address) -> int:
        return self.states[address].version if address in self.states else 0

    def tally(self, key: str = "a") -> Tally | None:
        stored = self.states.get(a_tally(key))
        return None if stored is None else TALLY.decode(stored.state, format_number=stored.format)

    def keep(self, tally: Tally, *, wake_at: datetime | None = None, format_number: int = 1) -> None:
        """Store a state, as another owner would."""
        address = a_tally(tally.key)
        version = self.version(address) + 1
        self.states[address] = StoredState(version, format_number, TALLY.encode(tally), wake_at)

    async def _answer(self) -> None:
        await asyncio.sleep(0.001)
        if self.is_away:
            raise UnavailableError("Away.")


class Catalog:
    """The first messages of actors."""

    def __init__(self) -> None:
        self.introductions: dict[Address, list[msgspec.Struct]] = {}
        self.is_away = False

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        if self.is_away:
            raise UnavailableError("Away.")
        return {
            address: self.introductions[address] for address in addresses if address in self.introductions
        }


class Listeners:
    """Receive every published message, or fail."""

    def __init__(self) -> None:
        self.received: list[tuple[str, msgspec.Struct]] = []
        self.failure: Exception | None = None

    async def publish(self, messages: Sequence[tuple[str, msgspec.Struct]]) -> None:
        await asyncio.sleep(0.001)
        if self.failure is not None:
            raise self.failure
        self.received += messages


class HostSystem:
    """An actor host and everything around it."""

    def __init__(
        self,
        *,
        states: MemoryStates | None = None,
        clock: VirtualClock | None = None,
        kind: AnyKind = TALLY,
        **options: Any,
    ) -> None:
        self.states = states or MemoryStates()
        self.catalog = Catalog()
        self.listeners = Listeners()
        self.clock = clock or VirtualClock(START)
        self.host = ActorHost(
            [kind],
            self.states,
            introduction=self.catalog,
            audience=self.listeners,
            clock=self.clock,
            chance=make_random(1, "entities"),
            **options,
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[ActorHost]:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.host.run(stop))
            await self.opened()
            try:
                yield self.host
            finally:
                stop.set()

    async def opened(self) -> None:
        while not self.host.is_open:  # noqa: ASYNC110 - it opens when its task has begun, whenever that is
            await asyncio.sleep(0)

    async def ask(self, message: Add, key: str = "a") -> int:
        """Ask a tally, and return its count."""
        answer: Count = await self.host.ask(a_tally(key), message, seconds_max=60)
        return answer.count
