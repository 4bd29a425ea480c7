"""Builds the budget actors of a worker, and everything around them."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from adloom.budgets.bids.decider import BidDecider, LocalTopics
from adloom.budgets.bids.nets import load_nets
from adloom.budgets.bids.store import BidCountStore
from adloom.budgets.charges.projection import CHARGES, ChargesProjection
from adloom.budgets.charges.store import ChargeStore
from adloom.budgets.config.catalog_follower import CatalogFollower
from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.budgets.config.count_follower import CountFollower, CountReader
from adloom.budgets.config.entity_config import CatalogAddresses, EntityConfigurer
from adloom.budgets.kinds import make_kinds
from adloom.budgets.leader import OWNER_KEY, LeaderLoop
from adloom.budgets.money.store import MoneyWriter
from adloom.budgets.traffic.learner import TrafficLearner
from adloom.budgets.transport.inbox import Inbox, ValkeyBroadcaster
from adloom.budgets.transport.session_store import SessionStore
from adloom.budgets.transport.sessions import DeliverySessions
from adloom.core.clock import Clock
from adloom.events.followers.counted import RecentCounted
from adloom.events.followers.counted_store import CountedStore
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.mailboxes import Host
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.postgres import Pool
from adloom.runtime.random import system_chance
from adloom.runtime.valkey import Valkey, ValkeyLock


class WorkerIdentity(NamedTuple):
    """A worker's name, and which of its lives."""

    consumer: str
    incarnation: str


class BudgetActors(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that runs while a worker leads, and the projection that charges.

    The event tables report to `recent_counted` what they count in the same process.
    """

    host: ActorHost
    inbox: Inbox
    follower: CatalogFollower
    money: MoneyWriter
    decider: BidDecider
    charges: ChargesProjection
    recent_counted: RecentCounted
    leader: LeaderLoop

    def is_leader(self) -> bool:
        return self.leader.is_leader


def make_budget_actors(  # noqa: PLR0913 - the last is for tests
    pool: Pool,
    valkey: Valkey,
    clock: Clock,
    *,
    worker: WorkerIdentity,
    hold_seconds: int,
    sessions: DeliverySessions | None = None,
) -> BudgetActors:
    catalog, broadcaster, money = BudgetCatalog(pool), ValkeyBroadcaster(valkey), MoneyWriter()
    configurer = EntityConfigurer(catalog, clock, hold_seconds=hold_seconds)
    decider = BidDecider(BidCountStore(pool), load_nets=load_nets)
    host = ActorHost(
        make_kinds(),
        PostgresStateStore(pool, money, clock),
        introduction=configurer,
        audience=LocalTopics(broadcaster, decider.take),
        clock=clock,
        chance=system_chance(),
    )
    traffic = TrafficLearner(pool, valkey, clock)
    inbox = Inbox(
        valkey,
        SessionStore(pool),
        host,
        broadcaster,
        clock,
        sessions=sessions,
        find_shape=traffic.find_shape,
        find_day_seconds=traffic.find_day_seconds,
    )
    follower = CatalogFollower(valkey, catalog, configurer, host)
    lock = ValkeyLock(valkey, OWNER_KEY, consumer=worker.consumer, incarnation=worker.incarnation)
    counts = CountFollower(CountReader(pool, clock), host)
    decider.tell = host.tell
    leader = LeaderLoop(lock, [host.run, inbox.run, follower.run, counts.run, traffic.run, decider.run])
    recent_counted = RecentCounted()
    return BudgetActors(
        host=host,
        inbox=inbox,
        follower=follower,
        money=money,
        decider=decider,
        charges=make_charges_projection(
            pool, host, clock, recent_counted=recent_counted, term=lambda: leader.terms
        ),
        recent_counted=recent_counted,
        leader=leader,
    )


def make_charges_projection(
    pool: Pool,
    host: Host,
    clock: Clock,
    *,
    recent_counted: RecentCounted,
    term: Callable[[], int] = lambda: 1,
) -> ChargesProjection:
    """Build the projection that confirms charges to the campaigns of a host."""
    return ChargesProjection(
        ChargeStore(pool, projection=CHARGES),
        CountedStore(pool, recent_counted),
        CatalogAddresses(BudgetCatalog(pool)),
        host,
        clock,
        term=term,
    )
