"""Both hosts of actors in this process, on one database, with a clock that a drill sets."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from adloom.core.clock import Clock
from adloom.core.ids import SystemIds
from adloom.core.random import Chance
from adloom.runtime.actors.actor import SHARDS, Address, AnyKind, Broadcaster, FirstMessages
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.nats.link import NatsLink
from adloom.runtime.actors.nats.runner import ActorFamily
from adloom.runtime.actors.nats.store import ShardStore
from adloom.runtime.actors.state_store import PostgresStateStore, RecordWriter
from adloom.runtime.postgres import Pool

READY_SECONDS_MAX: Final = 60.0
POLL_SECONDS: Final = 0.02
ANSWER_SECONDS_MAX: Final = 60.0
STATES: Final = "SELECT kind, key, state, format FROM brain_states WHERE kind = ANY ($1::text[])"

Message = tuple[Address, msgspec.Struct]


class PlayedHost(Protocol):
    """What both hosts can do."""

    def tell(self, address: Address, message: msgspec.Struct) -> bool: ...

    def send_durably(self, address: Address, message: msgspec.Struct) -> "asyncio.Future[None]": ...

    def ask(
        self, address: Address, message: msgspec.Struct, *, seconds_max: float
    ) -> Coroutine[Any, Any, Any]: ...


async def ask_all(host: PlayedHost, questions: Iterable[Message]) -> list[Any]:
    """Ask actors at once; return the answers in the order of the questions."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(host.ask(address, message, seconds_max=ANSWER_SECONDS_MAX))
            for address, message in questions
        ]
    return [task.result() for task in tasks]


class EqualChance:
    """Always draws the same number, because messages of different actors come in any order."""

    def random(self) -> float:
        return 0.5

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2

    def betavariate(self, alpha: float, beta: float) -> float:
        del alpha, beta
        return 0.5


class NoFirstMessages:
    """Actors are configured by the messages of the log."""

    async def load_first_messages(
        self, addresses: Sequence[Address]
    ) -> Mapping[Address, Sequence[msgspec.Struct]]:
        del addresses
        return {}


class NoListeners:
    """Drops what actors publish."""

    async def publish(self, messages: Sequence[tuple[str, msgspec.Struct]]) -> None:
        del messages


class PlayedKinds(NamedTuple):
    """What the actors of some kinds are made of."""

    kinds: Sequence[AnyKind]
    records: RecordWriter
    introduction: FirstMessages


async def read_states(pool: Pool, kinds: Sequence[AnyKind]) -> dict[Address, Any]:
    """Return the stored states of all actors of some kinds."""
    by_name = {kind.name: kind for kind in kinds}
    return {
        Address(row["kind"], row["key"]): by_name[row["kind"]].decode(
            row["state"], format_number=row["format"]
        )
        for row in await pool.fetch(STATES, list(by_name))
    }


@asynccontextmanager
async def run_local(
    pool: Pool,
    played: PlayedKinds,
    clock: Clock,
    *,
    audience: Broadcaster | None = None,
    chance: Chance | None = None,
) -> AsyncGenerator[PlayedHost]:
    host = ActorHost(
        played.kinds,
        PostgresStateStore(pool, played.records, clock),
        introduction=played.introduction,
        audience=audience or NoListeners(),
        clock=clock,
        chance=chance or EqualChance(),
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(host.run(stop))
        await _wait_until(lambda: host.is_open)
        yield host
        stop.set()


@asynccontextmanager
async def run_shared(url: str, pool: Pool, played: PlayedKinds, clock: Clock) -> AsyncGenerator[PlayedHost]:
    link = NatsLink(url, played.kinds, SystemIds(), name="drill-equality")
    family = ActorFamily(
        kinds=played.kinds,
        store=ShardStore(pool, played.records, clock),
        introduction=played.introduction,
        audience=NoListeners(),
    )
    host = link.add_host([family], pool, clock, chance=EqualChance())
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run(stop))
        await _wait_until(lambda: len(host.pulls.list_held()) == SHARDS)
        yield link.sender
        stop.set()


async def _wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(READY_SECONDS_MAX):
        while not is_so():  # noqa: ASYNC110 - hosts send no notice
            await asyncio.sleep(POLL_SECONDS)
