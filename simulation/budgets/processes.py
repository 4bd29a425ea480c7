"""The workers of the budget world: real actors with their host, and charges, over simulated servers."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random  # noqa: TID251 - for its type
from typing import Final

import msgspec

from adloom.budgets.charges.projection import CHARGES, ChargesProjection
from adloom.budgets.config.catalog_follower import CatalogFollower
from adloom.budgets.config.entity_config import CatalogAddresses, EntityConfigurer
from adloom.budgets.leader import LeaderLoop
from adloom.budgets.transport.inbox import Inbox, ValkeyBroadcaster
from adloom.core.clock import Clock
from adloom.events.projections.projection import Projection
from adloom.runtime.actors.actor import AnyKind
from adloom.runtime.actors.host import ActorHost
from simulation.budgets.database import BudgetDatabase
from simulation.budgets.stores import (
    SimulatedCatalog,
    SimulatedCharges,
    SimulatedCounts,
    SimulatedSessions,
    SimulatedStates,
)
from simulation.budgets.valkey import SimulatedLeaderLock, ValkeyServer, valkey_of
from simulation.faults import Host
from simulation.ledger import GroupConnection, LedgerServer

LEASE_SECONDS: Final = 5.0

Kinds = Callable[[], Sequence[AnyKind]]


class BudgetServers(msgspec.Struct, frozen=True, kw_only=True):
    """What outlives the processes."""

    database: BudgetDatabase
    valkey: ValkeyServer
    ledger: LedgerServer


class BudgetWorkerProcess:
    """A worker: budget actors while it leads, and the charges that follow the event log."""

    def __init__(  # noqa: PLR0913 - all that it is composed of
        self,
        name: str,
        servers: BudgetServers,
        *,
        clock: Clock,
        chance: Random,
        kinds: Kinds,
        hold_seconds: int,
    ) -> None:
        self.host = Host()
        database, valkey = servers.database, valkey_of(servers.valkey, self.host)
        catalog, audience = SimulatedCatalog(database, self.host), ValkeyBroadcaster(valkey)
        introductions = EntityConfigurer(catalog, clock, hold_seconds=hold_seconds)
        entities = ActorHost(
            kinds(),
            SimulatedStates(database, self.host),
            introduction=introductions,
            audience=audience,
            clock=clock,
            chance=chance,
            batch_max=chance.choice([1, 10, 2_000]),
        )
        room = Inbox(valkey, SimulatedSessions(database, self.host), entities, audience, clock)
        follower = CatalogFollower(valkey, catalog, introductions, entities)
        self._leader = LeaderLoop(
            SimulatedLeaderLock(servers.valkey, self.host, name=name), [entities.run, room.run, follower.run]
        )
        charges = ChargesProjection(
            SimulatedCharges(database, self.host),
            SimulatedCounts(database, self.host),
            CatalogAddresses(catalog),
            entities,
            clock,
            term=lambda: self._leader.terms,
        )
        group = _LeaderGroup(servers.ledger, self.host, name, self._leader)
        self._charging = Projection(CHARGES, group, charges)

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leader.run(stop))
            group.create_task(self._charging.run(stop))


class _LeaderGroup(GroupConnection):
    """A place in the consumer group of charges, given up while another worker leads."""

    def __init__(self, server: LedgerServer, host: Host, consumer: str, leader: LeaderLoop) -> None:
        super().__init__(server, host, CHARGES, consumer=consumer, lease_seconds=LEASE_SECONDS)
        self._leader = leader

    async def acquire(self) -> bool:
        if self._leader.is_leader:
            return await super().acquire()
        await self.release()
        return False
