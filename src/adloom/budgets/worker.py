"""Builds the budget actors of a worker, and everything around them."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from adloom.budgets.addresses import OWNER_KEY
from adloom.budgets.bids.decider import BidDecider, LocalTopics
from adloom.budgets.bids.nets import SHIPPED, FleetWeights, cache_nets
from adloom.budgets.bids.store import BidCountStore
from adloom.budgets.config.catalog_follower import CatalogFollower
from adloom.budgets.config.catalog_store import BudgetCatalog
from adloom.budgets.config.count_follower import CountFollower, CountReader
from adloom.budgets.config.entity_config import CatalogAddresses, EntityConfigurer
from adloom.budgets.confirms.projection import CHARGES, ConfirmProjection
from adloom.budgets.confirms.store import ConfirmStore
from adloom.budgets.kinds import make_kinds
from adloom.budgets.money.store import MoneyWriter
from adloom.budgets.traffic.learner import TrafficLearner
from adloom.budgets.traffic.page_recorder import PageTrafficRecorder
from adloom.budgets.transport.inbox import Inbox, ValkeyBroadcaster
from adloom.budgets.transport.session_store import SessionStore
from adloom.budgets.transport.sessions import DeliverySessions
from adloom.core.clock import Clock
from adloom.events.followers.counted import RecentCounted
from adloom.events.followers.counted_store import CountedStore
from adloom.events.log.stream import ValkeyEventLog
from adloom.runtime.actors.host import ActorHost
from adloom.runtime.actors.mailboxes import Host
from adloom.runtime.actors.nats.runner import ActorFamily
from adloom.runtime.actors.nats.sender import NatsSender
from adloom.runtime.actors.nats.store import ShardStore
from adloom.runtime.actors.state_store import PostgresStateStore
from adloom.runtime.locks import HeldLocks, LeaderLoop, Run, ValkeyLock
from adloom.runtime.postgres import Pool
from adloom.runtime.random import make_system_chance
from adloom.runtime.valkey import Valkey

# How often campaigns of several workers are configured again, in case a message was lost.
REFRESH_SECONDS: Final = 60.0


class WorkerIdentity(NamedTuple):
    """A worker's name, which of its lives, and the locks that it holds."""

    consumer: str
    incarnation: str
    held_locks: HeldLocks | None = None

    def make_lock(self, valkey: Valkey, key: str) -> ValkeyLock:
        return ValkeyLock(
            valkey, key, consumer=self.consumer, incarnation=self.incarnation, held=self.held_locks
        )


class BudgetService(msgspec.Struct, frozen=True, kw_only=True):
    """What sends messages to budget actors while a worker leads, and the projection that confirms.

    The event tables report to `recent_counted` what they count in the same process.
    """

    inbox: Inbox
    follower: CatalogFollower
    money: MoneyWriter
    decider: BidDecider
    confirms: ConfirmProjection
    recent_counted: RecentCounted
    leader: LeaderLoop

    def is_leader(self) -> bool:
        return self.leader.is_leader


class BudgetActors(BudgetService, frozen=True, kw_only=True):
    """The same, with the actors: all of them run on the worker that leads."""

    host: ActorHost


class SharedBudgetActors(BudgetService, frozen=True, kw_only=True):
    """The same, with what a worker needs to run some of the actors, whether it leads or not."""

    family: ActorFamily


class _Parts(NamedTuple):
    """What configures the actors of this process, stores their rows and publishes their messages."""

    configurer: EntityConfigurer
    money: MoneyWriter
    decider: BidDecider
    broadcaster: ValkeyBroadcaster
    topics: LocalTopics


def make_budget_actors(  # noqa: PLR0913 - the last is for tests
    pool: Pool,
    valkey: Valkey,
    clock: Clock,
    *,
    worker: WorkerIdentity,
    hold_seconds: int,
    look_pool: "Pool | None" = None,
    weights: FleetWeights = SHIPPED,
    sessions: DeliverySessions | None = None,
) -> BudgetActors:
    """Build budget actors that run in one process.

    What follows the catalog reads by `look_pool`: reads of one pool at the same moment share one query.
    """
    parts = _make_parts(pool, valkey, clock, hold_seconds=hold_seconds, weights=weights)
    host = ActorHost(
        make_kinds(),
        PostgresStateStore(pool, parts.money, clock),
        introduction=parts.configurer,
        audience=parts.topics,
        clock=clock,
        chance=make_system_chance(),
    )
    service = _make_service(
        parts,
        host,
        pool,
        valkey,
        clock,
        worker=worker,
        look_pool=look_pool,
        sessions=sessions,
        beside=(host.run, parts.decider.run),
    )
    return BudgetActors(host=host, **_list_fields(service))


def share_budget_actors(  # noqa: PLR0913 - what it stands between
    sender: NatsSender,
    pool: Pool,
    valkey: Valkey,
    clock: Clock,
    *,
    worker: WorkerIdentity,
    hold_seconds: int,
    look_pool: "Pool | None" = None,
    shard_pool: Pool,
    weights: FleetWeights = SHIPPED,
) -> SharedBudgetActors:
    """Build budget actors that several workers share; the decider runs beside a worker's own.

    States are written by `shard_pool`, whose transactions must not stay open for long.
    """
    parts = _make_parts(pool, valkey, clock, hold_seconds=hold_seconds, weights=weights)
    family = ActorFamily(
        kinds=make_kinds(),
        store=ShardStore(shard_pool, parts.money, clock),
        introduction=parts.configurer,
        audience=parts.topics,
        refresh_seconds=REFRESH_SECONDS,
    )
    service = _make_service(
        parts,
        sender,
        pool,
        valkey,
        clock,
        worker=worker,
        look_pool=look_pool,
        again_seconds=REFRESH_SECONDS,
    )
    return SharedBudgetActors(family=family, **_list_fields(service))


def _make_parts(
    pool: Pool, valkey: Valkey, clock: Clock, *, hold_seconds: int, weights: FleetWeights
) -> _Parts:
    broadcaster = ValkeyBroadcaster(valkey)
    decider = BidDecider(BidCountStore(pool), load_nets=cache_nets(weights))
    return _Parts(
        configurer=EntityConfigurer(BudgetCatalog(pool), clock, hold_seconds=hold_seconds),
        money=MoneyWriter(clock),
        decider=decider,
        broadcaster=broadcaster,
        topics=LocalTopics(broadcaster, decider.take),
    )


def _make_service(  # noqa: PLR0913 - what it tells the actors of
    parts: _Parts,
    host: Host,
    pool: Pool,
    valkey: Valkey,
    clock: Clock,
    *,
    worker: WorkerIdentity,
    look_pool: "Pool | None",
    sessions: DeliverySessions | None = None,
    beside: Sequence[Run] = (),
    again_seconds: float | None = None,
) -> BudgetService:
    """Build what sends messages to the actors of a host; `beside` runs on the leader too."""
    look_pool = look_pool or pool
    counts = CountFollower(
        CountReader(look_pool, clock), ValkeyEventLog(valkey), host, clock, again_seconds=again_seconds
    )
    # They look rarely: for them alone a connection would be opened each time.
    traffic = TrafficLearner(look_pool, valkey, clock)
    pages = PageTrafficRecorder(look_pool, valkey, clock)
    inbox = Inbox(
        valkey,
        SessionStore(pool),
        host,
        parts.broadcaster,
        clock,
        sessions=sessions,
        find_shape=traffic.find_shape,
        find_day_seconds=traffic.find_day_seconds,
        request_counts=counts.take_request,
    )
    follower = CatalogFollower(valkey, BudgetCatalog(look_pool), parts.configurer, host)
    lock = worker.make_lock(valkey, OWNER_KEY)
    parts.decider.tell = host.tell
    counts.find_logged_until = inbox.find_logged_until
    leader = LeaderLoop(
        lock, [*beside, inbox.run, follower.run, counts.run, traffic.run, pages.run], name="budgets"
    )
    recent_counted = RecentCounted()
    return BudgetService(
        inbox=inbox,
        follower=follower,
        money=parts.money,
        decider=parts.decider,
        confirms=make_confirm_projection(
            pool, host, clock, recent_counted=recent_counted, term=lambda: leader.terms
        ),
        recent_counted=recent_counted,
        leader=leader,
    )


def _list_fields(service: BudgetService) -> dict[str, Any]:
    return {name: getattr(service, name) for name in service.__struct_fields__}


def make_confirm_projection(
    pool: Pool,
    host: Host,
    clock: Clock,
    *,
    recent_counted: RecentCounted,
    term: Callable[[], int] = lambda: 1,
) -> ConfirmProjection:
    """Build the projection that sends confirms to the campaigns of a host."""
    return ConfirmProjection(
        ConfirmStore(pool, projection=CHARGES),
        CountedStore(pool, recent_counted),
        CatalogAddresses(BudgetCatalog(pool)),
        host,
        clock,
        term=term,
    )
